"""Managed conversations beside held-out ones: input tokens, dollars and misses by arm, of what a store recorded (an edge: it reads the store).

Self-GC paper, Online Input Tokens: "the average main-agent model input tokens for covered production traffic". Its caveat, that this is no billed cost,
is why dollars stand beside it here, those for helper models among them. The arms are compared by bootstrap over accounts' conversations.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from tenure.engine.lifecycle.arms import CONTROL, MANAGED, Arm
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.record.entry import ToolCall
from tenure.engine.record.tools import is_recall
from tenure.store.records import Conversation, Records

DRAWS: Final = 1_000
ROW_ARMS: Final[tuple[Arm, ...]] = (MANAGED, CONTROL, "")


class ArmConversation(Struct, frozen=True, kw_only=True):
    """What one conversation took."""

    id: str
    arm: Arm
    calls: int = 0
    input_tokens: int = 0  # as reported, cached or not
    usd: float = 0.0  # for the agent's calls
    helpers_usd: float = 0.0  # for planners, summarisers and digests
    unpriced: int = 0  # calls of which nobody knows the price
    misses: int = 0  # calls of recall: what had left and was asked for again


class ArmRow(Struct, frozen=True, kw_only=True):
    """All conversations of one arm."""

    arm: Arm
    conversations: int
    calls: int
    input_per_call: float | None
    usd: float
    helpers_usd: float
    usd_per_call: float | None  # helper models included
    misses_per_100_calls: float | None
    unpriced: int


class ArmDifference(Struct, frozen=True, kw_only=True):
    """Managed against control: the ratio of a figure per call, and where it lies in 95 of 100 draws of conversations."""

    figure: str
    ratio: float
    low: float
    high: float


class SplitReport(Struct, frozen=True, kw_only=True):
    """Both arms, those that take no part, and how the arms differ."""

    rows: tuple[ArmRow, ...]
    differences: tuple[ArmDifference, ...]


def split_of(store: Records) -> SplitReport:
    """The report of a store. O(entries), for the calls of recall."""
    found = tuple(_conversation(store, sheet) for sheet in store.conversations(None))
    rows = tuple(_row(arm, [each for each in found if each.arm == arm]) for arm in ROW_ARMS)
    return SplitReport(rows=tuple(row for row in rows if row.conversations), differences=tuple(differences(found)))


def differences(found: Iterable[ArmConversation]) -> Iterator[ArmDifference]:
    """How the arms differ per call; nothing where one has no calls. The same conversations, the same draws."""
    everyone = [each for each in found if each.calls]
    managed, control = ([each for each in everyone if each.arm == arm] for arm in (MANAGED, CONTROL))
    figures: dict[str, Callable[[ArmConversation], float]] = {
        "input tokens": lambda each: each.input_tokens,
        "dollars": lambda each: each.usd + each.helpers_usd,
        "misses": lambda each: each.misses,
    }
    for name, value in figures.items():
        pairs = [[(value(each), each.calls) for each in arm] for arm in (managed, control)]
        ratio = _ratio(*pairs)
        if ratio is None:
            continue
        drawn = sorted(
            each for n in range(DRAWS) if (each := _ratio(*(_drawn(pair, f"{name}{n}") for pair in pairs))) is not None
        )
        low, high = (drawn[int(len(drawn) * share)] for share in (0.025, 0.975)) if drawn else (ratio, ratio)
        yield ArmDifference(figure=name, ratio=ratio, low=low, high=high)


def _ratio(managed: Sequence[tuple[float, int]], control: Sequence[tuple[float, int]]) -> float | None:
    ours, theirs = (sum(value for value, _ in pairs) / max(1, sum(calls for _, calls in pairs)) for pairs in (managed, control))
    return ours / theirs if managed and theirs else None


def _drawn(pairs: Sequence[tuple[float, int]], seed: str) -> list[tuple[float, int]]:
    """As many again, drawn with replacement, by hashes."""
    stream = sha256(seed.encode()).digest()
    places: list[int] = []
    while len(places) < len(pairs):
        places += [int.from_bytes(stream[at : at + 4], "big") % len(pairs) for at in range(0, 32, 4)]
        stream = sha256(stream).digest()
    return [pairs[place] for place in places[: len(pairs)]]


def _conversation(store: Records, sheet: Conversation) -> ArmConversation:
    reports = store.usages(sheet.id)
    asides = store.asides(sheet.id)
    blocks = (block for entry in store.entries(sheet.id) for block in entry.blocks)
    return ArmConversation(
        id=sheet.id,
        arm=Terms.stored(sheet.terms).arm,
        calls=len(reports),
        input_tokens=sum(each.usage.prompt for each in reports),
        usd=sum(each.usd or 0.0 for each in reports),
        helpers_usd=sum(each.usd or 0.0 for each in asides),
        unpriced=sum(each.usd is None for each in reports) + sum(each.usd is None for each in asides),
        misses=sum(isinstance(block, ToolCall) and is_recall(block.name) for block in blocks),
    )


def _row(arm: Arm, found: Sequence[ArmConversation]) -> ArmRow:
    calls = sum(each.calls for each in found)
    usd, helpers = sum(each.usd for each in found), sum(each.helpers_usd for each in found)
    return ArmRow(
        arm=arm,
        conversations=len(found),
        calls=calls,
        input_per_call=sum(each.input_tokens for each in found) / calls if calls else None,
        usd=usd,
        helpers_usd=helpers,
        usd_per_call=(usd + helpers) / calls if calls else None,
        misses_per_100_calls=100 * sum(each.misses for each in found) / calls if calls else None,
        unpriced=sum(each.unpriced for each in found),
    )
