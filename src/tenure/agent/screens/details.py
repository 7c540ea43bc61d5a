"""What stands beside the viewer's lists: the line above them, and all of what is under the cursor."""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from msgspec import Struct
from rich.cells import cell_len
from textual.content import Content

from tenure.agent.screens import clean
from tenure.agent.screens.build import Picks
from tenure.agent.screens.contents import Lists, is_brief, places
from tenure.agent.screens.history import History
from tenure.agent.screens.widgets import fitted
from tenure.engine.lifecycle.decision import account
from tenure.engine.meter import figures
from tenure.engine.meter.price import Prices
from tenure.engine.record.entry import At, Block, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.record.index import NONE
from tenure.engine.view.edit import Commit, Insert
from tenure.engine.view.project import View, difference

VIEWS: Final = 4  # of calls that are kept
TITLE_CELLS: Final = 30  # that a session's title gets before figures go for it
ACTIONS: Final = 200  # of one commit that are listed
LINES: Final = 400  # parts of a view that are listed
CHARS: Final = 20_000  # of one object that is looked at
_HEAD: Final = "$text-accent bold"
_SIGNS: Final = {
    "gone": ("− ", "$text-error"),
    "come": ("+ ", "$text-success"),
    "changed": ("~ ", "$text-warning"),
    "": ("  ", ""),
}
_WHO: Final = {Origin.HUMAN: "person", Origin.MODEL: "model", Origin.TOOL: "tool", Origin.HARNESS: "harness"}


class Details:
    """Texts about one session. Mutable: it keeps the newest views."""

    def __init__(self, history: History, lists: Lists, prices: Prices) -> None:
        self._history, self._lists, self._prices = history, lists, prices
        self._views: dict[int, View] = {}

    def title(self, picks: Picks, room: int) -> Content:
        """The title takes what the figures leave; on a narrow screen the least needed figures go before it does."""
        history, now = self._history, self._lists.life.now.tokens
        chosen = len(picks.turns) + len(picks.briefs)
        facts = [
            Content.styled(f"  {chosen} chosen", _HEAD) if chosen else Content(""),
            Content(f"  {figures.short(now)} of {figures.short(history.index.tokens)} tokens shown"),
            Content.styled(f"  {history.calls:,} calls  {len(history.index):,} entries", "$quiet"),
            Content.styled(f"  {history.format} {clean.line(history.model, 40)}", "$quiet"),
        ]
        name = clean.line(history.title, 80)
        while len(facts) > 2 and sum(part.cell_length for part in facts) + min(cell_len(name), TITLE_CELLS) > room:
            facts.pop()
        left = max(8, room - sum(part.cell_length for part in facts))
        return Content.styled(fitted(name, min(left, cell_len(name))), "bold") + Content("").join(facts)

    def of(self, tab: str, key: str, *, only_changes: bool) -> Content:
        """What a row of a list stands for."""
        match tab:
            case "tree" if key.startswith("segment:"):
                segment = self._lists.segments[int(key.partition(":")[2])]
                turns = [f"user:{number}" for number in segment.turns[:40]]
                turns += [f"a part of user:{number}" for number in segment.parts[:40]]
                words = clean.text(segment.text) if segment.text else f"turns {', '.join(turns) or 'none'}"
                return Content.assemble((f"{clean.line(segment.title)}\n\n", _HEAD), words)
            case "calls":
                return self._call(int(key), only_changes=only_changes)
            case "commits":
                commit = next(commit for commit in self._history.commits if commit.n == int(key))
                return commit_content(commit, assumed=not self._prices.known)
            case _:
                return self._object(key.partition("/")[0] if key.startswith("user:") else key)

    def _object(self, key: str) -> Content:
        content = object_content(self._history, key)
        listed = next((each for each in (*self._lists.turns, *self._lists.objects) if each.object == key), None)
        if listed is None:
            return content
        state = f"{listed.state}{f' ({listed.how})' if listed.how else ''}{', pinned' if listed.pinned else ''}"
        cost = f"{figures.money(listed.carried.usd(self._prices), assumed=not self._prices.known)} for {listed.carried.calls:,} calls"
        size = f"{figures.tokens(listed.shown)} of {figures.tokens(listed.tokens)} tokens shown"
        return Content.assemble((clean.line(listed.handle), "bold"), (f"\n{state}, {size}, {cost}\n\n", "$quiet"), content)

    def _call(self, call: int, *, only_changes: bool) -> Content:
        usual = "what changed since the call before" if only_changes else "all that the model saw, + − ~ since the call before"
        every = parts(self._history, self._view_at(call), self._view_at(call - 1) if call else None)
        listed = [part for part in every if part.change] if only_changes and call else every
        return Content.styled(f"call {call}: {usual}\n\n", _HEAD) + _view_content(self._history, listed)

    def _view_at(self, call: int) -> View:
        """What the model saw; the newest few are kept, since whoever walks through the calls needs each twice."""
        view = self._views.pop(call, None) or self._history.view_at(call)
        self._views[call] = view
        while len(self._views) > VIEWS:
            del self._views[next(iter(self._views))]
        return view


def about_block(history: History, at: At, block: Block) -> str:
    """What a block is, in a few words."""
    match block:
        case ToolCall() | ToolResult():
            span = history.index.block(at).span
            name = history.index.spans[span].object if span != NONE else "a call"
            return f"{name} call" if isinstance(block, ToolCall) else f"{name} result{' (failed)' if block.error else ''}"
        case Thinking():
            return "reasoning"
        case Media():
            return "media"
        case Opaque(type=kind):
            return clean.line(kind, 40)
        case Text(origin=origin):
            return "system prompt" if history.index.entries[at[0]].role is Role.SYSTEM else _WHO[origin]
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
        text = clean.text(_text_of(block), room)
        room -= len(text) + 80
        tokens = figures.tokens(history.index.block(at).tokens)
        head = f"{about_block(history, at, block)} · entry {at[0]} · {tokens} tokens\n"
        parts.append(Content.assemble((head, _HEAD), text, "\n\n" if text else "\n"))
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


class ViewPart(Struct, frozen=True, kw_only=True, gc=False):
    """One part of a view, or of the view before: where it stands, what it weighs, and how it differs from the view before."""

    order: tuple[int, int, int]
    tokens: int
    at: At | None = None  # None: an inserted entry
    insert: Insert | None = None
    instead: str | None = None  # what stands in a block's place
    change: str = ""  # "gone", "come" or "changed"

    def words(self, history: History) -> tuple[str, str]:
        """What it is, and its words as the model saw them."""
        if self.insert is not None:
            return "brief" if is_brief(self.insert) else "residue", clean.line(self.insert.text, 160)
        assert self.at is not None
        block = history.read(self.at[0]).blocks[self.at[1]]
        text = self.instead if self.instead is not None else _text_of(block)
        return about_block(history, self.at, block), clean.line(text, 160)


def parts(history: History, view: View, before: View | None = None) -> list[ViewPart]:
    """The parts of a view in order; with `before`, what changed since is marked, and what is gone is among them. Reads no entry."""
    marks, gone = dict[At | str, str](), list[ViewPart]()
    if before is not None:
        differs = difference(before, view, history.index)
        marks = dict.fromkeys(differs.come, "come") | dict.fromkeys(differs.changed, "changed")
        marks |= {insert.key: "come" for insert in differs.inserted}
        gone = [ViewPart(order=(*at, 0), tokens=history.index.block(at).tokens, at=at, change="gone") for at in differs.gone]
        gone += [_inserted(insert, "gone") for insert in differs.removed]
    return sorted([*_parts(history, view, marks), *gone], key=lambda part: part.order)


def _parts(history: History, view: View, marks: dict[At | str, str]) -> Iterator[ViewPart]:
    for line in view.lines:
        if isinstance(line, Insert):
            yield _inserted(line, marks.get(line.key, ""))
            continue
        weights, replaced = history.index.weights(line.entry), dict(line.replaced)
        for block in line.blocks:
            at, other = (line.entry, block), replaced.get(block)
            tokens, instead = (weights[block], None) if other is None else (other.tokens, other.text)
            yield ViewPart(order=(*at, 0), tokens=tokens, at=at, instead=instead, change=marks.get(at, ""))


def _inserted(insert: Insert, change: str) -> ViewPart:
    return ViewPart(order=(insert.before_entry, -1, insert.order), tokens=insert.tokens, insert=insert, change=change)


def _view_content(history: History, listed: Sequence[ViewPart]) -> Content:
    """Parts of a view, one a line: the newest of them where there are very many."""
    rows: list[Content] = []
    if len(listed) > LINES:
        rows.append(Content.styled(f"[{len(listed) - LINES:,} earlier parts]", "$quiet"))
    for part in listed[-LINES:]:
        about, words = part.words(history)
        sign, tone = _SIGNS[part.change]
        is_other = part.insert is not None or part.instead is not None
        style = tone or ("$text-warning" if is_other else "$text-accent")
        size = (f"{figures.short(part.tokens):>5} ", "$quiet")
        rows.append(
            Content.assemble(
                (sign, tone), size, (f"{about} ", style), (words, "$quiet" if is_other or part.change == "gone" else "")
            )
        )
    return Content("\n").join(rows) if rows else Content.styled("nothing changed", "$quiet")


def commit_content(commit: Commit, *, assumed: bool) -> Content:
    """What a commit did, why, and at which price; `assumed`: of a model that stands in."""
    head = f"commit {commit.n} by {commit.policy}, {commit.moment}, at {commit.entries} entries"
    saved = f"{figures.tokens(commit.tokens_before)} → {figures.tokens(commit.tokens_after)} tokens"
    why = f"\n{account(commit.price, assumed=assumed)}" if commit.price is not None else ""
    acts: Sequence[str] = [clean.line(f"{act.kind} {act.level} {act.object}", 120) for act in commit.actions[:ACTIONS]]
    more = f"\n… {len(commit.actions) - ACTIONS} more" if len(commit.actions) > ACTIONS else ""
    return Content.assemble(
        (f"{clean.line(head)}\n", _HEAD),
        clean.text(commit.reason) + "\n",
        (saved + why + "\n\n", "$quiet"),
        "\n".join(acts) or f"{len(commit.edits)} edits",
        more,
    )
