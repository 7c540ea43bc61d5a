"""System messages of the Messages API: the prompt, which stands apart, and those inside a conversation, which stay where they stand.

https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages: models that take them want each behind a message of the user and
before one of the model or the end; one without content, which only carries settings, may stand anywhere. The first one is the top-level `system`.
Models that do not take them read the words in a message of the user.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from tenure.apis.anthropic import NAME, render_system
from tenure.apis.json_text import dump, encoded, load, members, source
from tenure.apis.turns import REMINDER
from tenure.engine.record.entry import Origin, Role, Text
from tenure.engine.view.piece import Piece
from tenure.live.sdk import plain

MOVED: Final = "[what stood here has left the context]"


class Prompts:
    """Takes the system's messages of a view apart. Mutable: a message that is put in other words is the same piece every time."""

    def __init__(self) -> None:
        self._reworded: dict[Piece, Piece] = {}

    def split(self, shown: Sequence[Piece], *, stay: bool) -> tuple[tuple[Piece, ...], list[Piece], bool]:
        """The prompt, all other pieces, and whether messages of a system are among them. `stay`: whether the model takes those."""
        first = next((n for n, piece in enumerate(shown) if piece.role is not Role.SYSTEM), len(shown))
        prompts = tuple(piece for piece in shown[:first] if _is_prompt(piece))
        if not any(piece.role is Role.SYSTEM and piece not in prompts for piece in shown):
            return prompts, list(shown[first:]), False
        rest: list[Piece] = []
        for n, piece in enumerate(shown):
            if piece.role is not Role.SYSTEM:
                rest.append(piece)
            elif (n >= first or not _is_prompt(piece)) and (stay or _words(piece)):
                rest.append(self._native(piece) if stay else self._told(piece))
        return prompts, rest, any(piece.role is Role.SYSTEM for piece in rest)

    def _native(self, piece: Piece) -> Piece:
        if piece.dialect == NAME and piece.payload:
            return piece
        return self._kept(piece, encoded(dump({"role": "system", "content": _words(piece)})))

    def _told(self, piece: Piece) -> Piece:
        message = {"role": "user", "content": [{"type": "text", "text": REMINDER.format(_words(piece))}]}
        return self._kept(piece, encoded(dump(message)))

    def _kept(self, piece: Piece, payload: bytes) -> Piece:
        if piece not in self._reworded:
            role = Role.SYSTEM if payload.startswith(b'{"role":"system"') else Role.USER
            words = Text(text=_words(piece), origin=Origin.HARNESS)
            self._reworded[piece] = Piece(role=role, blocks=(words,), dialect=NAME, payload=payload, kept=(0,))
        return self._reworded[piece]


def with_prompts(head: Mapping[str, Any], prompts: Sequence[Piece]) -> dict[str, Any]:
    """The fields of a request with the record's prompt in `system`, behind what the caller says there. The same words stand there once."""
    given = head.get("system")
    told: Any = cast(Any, load(render_system(prompts))) if prompts else cast(Any, [])
    if isinstance(given, list | str) and given:
        parts = _parts(given)
        said = [part.get("text") for part in parts]
        more = [part for part in told if part["text"] not in said]
        return {**head, "system": [*parts, *more] if more else given}
    return {**head, "system": told} if told else dict(head)


def legal(messages: Sequence[bytes], role: Callable[[bytes], str]) -> Iterator[bytes]:
    """The messages, each one of a system between the user's and the model's: before words of a user it waits, and a neighbour that left is named."""
    waiting: list[bytes] = []
    before = ""
    for message in messages:
        speaker = role(message)
        if speaker == "system":
            waiting.append(message)
            continue
        if speaker != "user":
            yield from _between(waiting, before)
            waiting = []
        yield message
        before = speaker
    yield from _between(waiting, before)


def _between(systems: Sequence[bytes], before: str) -> Iterator[bytes]:
    for message in systems:
        if _says_anything(message):
            if before == "system":
                yield encoded(dump({"role": "assistant", "content": MOVED}))
            if before != "user":
                yield encoded(dump({"role": "user", "content": MOVED}))
            before = "system"
        yield message


def _is_prompt(piece: Piece) -> bool:
    """Whether a system's message at the start can be the top-level `system`: it says something, and nothing but words."""
    if piece.dialect != NAME or not piece.payload:
        return True
    return bool(_words(piece)) and {item.key for item in members(source(piece.payload, "message"))} == {"role", "content"}


def _says_anything(message: bytes) -> bool:
    fields = load(source(message, "message"))
    return isinstance(fields, dict) and bool(fields.get("content"))


def _words(piece: Piece) -> str:
    return "\n\n".join(block.text for block in piece.blocks if block.text.strip())


def _parts(system: Any) -> list[Any]:
    return [{"type": "text", "text": system}] if isinstance(system, str) else [plain(part) for part in system]
