"""A policy and a session reader for Tenure, in a package of their own: `pip install .`, then `tenure plugins` lists both.

The policy: `Context(policy="largest-first")`, `tenure replay SESSION --policy largest-first`. The reader: any command that takes a session file.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from tenure.engine.policies.policy import Conduct
from tenure.engine.policies.situation import Situation
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.engine.view.action import Action, Shorten
from tenure.logs.reader import Event, Skipped

MAGIC: Final = b"#chat-lines\n"


class LargestFirst(Struct, frozen=True, kw_only=True):
    """Clears the results of tools, the largest first."""

    name: str = "largest-first"
    conduct: Conduct = Conduct()

    def __call__(self, situation: Situation, /) -> Iterator[Action]:
        """Every result, behind a placeholder that names how to bring it back."""
        index = situation.index
        spans = [span for span in index.spans if span.result is not None]
        for span in sorted(spans, key=lambda span: -index.block(span.result).tokens):
            handle = index.handle(span.object, span.result[0])
            yield Shorten(span=span.ordinal, how="clear", text=f"[cleared: recall {handle}]")


LARGEST_FIRST: Final = LargestFirst()


class ChatLines:
    """Reads a file of lines such as `you: hello` and `model: good day`, below a first line `#chat-lines`."""

    name = "chat-lines"

    def recognises(self, head: bytes) -> bool:
        """Whether a file that starts like this is one."""
        return head.startswith(MAGIC)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """A message for each line; what is none is said."""
        for number, line in enumerate(b"".join(chunks).decode("utf-8", "replace").splitlines(), start=1):
            who, colon, words = line.partition(": ")
            if number == 1 or not line.strip():
                continue
            if not colon or who not in ("you", "model"):
                yield Skipped(line=number, bytes=len(line.encode()), reason="no `you: ` or `model: ` at its start")
                continue
            role, origin = (Role.USER, Origin.HUMAN) if who == "you" else (Role.ASSISTANT, Origin.MODEL)
            yield Draft(role=role, blocks=(Text(text=words, origin=origin),), line=number)
