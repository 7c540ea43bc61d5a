"""JSON documents and JSON lines, pretty-printed or minified.

A container that is too heavy shows its errors, its first and last item, one item of each shape and the extreme ones, then more from the
start; what it leaves out is said by count, keys and types. Values are never decoded and written again: a pretty-printed document keeps its
own lines, and what stands on a gigantic line is quoted in slices after its path, as jq would write it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice, pairwise, repeat
from typing import Final

from tenure.engine.clip.json_items import Items, Page, documents_of, items_of, prelude
from tenure.engine.clip.json_summary import Summary, briefly, names_of
from tenure.engine.clip.naming import first_names
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


def fits(lines: Sequence[str]) -> bool:
    """Whether all of the text is JSON, but for a short prelude, a short tail, or an end that is missing."""
    return prelude(lines) is not None and documents_of(Page(lines)) is not None


def choose(lines: Sequence[str], room: int, count: Count) -> Shaped | None:
    """Errors, samples and shape in at most `room` tokens; None when the text is no JSON, or the room too small for a sample."""
    if room < LEAST or prelude(lines) is None:
        return None
    page = Page(lines)
    documents = documents_of(page)
    pieces = fitted(lines, room, count, _JsonText(page, documents).pieces) if documents else None
    if not pieces:
        return None
    how = " and, as verbatim slices, " if all(isinstance(piece, Note) for piece in pieces) else ", "
    errors = "items with errors, " if page.errors else ""
    return Shaped(pieces=pieces, why=f"its shape{how}{errors}first, last and differing items")


# Which items of a container are shown. A unit is what shares lines: bounds part the units.


class _Container:
    """The items of a container, and what is worked out of them once for all choices."""

    def __init__(self, page: Page, items: Items) -> None:
        self.page = page
        self.items = items
        self.is_laid_out = False  # whether its units stand on lines of their own
        self.is_named = False  # whether its items are named all together
        self._orders: dict[tuple[int, int], tuple[list[int], list[int]]] = {}

    @cached_property
    def bounds(self) -> Sequence[int]:
        """Where the units of a container begin whose items are laid out on lines."""
        return self.items.bounds(self.page.text)

    @cached_property
    def _summary(self) -> Summary:
        return Summary(self.items)

    @cached_property
    def _words(self) -> str:
        return self._summary.words(self.page.text)

    @cached_property
    def _all_names(self) -> list[str]:
        return names_of(self.items)

    @cached_property
    def _flawed(self) -> list[int]:
        """The items that tell of an error, ascending."""
        starts, ends, errors = self.items.starts, self.items.ends, self.page.errors
        within = errors[bisect_left(errors, starts[0]) : bisect_left(errors, ends[-1])] if starts else []
        return sorted({at - 1 for at in map(bisect_right, repeat(starts), within)})

    def is_container(self, item: int) -> bool:
        """Whether the item is an object or an array."""
        at = self.items.values_at[item]
        return self.page.text[at : at + 1] in ("{", "[")

    def weight(self, bounds: Sequence[int], unit: int) -> int:
        """What a unit weighs with its key and the comma; on lines of its own with all that these hold."""
        page = self.page
        start, stop = self.items.starts[bounds[unit]], self.items.ends[bounds[unit + 1] - 1]
        if self.is_laid_out:
            start, stop = page.starts[page.line(start)], page.starts[page.line(stop - 1) + 1] - 1
        return page.weight(start, stop) + 2

    def chosen(self, bounds: Sequence[int], share: int) -> dict[int, int]:
        """The units to show, each with the tokens it may weigh."""
        units = len(bounds) - 1
        if self.items.kind == "object" and units <= max(8, share // 8):
            return self._levelled(bounds, share)
        flawed, differing = self._order(bounds)
        wanted = _unique(chain(flawed, (0, units - 1), differing, range(units)))
        part = max(share // 3, 64)
        narrow = max(32, min(part, share * 7 // 10 // max(len(flawed), 1)))
        chosen: dict[int, int] = {}
        left, missed = share - 24, 0
        for place, unit in enumerate(wanted):
            cost = min(self.weight(bounds, unit), narrow if place < len(flawed) else part)
            gap = 0 if unit - 1 in chosen or unit + 1 in chosen else LEAST
            if cost + gap <= left:
                chosen[unit] = cost
                left -= cost + gap
                continue
            missed += 1
            if left < LEAST or missed > MISSED:
                break
        return self._widened(bounds, chosen, max(left, 0))

    def _order(self, bounds: Sequence[int]) -> tuple[list[int], list[int]]:
        """Units with errors, and those with rare shapes or extreme numbers."""
        key = bounds[0], len(bounds)
        if key not in self._orders:
            within = self._flawed[bisect_left(self._flawed, bounds[0]) : bisect_left(self._flawed, bounds[-1])]
            flawed = dict.fromkeys(_unit(bounds, item) for item in within)
            self._orders[key] = list(flawed), [_unit(bounds, item) for item in self._summary.outliers(bounds[0], bounds[-1])]
        return self._orders[key]

    def _levelled(self, bounds: Sequence[int], share: int) -> dict[int, int]:
        """Members with errors for up to half of the share, then light ones whole, and heavy ones with equal parts of what is left."""
        items, errors = self.items, self.page.errors
        units = range(len(bounds) - 1)
        weights = [self.weight(bounds, unit) for unit in units]
        least = [min(weights[unit], OPENED + LEAST if self.is_container(bounds[unit]) else LEAST) for unit in units]
        spans = [(items.starts[first], items.ends[stop - 1]) for first, stop in pairwise(bounds)]
        flawed = {unit for unit, (start, stop) in enumerate(spans) if bisect_left(errors, start) < bisect_left(errors, stop)}
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
        return self._widened(bounds, chosen, left)

    def _widened(self, bounds: Sequence[int], chosen: dict[int, int], left: int) -> dict[int, int]:
        """What is left goes to those that are shown in part, lightest first."""
        short = sorted((self.weight(bounds, unit) - part, unit) for unit, part in chosen.items())
        partly = [(lack, unit) for lack, unit in short if lack > 0]
        for place, (lack, unit) in enumerate(partly):
            more = min(lack, max(left // (len(partly) - place), left // 3))
            chosen[unit] += more
            left -= more
        return chosen

    # What is left out, in words

    def description(self, share: int) -> str:
        """Count, keys and types of all items, in at most about a quarter of the share."""
        limit = max(share // 4 * 3, 60)
        if len(self._words) <= limit:
            return self._words
        cut = self._words.rfind(", ", 0, limit)
        return self._words[: cut if cut > 0 else limit] + ", …"

    def names(self, share: int) -> str:
        """The names of heavy items, as many as a part of the share holds; empty where they have none."""
        items, size = self.items, len(self.items)
        if size < FEWEST_NAMED or self.page.weight(items.starts[0], items.ends[-1]) < max(share, HEAVY * size):
            return ""
        names = self._all_names
        costs = [weight(name) + 1 for name in names]
        text, taken = first_names(
            names, costs, int(share * (ALL_NAMES_SHARE if sum(costs) < share * ALL_NAMES_SHARE else NAMES_SHARE))
        )
        if taken < min(FEWEST_NAMED, len(names)) or not names:
            return ""
        self.is_named = True
        return f"{items.path or 'all'}, names of {plural(len(names), items.item)}: {text}"

    def gap(self, first: int, stop: int, share: int, *, described: bool) -> Note:
        """The items between two that are shown on lines."""
        words = self.left_out([(first, stop)])
        shape = "" if described or self.items.kind == "object" else f"; {self.items.path or 'all'}: {self.description(share)}"
        return Note(f"{words}{shape}", left_out=True)

    def left_out(self, left: Sequence[tuple[int, int]]) -> str:
        """How many items are left out, and of an object which; as ranges of items, ascending."""
        items = self.items
        size = sum(stop - first for first, stop in left)
        errors = sum(bisect_left(self._flawed, stop) - bisect_left(self._flawed, first) for first, stop in left)
        words = f"{size:,} of {plural(len(items), items.item)} left out" + (f", {errors:,} of them with errors" if errors else "")
        if items.kind != "object" or self.is_named:
            return words
        some = islice(chain.from_iterable(range(first, stop) for first, stop in left), NAMES)
        briefs = [(items.keys[at][:80], briefly(items.values[at], items.ends[at] - items.values_at[at])) for at in some]
        if 1 < size <= NAMES and len({brief for _, brief in briefs}) == 1:
            return f"{words}, each {briefs[0][1]}: {', '.join(name for name, _ in briefs)}"
        more = f" and {size - NAMES:,} more" if size > NAMES else ""
        return f"{words}: {', '.join(f'{name} ({brief})' for name, brief in briefs)}{more}"


def _unit(bounds: Sequence[int], item: int) -> int:
    return item - bounds[0] if isinstance(bounds, range) else bisect_right(bounds, item) - 1


def _unique(units: Iterable[int]) -> Iterator[int]:
    seen: set[int] = set()
    for unit in units:
        if unit not in seen:
            seen.add(unit)
            yield unit


# What is shown of one value, on lines of its own or in slices


class _JsonText:
    """One text and what of it is shown."""

    def __init__(self, page: Page, documents: Items) -> None:
        self._page = page
        self._documents = _Container(page, documents)
        self._containers: dict[int, _Container] = {}  # by where they begin

    def pieces(self, share: int) -> tuple[Piece, ...]:
        """Pieces of about so many tokens of estimated weight."""
        page, documents = self._page, self._documents.items
        if share < LEAST:
            return ()
        first, last = page.line(documents.starts[0]), page.line(documents.ends[-1] - 1)
        around = page.weight(0, documents.starts[0]) * (first > 0) + page.weight(documents.ends[-1], len(page.text))
        framed = around <= share // 4
        pieces: list[Piece] = [Keep(0, first)] if framed else []
        share -= around if framed else 0
        if len(documents) == 1:
            pieces += self._value(self._documents, 0, share, 0, "")
        else:
            pieces += self._laid_out(self._documents, first, last, share, 0)
        if framed and not documents.broken:
            pieces.append(Keep(last + 1, len(page.lines)))
        joined = _joined(pieces)
        return (*joined, Note("The JSON breaks off here, without its end.")) if documents.broken and joined else joined

    def _container_at(self, at: int, stop: int, path: str) -> _Container:
        if at not in self._containers:
            self._containers[at] = _Container(self._page, items_of(self._page.text, at, stop, path))
        return self._containers[at]

    def _value(self, container: _Container, item: int, share: int, depth: int, path: str) -> list[Piece]:
        """An item that stands on lines of its own."""
        page, items = self._page, container.items
        start, at, stop = items.starts[item], items.values_at[item], items.ends[item]
        first, opening, last = page.line(start), page.line(at), page.line(stop - 1)
        if page.weight(page.starts[first], page.starts[last + 1] - 1) <= share:
            return [Keep(first, last + 1)]
        edges = weight(page.lines[opening]), weight(page.lines[last])
        light = max(edges) <= min(LIGHT_LINE, share // 3)
        if share >= OPENED and depth < DEPTH and last > first and container.is_container(item) and light:
            inner = self._container_at(at, stop, path)
            end = [] if inner.items.broken else [Keep(last, last + 1)]
            inside = self._laid_out(inner, opening + 1, last - len(end), share - sum(edges), depth + 1)
            return [Keep(first, opening + 1), *inside, *end]
        return [Note("\n".join(self._slices_of(container, item, share, depth, path)), left_out=True)]

    def _laid_out(self, container: _Container, first: int, last: int, share: int, depth: int) -> list[Piece]:
        """Items on lines `first` to `last` (inclusive)."""
        page, items, bounds = self._page, container.items, container.bounds
        container.is_laid_out = True
        names = container.names(share)
        pieces: list[Piece] = [Note(names)] if names else []
        chosen = container.chosen(bounds, share - weight(names))
        done, line = 0, first
        described = False
        for unit in sorted(chosen):
            begin, end = bounds[unit], bounds[unit + 1]
            if unit > done and page.line(items.starts[begin]) > line:
                pieces.append(container.gap(bounds[done], begin, share, described=described))
                described = True
            if end - begin == 1:
                pieces += self._value(container, begin, chosen[unit], depth, items.path_of(begin))
            else:
                pieces += self._several(container, begin, end, chosen[unit], depth)
            done, line = unit + 1, page.line(items.ends[end - 1] - 1) + 1
        if done < len(bounds) - 1 and last + 1 > line:
            pieces.append(container.gap(bounds[done], len(items), share, described=described))
        return pieces

    def _several(self, container: _Container, first: int, stop: int, share: int, depth: int) -> list[Piece]:
        """Items that share lines."""
        page, items = self._page, container.items
        lines = page.line(items.starts[first]), page.line(items.ends[stop - 1] - 1) + 1
        if page.weight(page.starts[lines[0]], page.starts[lines[1]] - 1) <= share:
            return [Keep(*lines)]
        return [Note("\n".join(self._slices(container, range(first, stop + 1), share, depth)), left_out=True)]

    def _slices_of(self, container: _Container, item: int, share: int, depth: int, path: str) -> list[str]:
        """An item as lines of a note."""
        page, items = self._page, container.items
        at, stop = items.values_at[item], items.ends[item]
        label = path or "."
        if page.weight(at, stop) + weight(label) <= share:
            return [f"{label} = {page.text[at:stop]}"]
        if depth < DEPTH and share >= 2 * OPENED and container.is_container(item):
            inner = self._container_at(at, stop, path)
            if len(inner.items):
                return self._slices(inner, range(len(inner.items) + 1), share, depth + 1)
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

    def _slices(self, container: _Container, bounds: Sequence[int], share: int, depth: int) -> list[str]:
        """Items that stand on one line, as lines of a note: whole neighbours in one slice, heavy ones opened, the others counted."""
        container.is_laid_out = False
        items, text, path = container.items, self._page.text, container.items.path or "."
        keyed = items.kind == "object"
        head = f"{path}: {container.description(share)}"
        if names := container.names(share):
            head = f"{head}\n{names}"
        chosen = container.chosen(bounds, max(share - weight(head), LEAST))
        whole = {unit for unit, part in chosen.items() if container.weight(bounds, unit) <= part}
        lines: list[str] = []
        members: list[str] = []
        for first, stop in _runs(sorted(chosen), whole):
            item, last = bounds[first], bounds[stop] - 1
            if first not in whole:
                lines += self._slices_of(container, item, chosen[first], depth, items.path_of(item))
            elif keyed:
                members.append(text[items.starts[item] : items.ends[last]])
            else:
                label = items.path_of(item) + (f" to {items.path_of(last)}" if last > item else "")
                lines.append(f"{label} = {text[items.starts[item] : items.ends[last]]}")
        neighbours = pairwise((-1, *sorted(chosen), len(bounds) - 1))
        left = [(bounds[before + 1], bounds[after]) for before, after in neighbours if after > before + 1]
        if left:
            lines.append(f"{path}: {container.left_out(left)}")
        if members:
            return [f"{head}: {' … '.join(members)}", *lines]
        return lines if keyed and not left and lines else [head, *lines]  # the paths of what it holds say that it is an object


def _runs(chosen: Sequence[int], whole: set[int]) -> Iterator[tuple[int, int]]:
    """Neighbours that are shown whole, together; the others one by one. As first and stop."""
    first = stop = -1
    for unit in chosen:
        if unit != stop or unit not in whole or first not in whole:
            if first >= 0:
                yield first, stop
            first = unit
        stop = unit + 1
    if first >= 0:
        yield first, stop


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
