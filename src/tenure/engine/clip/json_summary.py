"""What JSON values are, in words: types, keys, ranges; and which of many differ from the rest."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice, repeat
from operator import itemgetter, ne
from typing import Final, Literal, cast

from tenure.engine.clip.json_items import PLAIN_KEY, BrokenValue, Items, items_of, spelled_as
from tenure.engine.clip.shape import plural

KEYS: Final = 16  # of a described shape
SAMPLE: Final = 1_000  # numbers from which quartiles are taken
FAR: Final = 5  # interquartile ranges beyond a quartile, from which a number is extreme
ENOUGH: Final = 8  # numbers, from which one can be extreme
LARGE: Final = 1_000  # items
VARIED: Final = 512  # forms; where there are more, differing is the rule, and so many of the rarest are told apart

_Type = Literal["object", "array", "string", "number", "boolean", "null", "broken"]
_TYPES: Final[Mapping[type, _Type]] = {
    dict: "object", list: "array", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null",
    BrokenValue: "broken",
}  # fmt: skip
_Object = dict[str, object]
_RawForm = tuple[tuple[str, ...], tuple[type, ...]]  # an item's keys and types; of what is no object its type alone
_Form = tuple[tuple[str, _Type], ...]
_NUMERIC: Final[frozenset[type]] = frozenset({int, float})
_LONE: Final[Mapping[type, _RawForm]] = {each: ((), (each,)) for each in _TYPES}


class Summary:
    """What the items of a container are, all together. Worked out once: they are alike, most of the time."""

    def __init__(self, items: Items) -> None:
        self.items = items
        self._columns: dict[str, list[object]] = {}
        self._kinds: dict[str, set[type]] = {}
        values = items.values
        objects = set(map(type, values)) == {dict}
        self.rows = cast("list[_Object]", values if objects else [value for value in values if type(value) is dict])
        spelled = set(map(tuple, self.rows))
        self.ways = len(spelled)  # in which keys are put together
        self.keys: tuple[str, ...] | None = spelled.pop() if objects and self.ways == 1 else None  # of every item, in order

    @cached_property
    def forms(self) -> list[_RawForm]:
        """Keys and types of each item; where all have the same keys, of those alone whose types differ."""
        if self.keys is None:
            return list(map(_form_of, self.items.values))
        varied = tuple(key for key in self.keys if len(self.kinds(key)) > 1)
        types = zip(*(map(type, self.column(key)) for key in varied), strict=True)
        return list(zip(repeat(varied), types, strict=False))

    def column(self, key: str) -> list[object]:
        """The field of that key in every item that has it."""
        if key not in self._columns:
            rows = self.rows if self.keys is not None else [row for row in self.rows if key in row]
            self._columns[key] = list(map(itemgetter(key), rows))
        return self._columns[key]

    def kinds(self, key: str) -> set[type]:
        """The types in that column."""
        if key not in self._kinds:
            self._kinds[key] = set(map(type, self.column(key)))
        return self._kinds[key]

    def outliers(self, first: int, stop: int) -> list[int]:
        """Of items `first` to `stop` those of rare forms, rarest first, and those that hold extreme numbers."""
        if self.keys is not None and all(len(self.kinds(key)) == 1 for key in self.keys):
            rare = []
        else:
            rare = _rare(self.forms[first:stop]) if self.ways <= VARIED else _rarest(self.items.values[first:stop])
        return [first + item for item in (*rare, *self._extremes(first, stop))]

    def _extremes(self, first: int, stop: int) -> list[int]:
        """Items that hold the largest or smallest number of their field, where it lies far outside the middle half of the field."""
        extreme: set[int] = set()
        for column, places in self._numbers(first, stop):
            if any(map(ne, column, column)):  # NaN has no place in an order
                numbers = [(value, place) for value, place in zip(column, places, strict=True) if value == value]
                column, places = [value for value, _ in numbers], [place for _, place in numbers]
            if column:
                extreme.update(places[column.index(number)] for number in {max(column), min(column)} if _is_far(number, column))
        return sorted(extreme)

    def _numbers(self, first: int, stop: int) -> Iterator[tuple[Sequence[int | float], Sequence[int]]]:
        """The fields that hold nothing but numbers, with the items they stand in; or the items, where they are numbers themselves."""
        values = self.items.values[first:stop]
        if len(values) < ENOUGH:
            return
        if self.keys is None and set(map(type, values)) <= _NUMERIC:
            yield cast("list[int | float]", values), range(len(values))
            return
        places = range(len(values)) if self.keys is not None else [at for at, value in enumerate(values) if type(value) is dict]
        if len(places) < ENOUGH:
            return
        whole = self.keys is not None and len(values) == len(self.items)
        rows = cast("list[_Object]", values if self.keys is not None else [values[at] for at in places])
        for key in [key for key, value in rows[0].items() if type(value) in _NUMERIC][:KEYS]:
            column = self.column(key) if whole else [row.get(key) for row in rows]
            if (self.kinds(key) if whole else set(map(type, column))) <= _NUMERIC:
                yield cast("list[int | float]", column), places

    def words(self, text: str) -> str:
        """What all items are, by keys and types, counts exact; numbers as they are spelled."""
        items = self.items
        size = len(items)
        if items.kind == "object":
            return f"object of {plural(size, 'member')}"
        head = f"{size:,} documents" if items.kind == "documents" else f"array of {plural(size, 'item')}"
        types = (
            Counter(map(_TYPES.__getitem__, map(type, items.values))) if self.keys is None else Counter[_Type]({"object": size})
        )
        if list(types) != ["object"]:
            return f"{head}: {', '.join(plural(n, name) for name, n in types.most_common())}" if types else head
        keys: Sequence[str] = self.keys or ()
        count = len(keys)
        if self.keys is None:
            found = Counter(chain.from_iterable(self.rows))
            count = len(found)
            commonest = {key for key, _ in found.most_common(KEYS)}
            keys = [key for key in found if key in commonest]
            if count > KEYS and size > LARGE and found[keys[0]] == max(found.values()) == 1:
                return f"{head}, each with keys of its own, {count:,} in all"
        fields = [self._field(text, key) for key in keys[:KEYS]]
        more = f", {count - KEYS:,} more keys" if count > KEYS else ""
        return f"{head}, each {', '.join(fields)}{more}" if fields else f"{head}, each empty"

    def _field(self, text: str, key: str) -> str:
        """A field: its types, how many items have it if not all do, and how long or large its values are if they are of one type."""
        held = self.column(key)
        kinds = Counter(map(_TYPES.__getitem__, map(type, held) if len(self.kinds(key)) > 1 else map(type, held[:1])))
        name = key if PLAIN_KEY.match(key) else json.dumps(key[:80])
        some = "" if len(held) == len(self.rows) else f" (in {len(held):,})"
        if len(kinds) > 1:
            return f"{name}{some} {' or '.join(f'{each} ({n:,})' for each, n in kinds.items())}"
        (kind,) = kinds
        if kind == "number":
            numbers = cast("list[float]", held)
            first, last = (self._spelled(text, key, extreme) for extreme in (min(numbers), max(numbers)))
            return f"{name}{some} number {first}" + (f" to {last}" if last != first else "")
        if kind in ("string", "array"):
            sizes = set(map(len, cast("list[str | list[object]]", held)))
            span = f"{min(sizes):,}" + (f" to {max(sizes):,}" if len(sizes) > 1 else "")
            return f"{name}{some} {kind} of {span}" + (" characters" if kind == "string" else "")
        return f"{name}{some} {kind}"

    def _spelled(self, text: str, key: str, number: float) -> str:
        """A number that a field of some item holds, as the text has it."""
        if self.keys is not None:
            item = self.column(key).index(number)
        else:
            item = next(at for at, row in enumerate(self.rows) if key in row and (row[key] is number or row[key] == number))
        held = items_of(text, self.items.values_at[item], self.items.ends[item], "")
        for at, end, name in zip(reversed(held.values_at), reversed(held.ends), reversed(held.keys), strict=True):
            if name == key or ("\\" in name and spelled_as(name) == key):
                return text[at:end][:40]
        return "?"


def briefly(value: object, characters: int) -> str:
    """A value in a word or two."""
    if isinstance(value, dict):
        return f"object of {plural(len(cast('_Object', value)), 'member')}"
    if isinstance(value, list):
        return f"array of {plural(len(cast('list[object]', value)), 'item')}"
    if isinstance(value, str):
        return f"string of {characters - 2:,}"
    if isinstance(value, BrokenValue):
        return f"{characters:,} characters that break off"
    return _TYPES[type(value)]


# Names

NAME_KEYS: Final = "name full_name title path file filename nodeid id key login url".split()  # those that say most first
NAMED: Final = 0.9  # of the items that must have a name


def names_of(items: Items) -> list[str]:
    """What each item is called, with its version: by its key, or by a field of it or of an object in it (`metadata.name`); empty when few are."""
    objects = [cast("_Object", value) for value in items.values if isinstance(value, dict)]
    if len(objects) < NAMED * len(items) or not objects:
        return []
    if items.kind == "object":
        return [_versioned(key, value) for key, value in zip(items.keys, items.values, strict=False)]
    inner = [(outer, "name") for outer, value in objects[0].items() if isinstance(value, dict)]
    for outer, key in (("", NAME_KEYS[0]), *inner, *(("", key) for key in NAME_KEYS[1:])):
        holders = [_holder(value, outer) for value in items.values]
        names = [_versioned(str(holder[key]), holder) for holder in holders if type(holder.get(key)) in (str, int)]
        if len(names) >= NAMED * len(items) and len(set(names)) * 2 > len(names):
            return names
    return []


def _holder(value: object, outer: str) -> _Object:
    held = cast("_Object", value).get(outer) if outer and isinstance(value, dict) else value
    return cast("_Object", held) if isinstance(held, dict) else {}


def _versioned(name: str, value: object) -> str:
    version = cast("_Object", value).get("version") if isinstance(value, dict) else None
    return f"{name[:80]} {version[:40]}" if isinstance(version, str) else name[:80]


# Forms


def _form_of(value: object) -> _RawForm:
    """An item's keys and the types of their values; of another item its type."""
    if type(value) is dict:
        known = cast("_Object", value)
        return tuple(known), tuple(map(type, known.values()))
    return _LONE[type(value)]


def _form(raw: _RawForm) -> _Form:
    """Integers and floats are numbers, and the order of keys says nothing."""
    keys, types = raw
    if not keys:
        return (("", _TYPES[types[0]]),) if types else ()
    return tuple(sorted(zip(keys, (_TYPES[each] for each in types), strict=True)))


def _rare(raw: Sequence[_RawForm]) -> list[int]:
    """The first item of each form but the commonest, rarest forms first."""
    counts = Counter(raw)
    if len(counts) < 2:
        return []
    raw_firsts = dict(zip(reversed(raw), range(len(raw) - 1, -1, -1), strict=True))
    firsts: dict[_Form, int] = {}
    tally: Counter[_Form] = Counter()
    for each, n in counts.items():  # by their first items
        form = _form(each)
        firsts.setdefault(form, raw_firsts[each])
        tally[form] += n
    common = tally.most_common(1)[0][0]
    return [item for _, item in sorted((tally[form], item) for form, item in firsts.items() if form != common)]


def _rarest(values: Sequence[object]) -> list[int]:
    """The same for items of many forms, told apart by their keys alone; so many as `VARIED`."""
    spelled: list[tuple[object, ...]] = [
        tuple(cast("_Object", value)) if type(value) is dict else _LONE[type(value)][1] for value in values
    ]
    counts = Counter(spelled)
    limit = sorted(counts.values())[min(VARIED, len(counts)) - 1]
    few = dict(
        islice(((form, n) for form, n in counts.items() if n <= limit), VARIED)
    )  # by their first items, as they were counted
    firsts: dict[tuple[object, ...], int] = {}
    for item, form in enumerate(spelled):
        if form in few and form not in firsts:
            firsts[form] = item
            if len(firsts) == len(few):
                break
    return [item for _, item in sorted((few[form], item) for form, item in firsts.items())]


def _is_far(number: float, column: Sequence[int | float]) -> bool:
    sample = sorted(column[:: max(1, len(column) // SAMPLE)])
    lower, upper = sample[len(sample) // 4], sample[len(sample) * 3 // 4]
    try:
        return number > upper + FAR * (upper - lower) or number < lower - FAR * (upper - lower)
    except OverflowError:  # an integer beyond all floats
        return True
