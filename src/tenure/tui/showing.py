"""Record and views as text for the screen. Promise: nothing is lost, and anyone can see what the model saw."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, assert_never

from msgspec import Struct
from textual.content import Content

from tenure.lifecycle.decision import account
from tenure.meter import figures
from tenure.record.entry import Block, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.record.index import NONE
from tenure.tui import clean
from tenure.tui.carried import At
from tenure.tui.history import History
from tenure.tui.listing import places
from tenure.view.edit import Commit, Insert
from tenure.view.project import View
from tenure.view.shared import Difference, difference

ACTIONS: Final = 200  # of one commit that are listed
LINES: Final = 800  # lines of a view that are listed
CHARS: Final = 20_000  # of one object that is looked at
_SIGNS: Final = {
    "gone": ("− ", "$text-error"),
    "come": ("+ ", "$text-success"),
    "changed": ("~ ", "$text-warning"),
    "": ("  ", ""),
}
_WHO: Final = {Origin.HUMAN: "person", Origin.MODEL: "model", Origin.TOOL: "tool", Origin.HARNESS: "harness"}


def about_block(history: History, at: At, block: Block) -> str:
    """What a block is, in a few words."""
    facts = history.index.block(at)
    match block:
        case ToolCall() | ToolResult():
            span = history.index.spans[facts.span] if facts.span != NONE else None
            named = span.object if span is not None else "a call"
            return f"{named} call" if isinstance(block, ToolCall) else f"{named} result{' (failed)' if block.error else ''}"
        case Thinking():
            return "reasoning"
        case Media():
            return "media"
        case Opaque(type=kind):
            return clean.line(kind, 40)
        case Text(origin=origin):
            system = history.index.entries[at[0]].role is Role.SYSTEM
            return "system prompt" if system else _WHO[origin]
        case _:
            assert_never(block)


def object_content(history: History, object_: str) -> Content:
    """All of an object as it was recorded, bounded."""
    parts: list[Content] = []
    room = CHARS
    blocks = places(history, object_)
    for n, at in enumerate(blocks):
        if room <= 0:
            parts.append(Content.styled(f"\n[{len(blocks) - n:,} more blocks]", "$quiet"))
            break
        block = history.read(at[0]).blocks[at[1]]
        shown = clean.text(_text_of(block), room)
        room -= len(shown) + 80
        tokens = figures.tokens(history.index.block(at).tokens)
        head = Content.styled(f"{about_block(history, at, block)} · entry {at[0]} · {tokens} tokens\n", "$text-accent bold")
        parts.append(Content.assemble(head, shown, "\n\n" if shown else "\n"))
    return Content("").join(parts) if parts else Content.styled("nothing", "$quiet")


def _text_of(block: Block) -> str:
    match block:
        case ToolCall(name=name, arguments=arguments):
            return f"{name} {arguments}"
        case Thinking(text=text, seal=seal) if seal and not text:
            return "[sealed]"
        case Media(media_type=kind, size=size, text=text):
            return f"[{kind or 'media'}, {size:,} bytes] {text}"
        case _:
            return block.text


class SeenLine(Struct, frozen=True, kw_only=True, gc=False):
    """One part of a view: what it is, its words as the model saw them, and how it differs from the view before."""

    about: str
    words: str
    tokens: int
    change: str = ""  # "gone", "come" or "changed"
    instead: bool = False  # something stands in its place
    order: tuple[int, int, int] = (0, 0, 0)


def seen(history: History, call: int, against: int | None = None) -> Iterator[SeenLine]:
    """What the model saw at a call, in order; with `against`, what changed since that other call is marked, and what is gone is told too."""
    view = history.view_at(call)
    other = history.view_at(against) if against is not None else None
    differs = difference(other, view, history.index) if other is not None else None
    lines = list(_lines(history, view, _marks(differs)))
    if differs is not None:
        lines += [_block_line(history, at, "", 0, "gone") for at in differs.gone]
        lines += [_insert_line(insert, "gone") for insert in differs.removed]
    return iter(sorted(lines, key=lambda line: line.order))


def _marks(differs: Difference | None) -> dict[At | str, str]:
    if differs is None:
        return {}
    marks: dict[At | str, str] = dict.fromkeys(differs.come, "come")
    marks |= dict.fromkeys(differs.changed, "changed")
    return marks | {insert.key: "come" for insert in differs.inserted}


def _lines(history: History, view: View, marks: dict[At | str, str]) -> Iterator[SeenLine]:
    for line in view.lines:
        if isinstance(line, Insert):
            yield _insert_line(line, marks.get(line.key, ""))
            continue
        weights, replaced = history.index.weights(line.entry), dict(line.replaced)
        for block in line.blocks:
            shown = replaced.get(block)
            tokens = shown.tokens if shown is not None else weights[block]
            at = (line.entry, block)
            yield _block_line(
                history, at, shown.text if shown is not None else "", tokens, marks.get(at, ""), instead=shown is not None
            )


def _insert_line(insert: Insert, change: str) -> SeenLine:
    words = clean.line(insert.text)
    return SeenLine(
        about="brief" if insert.key.startswith("p") and not insert.routes else "residue",
        words=words,
        tokens=insert.tokens,
        change=change,
        instead=True,
        order=(insert.before_entry, -1, insert.order),
    )


def _block_line(history: History, at: At, text: str, tokens: int, change: str, *, instead: bool = False) -> SeenLine:
    block = history.read(at[0]).blocks[at[1]]
    words = clean.line(text if instead else _text_of(block))
    tokens = tokens or history.index.block(at).tokens
    about = about_block(history, at, block)
    return SeenLine(about=about, words=words, tokens=tokens, change=change, instead=instead, order=(at[0], at[1], 0))


def seen_content(lines: Iterable[SeenLine], *, only_changes: bool = False) -> Content:
    """The parts of a view, one a line."""
    listed = [line for line in lines if line.change or not only_changes]
    parts: list[Content] = []
    for line in listed[:LINES]:
        sign, tone = _SIGNS[line.change]
        style = tone or ("$text-warning" if line.instead else "$text-accent")
        words = "$quiet" if line.instead or line.change == "gone" else ""
        parts.append(
            Content.assemble(
                (sign, tone),
                (f"{figures.short(line.tokens):>5} ", "$quiet"),
                (f"{line.about} ", style),
                (clean.line(line.words, 160), words),
            )
        )
    if len(listed) > LINES:
        parts.append(Content.styled(f"  [{len(listed) - LINES:,} more parts]", "$quiet"))
    if not parts:
        return Content.styled("nothing changed", "$quiet")
    return Content("\n").join(parts)


def commit_content(commit: Commit) -> Content:
    """What a commit did, why, and at which price."""
    head = f"commit {commit.n} by {commit.policy}, {commit.moment}, at {commit.entries} entries"
    saved = f"{figures.tokens(commit.tokens_before)} → {figures.tokens(commit.tokens_after)} tokens"
    why = f"\n{account(commit.price)}" if commit.price is not None else ""
    acts: Sequence[str] = [clean.line(f"{act.kind} {act.level} {act.object}", 120) for act in commit.actions[:ACTIONS]]
    more = f"\n… {len(commit.actions) - ACTIONS} more" if len(commit.actions) > ACTIONS else ""
    return Content.assemble(
        (f"{clean.line(head)}\n", "$text-accent bold"),
        clean.text(commit.reason) + "\n",
        (saved + why + "\n\n", "$quiet"),
        "\n".join(acts) or f"{len(commit.edits)} edits",
        more,
    )
