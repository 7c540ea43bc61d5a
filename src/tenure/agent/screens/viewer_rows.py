"""The viewer's tables: which columns each has, and its rows as texts."""

from collections.abc import Iterable, Iterator
from typing import Final

from tenure.agent.screens import clean
from tenure.agent.screens.build import Picks
from tenure.agent.screens.contents import CallView, Listed, Segment, State
from tenure.agent.screens.details import about_block
from tenure.agent.screens.history import History, Occurrence
from tenure.agent.screens.widgets import Column, ListRow, Tone
from tenure.engine.meter import figures
from tenure.engine.meter.price import Prices
from tenure.engine.view.edit import Commit

SEGMENTS: Final = (
    Column(title="", width=3),
    Column(title="entries", width=11),
    Column(title="tokens", width=6, right=True),
    Column(title="shown", width=6, right=True),
    Column(title="turns", width=5, right=True, above=70),
    Column(title="what stands for it"),
)
TURNS: Final = (
    Column(title="", width=3),
    Column(title="turn", width=13),
    Column(title="tokens", width=6, right=True),
    Column(title="shown", width=6, right=True),
    Column(title="calls", width=5, right=True, above=70),
    Column(title="carried", width=7, right=True, above=78),
    Column(title="cost", width=7, right=True, above=86),
    Column(title="the person said"),
)
OBJECTS: Final = (
    Column(title="", width=1),
    Column(title="object", width=22),
    Column(title="state", width=14),
    Column(title="tokens", width=6, right=True),
    Column(title="shown", width=6, right=True, above=70),
    Column(title="calls", width=5, right=True, above=96),
    Column(title="carried", width=7, right=True, above=88),
    Column(title="cost", width=7, right=True, above=84),
    Column(title="what"),
)
CALLS: Final = (
    Column(title="call", width=5, right=True),
    Column(title="turn", width=4, right=True, above=56),
    Column(title="window", width=6, right=True),
    Column(title="came", width=6, right=True),
    Column(title="left", width=6, right=True),
    Column(title="reported", width=8, right=True, above=60),
    Column(title="cached", width=6, right=True, above=60),
    Column(title="what happened before"),
)
COMMITS: Final = (
    Column(title="n", width=4, right=True),
    Column(title="policy", width=12),
    Column(title="before", width=6, right=True),
    Column(title="after", width=6, right=True),
    Column(title="why"),
)
FOUND: Final = (
    Column(title="entry", width=7, right=True),
    Column(title="object", width=24),
    Column(title="words"),
)

_STATES: Final[dict[State, Tone]] = {"whole": "", "smaller": "warn", "gone": "dim"}


def segment_rows(segments: Iterable[Segment], picks: Picks) -> Iterator[ListRow]:
    """One row a segment; those that a brief stands for can be chosen."""
    for n, segment in enumerate(segments):
        box = ("[x]" if segment.key in picks.briefs else "[ ]") if segment.key else ""
        span = f"{segment.start}–{segment.stop - 1}" if segment.stop > segment.start else "none"
        words = f"{segment.title}: {segment.text}" if segment.text else segment.title
        yield ListRow(
            key=str(n),
            cells=(
                box,
                span,
                figures.short(segment.tokens),
                figures.short(segment.shown),
                str(len(segment.turns)),
                clean.line(words, 200),
            ),
            tones=("mark", "", "", "" if segment.shown == segment.tokens else "warn", "dim", ""),
        )


def turn_rows(turns: Iterable[Listed], picks: Picks, prices: Prices) -> Iterator[ListRow]:
    """One row a turn, each with a box."""
    for turn in turns:
        number = int(turn.object.partition(":")[2])
        yield ListRow(
            key=turn.object,
            cells=(
                "[x]" if number in picks.turns else "[ ]",
                turn.handle if number else "start",
                figures.short(turn.tokens),
                figures.short(turn.shown),
                str(turn.carried.calls),
                figures.short(turn.carried.tokens),
                figures.money(turn.carried.usd(prices), assumed=not prices.known),
                ("⚑ " if turn.pinned else "") + clean.line(turn.about, 200),
            ),
            tones=("mark", "", "", _STATES[turn.state], "dim", "dim", "dim", ""),
        )


def object_rows(objects: Iterable[Listed], prices: Prices) -> Iterator[ListRow]:
    """One row an object."""
    for each in objects:
        tone = _STATES[each.state]
        yield ListRow(
            key=each.object,
            cells=(
                "⚑" if each.pinned else "",
                clean.line(each.handle, 60),
                _state(each),
                figures.short(each.tokens),
                figures.short(each.shown),
                str(each.carried.calls),
                figures.short(each.carried.tokens),
                figures.money(each.carried.usd(prices), assumed=not prices.known),
                clean.line(each.about, 200),
            ),
            tones=("mark", "dim" if each.state == "gone" else "", tone, "", tone, "dim", "dim", "dim", "dim"),
        )


def _state(listed: Listed) -> str:
    """Whole, gone, or what made it smaller: what a strip took has a minus before it."""
    if listed.state != "smaller" or not listed.how:
        return listed.state
    return f"− {listed.how.removeprefix('strip ')}" if listed.how.startswith("strip ") else listed.how


def call_rows(history: History, calls: Iterable[CallView]) -> Iterator[ListRow]:
    """One row a call of the model, and one for what it would see next."""
    commits = {commit.n: commit for commit in history.commits}
    for call in calls:
        usage = history.usages.get(call.entry)
        cached = figures.share(usage.cache_read / usage.prompt) if usage is not None and usage.prompt else ""
        why = "; ".join(commits[n].reason for n in call.commits)
        yield ListRow(
            key=str(call.call),
            cells=(
                str(call.call),
                str(call.turn),
                figures.short(call.tokens),
                f"+{figures.short(call.came)}" if call.came else "",
                f"−{figures.short(call.left)}" if call.left > 0 else "",
                figures.short(usage.prompt) if usage is not None else "",
                cached,
                clean.line(why, 200),
            ),
            tones=("", "dim", "", "good", "bad", "dim", "dim", "warn"),
        )


def commit_rows(commits: Iterable[Commit]) -> Iterator[ListRow]:
    """One row a commit."""
    for commit in commits:
        yield ListRow(
            key=str(commit.n),
            cells=(
                str(commit.n),
                clean.line(commit.policy, 30),
                figures.short(commit.tokens_before),
                figures.short(commit.tokens_after),
                clean.line(("forced: " if commit.forced else "") + commit.reason, 200),
            ),
            tones=("", "mark", "", "good", ""),
        )


def found_rows(history: History, found: Iterable[Occurrence]) -> Iterator[ListRow]:
    """One row a block that holds the words."""
    for each in found:
        block = history.read(each.at[0]).blocks[each.at[1]]
        yield ListRow(
            key=f"entry:{each.at[0]}/{each.at[1]}",
            cells=(str(each.at[0]), clean.line(about_block(history, each.at, block), 60), each.words),
            tones=("dim", "mark", ""),
        )
