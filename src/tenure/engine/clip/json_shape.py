"""JSON documents and JSON lines, pretty-printed or minified.

A container that is too heavy shows its errors, its first and last item, one item of each shape and the extreme ones, then more from the
start; what it leaves out is said by count, keys and types. Values are never decoded and written again: a pretty-printed document keeps its
own lines, and what stands on a gigantic line is quoted in slices after its path, as jq would write it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise, repeat
from typing import Final

from tenure.engine.clip.json_described import Told, briefly, described, names_of, telling
from tenure.engine.clip.json_items import Items, Page, documents_of, items_of, prelude
from tenure.engine.clip.shape import Keep, Note, Piece, Shaped, fitted, plural, weight
from tenure.engine.record.entry import Count

DEPTH: Final = 12  # levels that are opened; each is scanned again, and deeper ones are too small to matter
LEAST: Final = 16  # tokens; with less, a value is only named
EXCERPT: Final = 40  # characters; a shorter one tells less than the value's type and length
OPENED: Final = 48  # tokens; with less, a container is not opened
LIGHT_LINE: Final = 120  # tokens of a line that only opens or closes a container
NAMES: Final = 12  # of left out members
NAMES_SHARE: Final = 0.35  # of the room for names of items that are too heavy to be shown
ALL_NAMES_SHARE: Final = 0.6  # when that is enough for all
HEAVY: Final = 60  # tokens of an item on average, from which its name is said
FEWEST_NAMED: Final = 4  # items
MISSED: Final = 256  # units that do not fit any more before no other is tried


class JsonShape:
    """JSON as tools, `curl`, `jq` and `gh api` print it."""

    @property
    def name(self) -> str:
        """As the marker prints it."""
        return "JSON"

    def fits(self, lines: Sequence[str]) -> bool:
        """Whether all of the text is JSON, but for a short prelude, a short tail, or an end that is missing."""
        return prelude(lines) is not None and documents_of(Page(lines)) is not None

    def shaped(self, lines: Sequence[str], room: int, count: Count) -> Shaped | None:
        """Errors, samples and shape in at most `room` tokens; None when the text is no JSON, or the room too small for a sample."""
        if room < LEAST or prelude(lines) is None:
            return None
        page = Page(lines)
        documents = documents_of(page)
        if documents is None:
            return None
        return _Clip(page, documents).fitted(room, count)


class _Clip:
    """One text and what of it is shown."""

    def __init__(self, page: Page, documents: Items) -> None:
        self._page = page
        self._documents = documents
        self._known: dict[int, Items] = {}
        self._orders: dict[tuple[int, int, int], tuple[list[int], list[int]]] = {}
        self._bounds: dict[int, Sequence[int]] = {}
        self._described: dict[int, str] = {}
        self._tellings: dict[int, Told] = {}
        self._named: dict[int, list[str]] = {}
        self._flaws: dict[int, list[int]] = {}

    def fitted(self, room: int, count: Count) -> Shaped | None:
        """The fullest of a few choices that fits."""
        pieces = fitted(self._page.lines, room, count, self._pieces)
        return Shaped(pieces=pieces, why=self._why(pieces)) if pieces else None

    def _pieces(self, share: int) -> tuple[Piece, ...]:
        page, documents = self._page, self._documents
        if share < LEAST:
            return ()
        first, last = page.line(documents.starts[0]), page.line(documents.ends[-1] - 1)
        around = page.weight(0, documents.starts[0]) * (first > 0) + page.weight(documents.ends[-1], len(page.text))
        framed = around <= share // 4
        pieces: list[Piece] = [Keep(0, first)] if framed else []
        share -= around if framed else 0
        if len(documents) == 1:
            pieces += self._value(documents, 0, share, 0, "")
        else:
            pieces += self._laid_out(documents, first, last, share, 0)
        if framed and not documents.broken:
            pieces.append(Keep(last + 1, len(page.lines)))
        joined = _joined(pieces)
        if documents.broken and joined:
            return (*joined, Note("The JSON breaks off here, without its end."))
        return joined

    def _why(self, pieces: Sequence[Piece]) -> str:
        errors = "items with errors, " if self._page.errors else ""
        if all(isinstance(piece, Note) for piece in pieces):
            return f"its shape and, as verbatim slices, {errors}first, last and differing items"
        return f"its shape, {errors}first, last and differing items"

    # What is shown of one value, on lines of its own or in slices

    def _value(self, items: Items, item: int, share: int, depth: int, path: str) -> list[Piece]:
        """An item that stands on lines of its own."""
        page = self._page
        start, stop = items.starts[item], items.ends[item]
        first, last = page.line(start), page.line(stop - 1)
        if page.weight(page.starts[first], page.starts[last + 1] - 1) <= share:
            return [Keep(first, last + 1)]
        if share >= OPENED and depth < DEPTH and last > first and self._opened(items, item):
            at = items.values_at[item]
            light = min(LIGHT_LINE, share // 3)
            edges = weight(page.lines[page.line(at)]), weight(page.lines[last])
            if max(edges) <= light:
                held = self._held(at, stop, path)
                return [
                    Keep(first, page.line(at) + 1),
                    *self._laid_out(held, page.line(at) + 1, last - (not held.broken), share - sum(edges), depth + 1),
                    *(() if held.broken else (Keep(last, last + 1),)),
                ]
        return [Note("\n".join(self._slices_of(items, item, share, depth, path)), left_out=True)]

    def _laid_out(self, items: Items, first: int, last: int, share: int, depth: int) -> list[Piece]:
        """Items on lines `first` to `last` (inclusive)."""
        page = self._page
        key = items.starts[0] if items.starts else -1
        bounds = self._bounds.get(key)
        if bounds is None:
            bounds = self._bounds[key] = items.bounds(page.text)
        items.laid_out = True
        names = self._names(items, share)
        pieces: list[Piece] = [Note(names)] if names else []
        chosen = self._chosen(items, bounds, share - weight(names))
        done, line = 0, first
        described = False
        for unit in sorted(chosen):
            if unit > done:
                stop = page.line(items.starts[bounds[unit]])
                if stop > line:
                    pieces.append(self._gap(items, bounds[done], bounds[unit], share, described))
                    described = True
            if bounds[unit + 1] - bounds[unit] == 1:
                item = bounds[unit]
                pieces += self._value(items, item, chosen[unit], depth, items.path_of(item))
            else:
                pieces += self._several(items, bounds[unit], bounds[unit + 1], chosen[unit], depth)
            done, line = unit + 1, page.line(items.ends[bounds[unit + 1] - 1] - 1) + 1
        if done < len(bounds) - 1 and last + 1 > line:
            pieces.append(self._gap(items, bounds[done], len(items), share, described))
        return pieces

    def _several(self, items: Items, first: int, stop: int, share: int, depth: int) -> list[Piece]:
        """Items that share lines."""
        page = self._page
        lines = page.line(items.starts[first]), page.line(items.ends[stop - 1] - 1) + 1
        if page.weight(page.starts[lines[0]], page.starts[lines[1]] - 1) <= share:
            return [Keep(*lines)]
        return [Note("\n".join(self._slices(items, range(first, stop + 1), share, depth)), left_out=True)]

    def _slices_of(self, items: Items, item: int, share: int, depth: int, path: str) -> list[str]:
        """An item as lines of a note."""
        page = self._page
        at, stop = items.values_at[item], items.ends[item]
        label = path or "."
        if page.weight(at, stop) + weight(label) <= share:
            return [f"{label} = {page.text[at:stop]}"]
        if depth < DEPTH and share >= 2 * OPENED and self._opened(items, item):
            held = self._held(at, stop, path)
            if len(held):
                return self._slices(held, range(len(held) + 1), share, depth + 1)
        size = (share - weight(label) - 12) * 5 // 2
        if size < EXCERPT:
            return [f"{label}: {briefly(items.values[item], stop - at)}"]
        found = bisect_left(page.errors, at)
        error = page.errors[found] if found < len(page.errors) else stop
        if at + size // 2 < error < stop:
            begin = min(error, stop - size)
            return [
                f"{label} … {page.text[begin : begin + size]} ({size:,} of {stop - at:,} characters, from the first error on)"
            ]
        return [f"{label} = {page.text[at : at + size]}… (the first {size:,} of {stop - at:,} characters)"]

    def _slices(self, items: Items, bounds: Sequence[int], share: int, depth: int) -> list[str]:
        """Items that stand on one line, as lines of a note: whole neighbours in one slice, heavy ones opened, the others counted."""
        items.laid_out = False
        text, path = self._page.text, items.path or "."
        keyed = items.kind == "object"
        head = f"{path}: {self._description(items, share)}"
        if names := self._names(items, share):
            head = f"{head}\n{names}"
        chosen = self._chosen(items, bounds, max(share - weight(head), LEAST))
        whole = {unit for unit, part in chosen.items() if self._unit_weight(items, bounds, unit) <= part}
        lines: list[str] = []
        members: list[str] = []
        for first, stop in _runs(sorted(chosen), whole):
            item, last = bounds[first], bounds[stop] - 1
            if first not in whole:
                lines += self._slices_of(items, item, chosen[first], depth, items.path_of(item))
            elif keyed:
                members.append(text[items.starts[item] : items.ends[last]])
            else:
                label = items.path_of(item) + (f" to {items.path_of(last)}" if last > item else "")
                lines.append(f"{label} = {text[items.starts[item] : items.ends[last]]}")
        units = sorted(chosen)
        left = [
            (bounds[before + 1], bounds[after]) for before, after in pairwise((-1, *units, len(bounds) - 1)) if after > before + 1
        ]
        if left:
            lines.append(f"{path}: {self._left_out(items, left)}")
        if members:
            return [f"{head}: {' … '.join(members)}", *lines]
        return lines if keyed and not left and lines else [head, *lines]  # the paths of what it holds say that it is an object

    # What is left out, in words

    def _gap(self, items: Items, first: int, stop: int, share: int, described: bool) -> Note:
        said = self._left_out(items, [(first, stop)])
        shape = "" if described or items.kind == "object" else f"; {items.path or 'all'}: {self._description(items, share)}"
        return Note(f"{said}{shape}", left_out=True)

    def _left_out(self, items: Items, left: Sequence[tuple[int, int]]) -> str:
        """How many items are left out, and of an object which; as ranges of items, ascending."""
        size = sum(stop - first for first, stop in left)
        errors = sum(self._flawed(items, first, stop) for first, stop in left)
        said = f"{size:,} of {plural(len(items), items.item)} left out" + (f", {errors:,} of them with errors" if errors else "")
        if items.kind != "object" or items.named:
            return said
        briefs = [
            (items.keys[item][:80], briefly(items.values[item], items.ends[item] - items.values_at[item]))
            for item in islice(chain.from_iterable(range(first, stop) for first, stop in left), NAMES)
        ]
        if 1 < size <= NAMES and len({brief for _, brief in briefs}) == 1:
            return f"{said}, each {briefs[0][1]}: {', '.join(name for name, _ in briefs)}"
        more = f" and {size - NAMES:,} more" if size > NAMES else ""
        return f"{said}: {', '.join(f'{name} ({brief})' for name, brief in briefs)}{more}"

    def _flawed(self, items: Items, first: int, stop: int) -> int:
        """How many of the items tell of an error."""
        flawed = self._with_errors(items)
        return bisect_left(flawed, stop) - bisect_left(flawed, first)

    def _with_errors(self, items: Items) -> list[int]:
        """The items that tell of an error, ascending."""
        key = items.starts[0] if items.starts else -1
        found = self._flaws.get(key)
        if found is None:
            errors = self._page.errors
            within = errors[bisect_left(errors, items.starts[0]) : bisect_left(errors, items.ends[-1])] if items.starts else []
            found = self._flaws[key] = sorted({at - 1 for at in map(bisect_right, repeat(items.starts), within)})
        return found

    def _names(self, items: Items, share: int) -> str:
        """The names of heavy items, as many as a part of the share holds; empty where they have none."""
        size = len(items)
        if size < FEWEST_NAMED or self._page.weight(items.starts[0], items.ends[-1]) < max(share, HEAVY * size):
            return ""
        key = items.starts[0]
        names = self._named.get(key)
        if names is None:
            names = self._named[key] = names_of(items)
        costs = [weight(name) + 1 for name in names]
        left = int(share * (ALL_NAMES_SHARE if sum(costs) < share * ALL_NAMES_SHARE else NAMES_SHARE))
        taken = 0
        while taken < len(names) and (left := left - costs[taken]) > 0:
            taken += 1
        if taken < min(FEWEST_NAMED, len(names)) or not names:
            return ""
        items.named = True
        more = f", and {len(names) - taken:,} more" if taken < len(names) else ""
        return f"{items.path or 'all'}, names of {plural(len(names), items.item)}: {', '.join(names[:taken])}{more}"

    def _description(self, items: Items, share: int) -> str:
        """Count, keys and types of all items, in at most about a quarter of the share."""
        key = items.starts[0] if items.starts else -1
        text = self._described.get(key)
        if text is None:
            text = self._described[key] = described(self._page.text, self._told(items))
        limit = max(share // 4 * 3, 60)
        if len(text) <= limit:
            return text
        cut = text.rfind(", ", 0, limit)
        return text[: cut if cut > 0 else limit] + ", …"

    # Which items are shown

    def _chosen(self, items: Items, bounds: Sequence[int], share: int) -> dict[int, int]:
        """The units to show, each with the tokens it may weigh."""
        units = len(bounds) - 1
        if items.kind == "object" and units <= max(8, share // 8):
            return self._levelled(items, bounds, share)
        wanted, errors = self._order(items, bounds)
        part = max(share // 3, 64)
        narrow = max(32, min(part, share * 7 // 10 // max(errors, 1)))
        chosen: dict[int, int] = {}
        left, missed = share - 24, 0
        for place, unit in enumerate(wanted):
            cost = min(self._unit_weight(items, bounds, unit), narrow if place < errors else part)
            gap = 0 if unit - 1 in chosen or unit + 1 in chosen else LEAST
            if cost + gap > left:
                missed += 1
                if left < LEAST or missed > MISSED:
                    break
                continue
            chosen[unit] = cost
            left -= cost + gap
        return self._widened(items, bounds, chosen, max(left, 0))

    def _widened(self, items: Items, bounds: Sequence[int], chosen: dict[int, int], left: int) -> dict[int, int]:
        """What is left goes to those that are shown in part, lightest first."""
        short = sorted((self._unit_weight(items, bounds, unit) - part, unit) for unit, part in chosen.items())
        partly = [(lack, unit) for lack, unit in short if lack > 0]
        for place, (lack, unit) in enumerate(partly):
            more = min(lack, max(left // (len(partly) - place), left // 3))
            chosen[unit] += more
            left -= more
        return chosen

    def _levelled(self, items: Items, bounds: Sequence[int], share: int) -> dict[int, int]:
        """Members with errors for up to half of the share, then light ones whole, and heavy ones with equal parts of what is left."""
        units = range(len(bounds) - 1)
        weights = [self._unit_weight(items, bounds, unit) for unit in units]
        least = [min(weights[unit], OPENED + LEAST if self._opened(items, bounds[unit]) else LEAST) for unit in units]
        flawed = {unit for unit in units if self._page.flawed(items.starts[bounds[unit]], items.ends[bounds[unit + 1] - 1])}
        chosen: dict[int, int] = {}
        left = share
        for unit in sorted(units, key=lambda unit: (unit not in flawed, least[unit])):
            if least[unit] <= left:
                chosen[unit] = least[unit]
                left -= least[unit]
        for unit in flawed & set(chosen):
            more = max(min(weights[unit] - chosen[unit], share // 2 // len(flawed) - chosen[unit], left), 0)
            chosen[unit] += more
            left -= more
        return self._widened(items, bounds, chosen, left)

    def _order(self, items: Items, bounds: Sequence[int]) -> tuple[Iterator[int], int]:
        """Units by what is lost with them: those with errors (how many is said, too), first, last, rare shapes, extremes, the rest."""
        units = len(bounds) - 1
        key = items.starts[0], bounds[0], units
        known = self._orders.get(key)
        if known is None:
            with_errors = self._with_errors(items)
            within = with_errors[bisect_left(with_errors, bounds[0]) : bisect_left(with_errors, bounds[-1])]
            alone = isinstance(bounds, range)  # each item is a unit
            flawed = [item - bounds[0] for item in within] if alone else sorted({_unit(bounds, item) for item in within})
            differing = [_unit(bounds, item) for item in telling(self._told(items), bounds[0], bounds[-1])]
            known = self._orders[key] = flawed, differing
        flawed, differing = known
        return _unique(chain(flawed, (0, units - 1), differing, range(units))), len(flawed)

    def _unit_weight(self, items: Items, bounds: Sequence[int], unit: int) -> int:
        """With its key and the comma; on lines of its own with all that these hold."""
        page = self._page
        start, stop = items.starts[bounds[unit]], items.ends[bounds[unit + 1] - 1]
        if items.laid_out:
            start, stop = page.starts[page.line(start)], page.starts[page.line(stop - 1) + 1] - 1
        return page.weight(start, stop) + 2

    def _opened(self, items: Items, item: int) -> bool:
        at = items.values_at[item]
        return self._page.text[at : at + 1] in ("{", "[")

    def _told(self, items: Items) -> Told:
        key = items.starts[0] if items.starts else -1
        if key not in self._tellings:
            self._tellings[key] = Told(items)
        return self._tellings[key]

    def _held(self, at: int, stop: int, path: str) -> Items:
        if at not in self._known:
            self._known[at] = items_of(self._page.text, at, stop, path)
        return self._known[at]


# Units: the items that share lines, as bounds between them


def _unit(bounds: Sequence[int], item: int) -> int:
    return bisect_right(bounds, item) - 1


def _runs(chosen: Sequence[int], whole: set[int]) -> Iterator[tuple[int, int]]:
    """Neighbours that are shown whole, together; the others one by one. As first and stop."""
    first = stop = -1
    for unit in chosen:
        if unit == stop and unit in whole and first in whole:
            stop += 1
            continue
        if first >= 0:
            yield first, stop
        first, stop = unit, unit + 1
    if first >= 0:
        yield first, stop


def _unique(units: Iterable[int]) -> Iterator[int]:
    seen: set[int] = set()
    for unit in units:
        if unit not in seen:
            seen.add(unit)
            yield unit


def _joined(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Kept lines once each, ascending, neighbours together."""
    joined: list[Piece] = []
    end = 0
    for piece in pieces:
        if isinstance(piece, Note):
            joined.append(piece)
            continue
        start = max(piece.start, end)
        if piece.stop <= start:
            continue
        previous = joined[-1] if joined else None
        if isinstance(previous, Keep) and previous.stop == start:
            joined[-1] = Keep(previous.start, piece.stop)
        else:
            joined.append(Keep(start, piece.stop))
        end = piece.stop
    return tuple(joined)


_S = JsonShape()
fits, choose = _S.fits, _S.shaped
