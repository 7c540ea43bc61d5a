"""The notes of the agent: one short text that stands in every view.

"Escaping Context Amnesia" (the tiered context text) wants a scratchpad that survives any amount of clearing. Ours is one virtual tool and no
file: each answer is the whole text, so the newest answer carries everything, and nothing else need be kept. What the notes say is what the
newest answer in the record says; a call that was interrupted has changed nothing. So they are the same after a restart and in a fork.
"""

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from tenure.engine.record.entry import ToolResult
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.tools import is_notes

if TYPE_CHECKING:
    from tenure.engine.record.index import Span

NOTES_TOKENS: Final = 2_000  # about, at most
CHARS_PER_TOKEN: Final = 4  # in UTF-8 bytes: a bound that holds for the same record whatever counts its tokens
HEAD_CHARS: Final = 120  # of an answer's first line, at most

NOTES_DESCRIPTION: Final = (
    "Your notes: a short text that stays in your context whatever else leaves it. Write down what you will need however long the work gets: "
    "the goal and how far you are, decisions and why, exact paths and names, what failed, what is next. "
    '{"add":"…"} appends a line or more, {"replace":"…"} puts a whole new text in their place, {} reads them. Each answer is the whole text as '
    f"it now stands; the older answers leave by themselves. At most about {NOTES_TOKENS:,} tokens: rewrite it when it grows old."
)

NOTES_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "add": {"type": "string", "description": "text to append, on a new line"},
        "replace": {"type": "string", "description": "the whole new text; empty clears the notes"},
    },
    "additionalProperties": False,
}

_FORMS: Final = 'expected {"add":"…"}, {"replace":"…"} or {}'
_NO_CALL: Final = ToolAnswer(
    text=f"notes: this call was interrupted and has changed nothing; make it again, {_FORMS}", error=True
)


class _NotesCall(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    add: str | None = None
    replace: str | None = None


class Notes:
    """The notes so far. Grown only by the index; it holds the text of the present notes and the answers to the newest reply, no others."""

    def __init__(self) -> None:
        self.text = ""  # as the newest answer in the record has it
        self.span: int | None = None  # ordinal of the call whose result holds it
        self.spans: set[int] = set()  # of all calls that ever did
        self._answers: dict[
            int, tuple[ToolAnswer, str]
        ] = {}  # of the newest reply's calls: the answer, and the text once it is given
        self._next = ""  # the text once all of them are answered

    def end_reply(self) -> None:
        """Forget calls that have no answer by now: they were interrupted."""
        self._answers.clear()
        self._next = self.text

    def add_call(self, span: "Span", arguments: str) -> None:
        """Take in a call; what comes of it is known, and takes effect with its result."""
        if not is_notes(span.tool):
            return
        after = _after(self._next, arguments)
        if isinstance(after, ToolAnswer):
            self._answers[span.ordinal] = after, self._next
            return
        self._next = after
        self._answers[span.ordinal] = ToolAnswer(text=_receipt(after)), after

    def add_result(self, span: "Span", result: ToolResult) -> None:
        """Take in what a call was answered. Words that are not ours, of a host with a tool of that name, are not notes."""
        answer, after = self._answers.get(span.ordinal, (_NO_CALL, ""))
        if not answer.error and answer.text == result.text and span.ordinal > (-1 if self.span is None else self.span):
            self.text, self.span = after, span.ordinal
            self.spans.add(span.ordinal)

    def answer(self, span: int) -> ToolAnswer:
        """What a call of the newest reply is to be answered."""
        return self._answers.get(span, (_NO_CALL, ""))[0]


def fits(text: str) -> bool:
    """Whether a text is short enough to be an answer of ours."""
    return len(text) <= _MOST + HEAD_CHARS and _size(text) <= _MOST + HEAD_CHARS


_MOST: Final = NOTES_TOKENS * CHARS_PER_TOKEN


def _after(text: str, arguments: str) -> str | ToolAnswer:
    """The text after a call, or why it is refused."""
    try:
        call = msgspec.json.decode(arguments or "{}", type=_NotesCall)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return _refusal(f"the arguments cannot be read ({str(error)[:HEAD_CHARS]}); {_FORMS}")
    if call.add is not None and call.replace is not None:
        return _refusal(f"both add and replace; {_FORMS}")
    if call.replace is not None:
        found = call.replace.strip("\r\n")
    else:
        added = (call.add or "").strip("\r\n")
        found = f"{text}\n{added}" if text and added else text or added
    found = found.rstrip()
    if (size := _size(found)) > _MOST:
        about = f"with this they would be about {_tokens(size):,} tokens long, and at most {NOTES_TOKENS:,} are kept"
        return _refusal(f'{about}; nothing was changed. Put a shorter text in their place: {{"replace":"…"}}')
    return found


def _receipt(text: str) -> str:
    if not text:
        return "[your notes are empty]"
    return f"[your notes, about {_tokens(_size(text)):,} of {NOTES_TOKENS:,} tokens; they stay in your context]\n{text}"


def _refusal(why: str) -> ToolAnswer:
    return ToolAnswer(text=f"notes refused: {why}", error=True)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _tokens(size: int) -> int:
    return -(-size // CHARS_PER_TOKEN)
