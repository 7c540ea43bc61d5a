"""An account in words, a row for each question."""

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from tenure.engine.meter.figures import first_line, money, plain, tokens
from tenure.engine.policies.graph.why import PER
from tenure.lab.events import HarmLine
from tenure.lab.why.explain import REASONS, Appearance, ExpectedNeed, Now, ObjectAccount, Order, Thing, Touch, Within

LINES: Final = 3  # of a result that are shown where many stay
TOUCHES: Final = 3  # commits that are told
NEEDS: Final = 3
HANDLES: Final = 4
_FAINT: Final = 0.05  # a reason that moves a need by less says nothing
_TELLING: Final = 16  # characters: a bracket alone tells nothing
_CENT_TENTH: Final = 0.001  # USD: the least amount that is told
_LABEL: Final = 10  # characters beside every row


class AccountRow(Struct, frozen=True):
    """One line of the answer, which may wrap; a row without a label belongs to the one above. `quoted`: the session's own text."""

    label: str
    text: str
    quoted: bool = False


def title(why: ObjectAccount, width: int) -> str:
    """What the object is, in one line behind its handle."""
    thing = why.thing
    room = max(12, width - len(thing.handle) - len(thing.tool) - 3)
    about = plain(" ".join(thing.about[: 8 * room].split()))
    if " " not in about and len(about) > room:  # of a path its end tells it apart
        about = f"…{about[1 - room :]}"
    return first_line(f"{thing.tool} {about}".strip(), max(12, width - len(thing.handle) - 2))


def facts(why: ObjectAccount) -> str:
    """Its size and age, in one line."""
    thing = why.thing
    parts = [
        "failed call" if thing.failed else thing.kind,
        f"{_count(thing.lines, 'line')}, {tokens(thing.tokens)} tokens" if thing.lines else f"{tokens(thing.tokens)} tokens",
        f"turn {thing.turn}",
        f"step {thing.step:,}",
        "of the newest step" if not thing.age else f"{_count(thing.age, 'step')} ago",
    ]
    return " · ".join(parts)


def rows(why: ObjectAccount, width: int) -> Iterator[AccountRow]:
    """The answers, each a row; `width` bounds what is quoted of the session."""
    room = max(20, width - _LABEL - 4)
    yield AccountRow("asked", _asked(why.now))
    yield from _stands(why.thing, why.standing, room)
    yield from _touches(why.touched)
    yield from _held(why, room)
    if why.need is not None:
        yield from _need(why.need)
    elif why.now.policy == "graph" and why.order is not None and not _is_held(why):
        yield AccountRow("worth", "not weighed: there is too little of it to shorten, it only goes with its step")
    elif why.within is not None and why.order is not None and (why.within.is_declared or _by_episode(why)):
        yield AccountRow("episode", _place(why.within, by_level=_by_episode(why)))
    if why.order is not None:
        yield from _batch(why, why.order, room)
    yield from _later(why, room)
    yield AccountRow("get back", f"{why.recall}, or {why.command}")


def _asked(now: Now) -> str:
    when = f"at the end, after {now.calls:,} calls" if now.is_end else f"before call {now.call:,} of {now.calls:,}"
    head = f", {tokens(int(now.head * now.ratio))} of them head" if now.head else ""
    size = f"window {tokens(int((now.view + now.head) * now.ratio))} of {tokens(now.limit)} tokens{head}"
    return f"{when}; {size}; policy {now.policy}{', replayed' if now.simulated else ''}"


def _stands(thing: Thing, standing: Appearance, room: int) -> Iterator[AccountRow]:
    match standing.state:
        case "whole":
            said = "whole, as it came"
        case "restored":
            said = "whole again: it was restored"
        case "shortened":
            left = _left(standing.kept, standing.names, thing)
            said = f"shortened to {tokens(standing.tokens)} of {tokens(thing.tokens)} tokens{left}"
        case "in part":
            said = f"in part: {standing.shown:,} of {_count(thing.blocks, 'block')}, {tokens(standing.tokens)} of {tokens(thing.tokens)} tokens"
        case "gone":
            said = "not in the window"
    yield AccountRow("now", said)
    if thing.lines:
        yield from _quoted(standing.kept, room)
        yield from _named(standing.names, room)
    for residue in standing.residues:
        said = "named by" if residue.names_it else "lies in the stretch"
        yield AccountRow("", f"{said} {first_line(residue.text, max(20, room - len(said) - 1))}")
    if standing.state == "gone" and not standing.residues:
        yield AccountRow("", "nothing in the window names it any more; recall finds it by handle, path or words")


def _touches(touched: Sequence[Touch]) -> Iterator[AccountRow]:
    if not touched:
        yield AccountRow("commits", "none changed it")
        return
    shown = touched if len(touched) <= TOUCHES else (touched[0], *touched[1 - TOUCHES :])
    for number, touch in enumerate(shown):
        if number == 1 and len(shown) < len(touched):
            yield AccountRow("", f"… {_count(len(touched) - len(shown), 'commit')} more (--json has all)")
        yield AccountRow("" if number else "commits", _touch(touch))


def _touch(touch: Touch) -> str:
    change = f" {tokens(touch.before)} → {tokens(touch.after)} tokens" if touch.before != touch.after else ""
    who = "the recorded agent" if touch.moment == "recorded" else touch.policy
    return plain(
        f"{touch.commit}, before call {touch.before_call:,}: {who} {touch.deed} it{change}; {touch.reason}{_price(touch)}"
    )


def _price(touch: Touch) -> str:
    """What the whole commit moved, and what the gate expected of it."""
    if touch.gain_usd is None:
        return ""
    least = abs(touch.gain_usd) < _CENT_TENTH
    amount = money(_CENT_TENTH if least else abs(touch.gain_usd), assumed=touch.assumed)
    amount = f"less than {amount}" if least else amount
    gain = f"{'saves' if touch.gain_usd >= 0 else 'costs'} {amount}"
    return f"; all of it took {tokens(touch.removed)}, re-sent {tokens(touch.resent)}, {gain} expected{' (of an assumed price)' if touch.assumed else ''}"


def _held(why: ObjectAccount, room: int) -> Iterator[AccountRow]:
    if why.standing.state == "gone":
        return
    if not why.protected:
        yield AccountRow("protected", "no, it may go")
    for number, held in enumerate(why.protected):
        part = "" if held.every else f" ({_count(held.blocks, 'block')} of {why.thing.blocks:,})"
        yield AccountRow("" if number else "protected", first_line(f"{held.text}{part}", 4 * room))


def _need(need: ExpectedNeed) -> Iterator[AccountRow]:
    times = need.need / need.median if need.median else 1.0
    beside = f"{times:.1f} times the median" if times >= 0.1 else "hardly any beside the median"
    place = f"{'first' if need.rank == 1 else f'number {need.rank:,}'} to go of {need.of:,} results"
    whole = f"{need.need:.2f} needs expected for each {PER:,} tokens, {beside}"
    yield AccountRow("worth", f"{whole}; {place}" if need.results == 1 else f"{whole}, over its {need.results:,} results")
    for reason in [each for each in need.reasons if abs(each.weight) >= _FAINT][:REASONS]:
        yield AccountRow("", f"{'+' if reason.weight > 0 else '−'} {reason.text}")
    if need.results > 1:
        yield AccountRow("", f"first to go {need.least}, last {need.most}")


def _is_held(why: ObjectAccount) -> bool:
    """Whether nothing that is shown of it may go."""
    return any(held.every for held in why.protected)


def _by_episode(why: ObjectAccount) -> bool:
    return why.now.policy.startswith("cwl")


def _place(within: Within, *, by_level: bool) -> str:
    """Its episode, the level that takes it, and what builds on it."""
    kind = within.type if within.is_declared else f"{within.type}, not declared"
    level = f"; the level {within.level} takes it" if within.level and by_level else ""
    built = "nothing shown builds on it" if not within.dependents else f"built on by {', '.join(within.dependents[:HANDLES])}"
    return plain(f"{within.handle} ({kind}{', still open' if within.is_open else ''}){level}; {built}")


def _batch(why: ObjectAccount, order: Order, room: int) -> Iterator[AccountRow]:
    fully = _is_held(why)
    down = f"were one due now, down to {tokens(int((order.goal + why.now.head) * why.now.ratio))}"
    shorter = order.coming == "is shortened"
    after = f" to {tokens(order.tokens)} tokens{_left(order.kept, order.names, why.thing)}" if shorter else ""
    place = f"; action {order.place:,} of {order.of:,} ({order.action})" if order.place and not fully else ""
    yield AccountRow("next batch", f"{down}, it {order.coming}{after}{place}")
    if shorter and why.thing.lines:
        yield from _quoted(order.kept, room)
        yield from _named(order.names, room)
    if fully or order.coming == "leaves" or order.next_coming == "stays as it is":
        return
    yield AccountRow("then", f"with a quarter less room it {order.next_coming}{_going(order) if why.thing.lines else ''}")
    if order.next_coming == "is shortened" and why.thing.lines:
        yield from list(_quoted(order.next_to_go, room))[:1]


def _left(kept: Sequence[str], names: Sequence[str], thing: Thing) -> str:
    """How much of a result there would be."""
    if not thing.lines:
        return ""
    return f", {_count(len(kept), 'line')} of {thing.lines:,}" + (f" and {_count(len(names), 'name')}" if names else "")


def _going(order: Order) -> str:
    gone = [_count(len(each), noun) for each, noun in ((order.next_to_go, "line"), (order.next_names, "name")) if each]
    return f": {' and '.join(gone)} would go" if gone and order.next_coming != "leaves" else ""


def _later(why: ObjectAccount, room: int) -> Iterator[AccountRow]:
    if not why.later:
        if why.touched:
            yield AccountRow("needed", "no later step asked for what had left of it")
        return
    counts = {verdict: sum(need.verdict == verdict for need in why.later) for verdict in ("visible", "routed", "lost")}
    said = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.items() if count)
    yield AccountRow("needed", f"{_count(len(why.later), 'time')} after a part of it had left: {said}")
    told = sorted(why.later, key=lambda need: (need.verdict == "visible", need.call))[:NEEDS]
    for need in told:
        yield AccountRow("", _needed(need, room))


def _needed(need: HarmLine, room: int) -> str:
    way = f" ({need.verdict}{f' by {need.route}' if need.route else ''})"
    more = f" and {need.more:,} more" if need.more else ""
    start = f"call {need.call:,}: "
    return start + first_line(need.text, max(12, room - len(start) - len(way) - len(more))) + more + way


def _quoted(lines: Sequence[str], room: int) -> Iterator[AccountRow]:
    """The first lines that tell anything, the rest counted."""
    telling = [line for line in lines if len(line.strip()) >= _TELLING] or lines
    shown = telling if len(lines) <= LINES else telling[: LINES - 1]
    for line in shown:
        yield AccountRow("", f"│ {first_line(line, room - 2)}", quoted=True)
    if len(shown) < len(lines):
        yield AccountRow("", f"│ … {len(lines) - len(shown):,} more", quoted=True)


def _named(names: Sequence[str], room: int) -> Iterator[AccountRow]:
    if names:
        yield AccountRow("", f"│ names: {first_line(' '.join(names), room - 9)}", quoted=True)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
