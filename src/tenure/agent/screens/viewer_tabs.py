"""The viewer's tables: which columns each has, and its rows as texts."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from tenure.agent.screens import clean
from tenure.agent.screens.build import Picks
from tenure.agent.screens.contents import CallView, ListedObject, State, state_of
from tenure.agent.screens.details import about_block
from tenure.agent.screens.history import History, Occurrence
from tenure.agent.screens.tree import TreeNode
from tenure.agent.screens.widgets import Cell, Column, ListRow, Tone
from tenure.engine.meter import figures
from tenure.engine.meter.price import Prices
from tenure.engine.view.edit import Commit


class ViewerTab(Struct, frozen=True):
    """One list of the viewer: its title, what stands there when it is empty, and its columns."""

    title: str
    empty: str
    columns: tuple[Column, ...]


_TOKENS: Final = Column("tokens", 6, right=True)
TABS: Final[Mapping[str, ViewerTab]] = {
    "tree": ViewerTab(
        "Turns",
        "no entries",
        (
            Column("", 3, "mark"),
            Column("turn", 22),
            _TOKENS,
            Column("shown", 6, right=True),
            Column("calls", 5, "dim", right=True, above=84),
            Column("carried", 7, "dim", right=True, above=104),
            Column("cost", 7, "dim", right=True, above=112),
            Column("what was said"),
        ),
    ),
    "objects": ViewerTab(
        "Objects",
        "no tool calls, no episodes",
        (
            Column("", 1, "mark"),
            Column("object", 22),
            Column("state", 14),
            _TOKENS,
            Column("shown", 6, right=True, above=70),
            Column("calls", 5, "dim", right=True, above=96),
            Column("carried", 7, "dim", right=True, above=88),
            Column("cost", 7, "dim", right=True, above=84),
            Column("what", tone="dim"),
        ),
    ),
    "calls": ViewerTab(
        "Calls",
        "the model was not asked yet",
        (
            Column("call", 5, right=True),
            Column("turn", 4, "dim", right=True, above=56),
            Column("window", 6, right=True),
            Column("came", 6, "good", right=True),
            Column("left", 6, "bad", right=True),
            Column("reported", 8, "dim", right=True, above=60),
            Column("cached", 6, "dim", right=True, above=60),
            Column("what happened before", tone="warn"),
        ),
    ),
    "commits": ViewerTab(
        "Commits",
        "nothing has left the window",
        (
            Column("n", 4, right=True),
            Column("policy", 12, "mark"),
            Column("before", 6, right=True),
            Column("after", 6, "good", right=True),
            Column("why"),
        ),
    ),
    "found": ViewerTab(
        "Found",
        "nothing found",
        (Column("entry", 7, "dim", right=True), Column("object", 24, "mark"), Column("words")),
    ),
}
STATE_TONES: Final[Mapping[State, Tone]] = {"whole": "", "smaller": "warn", "gone": "dim"}


def tree_rows(rows: Iterable[TreeNode], picks: Picks, prices: Prices) -> Iterator[ListRow]:
    """One row a segment, turn or message in sight; what can be chosen has a box."""
    for node in rows:
        box = ""
        if node.kind == "segment" and node.segment is not None and node.segment.key:
            box = "[x]" if node.segment.key in picks.briefs else "[ ]"
        elif node.kind == "turn":
            box = "[x]" if node.number in picks.turns else "[ ]"
        sign = " " if node.kind == "message" else "▾" if node.is_open else "▸"
        tone = STATE_TONES[state_of(node.tokens, node.shown)]
        label: Cell = f"{'  ' * node.depth}{sign} {node.label}", "dim" if node.kind == "message" else ""
        words: Cell = clean.line(node.words, 200), "dim" if node.kind == "message" else ""
        carried = _carried(node.turn, prices) if node.turn is not None else ("", "", "")
        yield ListRow(node.key, (box, label, figures.short(node.tokens), (figures.short(node.shown), tone), *carried, words))


def object_rows(objects: Iterable[ListedObject], prices: Prices) -> Iterator[ListRow]:
    """One row an object."""
    for each in objects:
        tone = STATE_TONES[each.state]
        handle: Cell = clean.line(each.handle, 60), "dim" if each.state == "gone" else ""
        shown: Cell = figures.short(each.shown), tone
        pin, tokens = "⚑" if each.pinned else "", figures.short(each.tokens)
        about = clean.line(each.about, 200)
        yield ListRow(each.object, (pin, handle, _state(each), tokens, shown, *_carried(each, prices), about))


def _carried(each: ListedObject, prices: Prices) -> tuple[str, str, str]:
    carried = each.carried
    cost = figures.money(carried.usd(prices), assumed=not prices.known)
    return str(carried.calls), figures.short(carried.tokens), cost


def _state(each: ListedObject) -> Cell:
    """Whole, gone, or what made it smaller: what a strip took has a minus before it."""
    how = each.how if each.state == "smaller" else ""
    strip = how.removeprefix("strip ")
    return (f"− {strip}" if strip != how else how or each.state), STATE_TONES[each.state]


def call_rows(history: History, calls: Iterable[CallView]) -> Iterator[ListRow]:
    """One row a call of the model."""
    commits = {commit.n: commit for commit in history.commits}
    for call in calls:
        usage = history.usages.get(history.index.steps[call.call].entry)
        came = f"+{figures.short(call.came)}" if call.came else ""
        left = f"−{figures.short(call.left)}" if call.left > 0 else ""
        reported = figures.short(usage.prompt) if usage is not None else ""
        cached = figures.share(usage.cache_read / usage.prompt) if usage is not None and usage.prompt else ""
        why = clean.line("; ".join(commits[n].reason for n in call.commits), 200)
        cells = (str(call.call), str(call.turn), figures.short(call.tokens), came, left, reported, cached, why)
        yield ListRow(str(call.call), cells)


def commit_rows(commits: Iterable[Commit]) -> Iterator[ListRow]:
    """One row a commit."""
    for commit in commits:
        before, after = figures.short(commit.tokens_before), figures.short(commit.tokens_after)
        why = clean.line(("forced: " if commit.forced else "") + commit.reason, 200)
        yield ListRow(str(commit.n), (str(commit.n), clean.line(commit.policy, 30), before, after, why))


def found_rows(history: History, found: Iterable[Occurrence]) -> Iterator[ListRow]:
    """One row a block that holds the words."""
    for each in found:
        entry, number = each.at
        about = clean.line(about_block(history, each.at, history.read(entry).blocks[number]), 60)
        yield ListRow(f"entry:{entry}/{number}", (str(entry), about, each.words))
