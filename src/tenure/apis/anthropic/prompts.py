"""System messages of the Messages API: the prompt, which stands apart, and those inside a conversation, which stay where they stand.

https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages: models that take them want each behind a message of the user and
before one of the model or the end; one without content, which only carries settings, may stand anywhere. The first one is the top-level `system`.
Models that do not take them read the words in a message of the user.
"""

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final, cast

from tenure.apis.anthropic.messages import NAME
from tenure.apis.json_text import array_text, dump, encoded, load, members, source
from tenure.apis.sdk import plain
from tenure.apis.turns import REMINDER, role_of, says_anything
from tenure.engine.record.entry import Draft, Origin, Role, Text
from tenure.engine.view.piece import Piece

MOVED: Final = "[what stood here has left the context]"


def split_prompts(
    shown: Sequence[Piece], systems: Sequence[int], reworded: MutableMapping[Piece, Piece], *, stay: bool
) -> tuple[tuple[Piece, ...], list[Piece]]:
    """The prompt, and all other pieces, given the places of those of a system. `stay`: whether the model takes messages of a system among them."""
    first = next((n for n, place in enumerate(systems) if n != place), len(systems))
    prompts: list[Piece] = []
    rest: list[Piece] = []
    start = first
    for place in systems:
        piece = shown[place]
        rest += shown[start:place]
        start = max(first, place + 1)
        if place < first and _is_prompt(piece):
            prompts.append(piece)
        elif stay or _words(piece):
            rest.append(_reworded(piece, reworded, stay=stay))
    rest += shown[start:]
    return tuple(prompts), rest


def _reworded(piece: Piece, reworded: MutableMapping[Piece, Piece], *, stay: bool) -> Piece:
    """A message of a system as one of this API, or as a user's where the model takes none."""
    if stay and piece.dialect == NAME and piece.payload:
        return piece
    if piece not in reworded:
        words = _words(piece)
        content: object = words if stay else [{"type": "text", "text": REMINDER.format(words)}]
        reworded[piece] = Piece(
            role=Role.SYSTEM if stay else Role.USER,
            blocks=(Text(text=words, origin=Origin.HARNESS),),
            dialect=NAME,
            payload=encoded(dump({"role": "system" if stay else "user", "content": content})),
            kept=(0,),
        )
    return reworded[piece]


def render_system(prompts: Sequence[Draft | Piece]) -> str:
    """The JSON of the top-level `system` for these system prompts, of whatever API."""
    if len(prompts) == 1 and prompts[0].dialect == NAME and prompts[0].payload[:1] in (b'"', b"["):
        return source(prompts[0].payload, "system")
    texts = [block.text for prompt in prompts for block in prompt.blocks if block.text.strip()]
    return array_text(dump({"type": "text", "text": text}) for text in texts)


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


def behind_users(messages: Sequence[bytes]) -> Iterator[bytes]:
    """The messages, each one of a system between the user's and the model's: before words of a user it waits, and a neighbour that left is named."""
    waiting: list[bytes] = []
    before = ""
    for message in messages:
        speaker = role_of(message)
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
        if says_anything(message):
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


def _words(piece: Piece) -> str:
    return "\n\n".join(block.text for block in piece.blocks if block.text.strip())


def _parts(system: Any) -> list[Any]:
    return [{"type": "text", "text": system}] if isinstance(system, str) else [plain(part) for part in system]
