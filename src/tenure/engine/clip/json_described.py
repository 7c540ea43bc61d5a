"""What JSON values are, in words: types, keys, ranges; and which of many differ from the rest."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from operator import itemgetter, ne
from typing import Final, Literal, TypeVar, cast

from tenure.engine.clip.json_items import PLAIN_KEY, Broken, Items, items_of, spelled_as
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
    Broken: "broken",
}  # fmt: skip
_RawForm = tuple[tuple[str, ...], tuple[type, ...]]  # an item's keys and types; of what is no object its type alone
_Form = tuple[tuple[str, _Type], ...]
_Any = TypeVar("_Any", bound=tuple[object, ...])
_NUMERIC: Final[frozenset[type]] = frozenset({int, float})
_LONE: Final[Mapping[type, _RawForm]] = {each: ((), (each,)) for each in _TYPES}


class Told:
    """What is known of the items of a container all together. Worked out once: the items of a container are alike, most of the time."""

    __slots__ = ("_columns", "_kinds", "_of_one_form", "_raw", "items", "keys", "ways")

    def __init__(self, items: Items) -> None:
        self.items = items
        self._columns: dict[str, list[object]] = {}
        self._kinds: dict[str, set[type]] = {}
        self._raw: list[_RawForm] | None = None
        values = items.values
        objects = set(map(type, values)) == {dict}
        rows = cast("list[dict[str, object]]", values if objects else [value for value in values if type(value) is dict])
        spelled = set(map(tuple, rows))
        self.ways = len(spelled)  # in which keys are put together
        self.keys: tuple[str, ...] | None = spelled.pop() if objects and self.ways == 1 else None  # of every item, in order
        self._of_one_form: bool | None = None

    @property
    def of_one_form(self) -> bool:
        """Whether all items are objects of the same keys and types."""
        if self._of_one_form is None:
            self._of_one_form = self.keys is not None and all(len(self.kinds(key)) == 1 for key in self.keys)
        return self._of_one_form

    @property
    def forms(self) -> list[_RawForm]:
        """Keys and types of each item."""
        if self._raw is None:
            if self.keys is None:
                self._raw = list(map(_form_of, self.items.values))
            else:  # what is alike in all items tells none from another
                varied = tuple(key for key in self.keys if len(self.kinds(key)) > 1)
                types = zip(*(map(type, self.column(key)) for key in varied), strict=True)
                self._raw = list(zip(repeat(varied), types, strict=False))
        return self._raw

    def column(self, key: str) -> list[object]:
        """The field of that key in every item; asked only where all have it."""
        if key not in self._columns:
            self._columns[key] = list(map(itemgetter(key), cast("list[dict[str, object]]", self.items.values)))
        return self._columns[key]

    def kinds(self, key: str) -> set[type]:
        """The types in that column."""
        if key not in self._kinds:
            self._kinds[key] = set(map(type, self.column(key)))
        return self._kinds[key]


def telling(told: Told, first: int, stop: int) -> list[int]:
    """Of items `first` to `stop` those of rare forms, rarest first, and those that hold extreme numbers."""
    rare = (
        []
        if told.of_one_form
        else _rare(told.forms[first:stop])
        if told.ways <= VARIED
        else _rarest(told.items.values[first:stop])
    )
    whole = told.keys is not None and (first, stop) == (0, len(told.items))
    columns = _whole_columns(told, told.keys or ()) if whole else _columns(told.items.values[first:stop])
    return [first + item for item in (*rare, *_extremes(columns))]


def described(text: str, told: Told) -> str:
    """What all items are, by keys and types, counts exact; numbers as they are spelled."""
    items = told.items
    size = len(items)
    if items.kind == "object":
        return f"object of {plural(size, 'member')}"
    head = f"{size:,} documents" if items.kind == "documents" else f"array of {plural(size, 'item')}"
    types = Counter(_TYPES[each] for each in map(type, items.values)) if told.keys is None else Counter({"object": size})
    if list(types) != ["object"]:
        return f"{head}: {', '.join(f'{plural(n, name)}' for name, n in types.most_common())}" if types else head
    rows = cast("list[dict[str, object]]", items.values)
    if told.keys is not None:
        keys, count = told.keys, len(told.keys)
    else:
        found = Counter(chain.from_iterable(rows))
        count = len(found)
        commonest = {key for key, _ in found.most_common(KEYS)}
        keys = [key for key in found if key in commonest]
        if count > KEYS and size > LARGE and found[keys[0]] == max(found.values()) == 1:
            return f"{head}, each with keys of its own, {count:,} in all"
    fields = [_field(text, told, key) for key in keys[:KEYS]]
    more = f", {count - KEYS:,} more keys" if count > KEYS else ""
    return f"{head}, each {', '.join(fields)}{more}" if fields else f"{head}, each empty"


def briefly(value: object, characters: int) -> str:
    """A value in a word or two."""
    if isinstance(value, dict):
        return f"object of {plural(len(cast('dict[str, object]', value)), 'member')}"
    if isinstance(value, list):
        return f"array of {plural(len(cast('list[object]', value)), 'item')}"
    if isinstance(value, str):
        return f"string of {characters - 2:,}"
    if isinstance(value, Broken):
        return f"{characters:,} characters that break off"
    return _TYPES[type(value)]


# Names

NAME_KEYS: Final = (
    "name",
    "full_name",
    "title",
    "path",
    "file",
    "filename",
    "nodeid",
    "id",
    "key",
    "login",
    "url",
)  # those that say most first
NAMED: Final = 0.9  # of the items that must have a name


def names_of(items: Items) -> list[str]:
    """What each item is called, with its version: by its key, or by a field of it or of an object in it (`metadata.name`); empty when few are."""
    objects = [cast("dict[str, object]", value) for value in items.values if isinstance(value, dict)]
    if len(objects) < NAMED * len(items) or not objects:
        return []
    if items.kind == "object":
        return [_versioned(key, value) for key, value in zip(items.keys, items.values, strict=False)]
    first = objects[0]
    places = [("", key) for key in NAME_KEYS[:1]]
    places += [(outer, "name") for outer, value in first.items() if isinstance(value, dict)]
    places += [("", key) for key in NAME_KEYS[1:]]
    for outer, key in places:
        holders = [_holder(value, outer) for value in items.values]
        found = [_versioned(str(holder[key]), holder) for holder in holders if type(holder.get(key)) in (str, int)]
        if len(found) >= NAMED * len(items) and len(set(found)) * 2 > len(found):
            return found
    return []


def _holder(value: object, outer: str) -> dict[str, object]:
    held = cast("dict[str, object]", value).get(outer) if outer and isinstance(value, dict) else value
    return cast("dict[str, object]", held) if isinstance(held, dict) else {}


def _versioned(name: str, value: object) -> str:
    version = cast("dict[str, object]", value).get("version") if isinstance(value, dict) else None
    return f"{name[:80]} {version[:40]}" if isinstance(version, str) else name[:80]


# Forms


def _form_of(value: object) -> _RawForm:
    """An item's keys and the types of their values; of another item its type."""
    if type(value) is dict:
        known = cast("dict[str, object]", value)
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
    forms = {each: _form(each) for each in counts}
    firsts: dict[_Form, int] = {}
    tally: Counter[_Form] = Counter()
    for each, item in _firsts(raw, counts, len(counts)):
        firsts.setdefault(forms[each], item)
    for each, n in counts.items():
        tally[forms[each]] += n
    common = tally.most_common(1)[0][0]
    return sorted((item for form, item in firsts.items() if form != common), key=lambda item: (tally[forms[raw[item]]], item))


def _rarest(values: Sequence[object]) -> list[int]:
    """The same for items of many forms, told apart by their keys alone; so many as `VARIED`."""
    spelled = [_LONE[type(value)][1] if type(value) is not dict else tuple(cast("dict[str, object]", value)) for value in values]
    counts: Counter[tuple[object, ...]] = Counter(spelled)
    limit = sorted(counts.values())[min(VARIED, len(counts)) - 1]
    few = {form: n for form, n in counts.items() if n <= limit}
    return [item for _, item in sorted((few[form], item) for form, item in _firsts(spelled, few, VARIED))]


def _firsts(forms: Sequence[_Any], wanted: Mapping[_Any, int], most: int) -> Iterator[tuple[_Any, int]]:
    """The first item of each wanted form, in order, so many as `most`."""
    seen: set[_Any] = set()
    for item, form in enumerate(forms):
        if form in wanted and form not in seen:
            seen.add(form)
            yield form, item
            if len(seen) == most:
                return


# Numbers


_Numbers = Sequence[int | float]


def _extremes(columns: Iterator[tuple[_Numbers, Sequence[int] | None]]) -> list[int]:
    """Items that hold the largest or smallest number of their field, where it lies far outside the middle half of the field."""
    found: set[int] = set()
    for column, places in columns:
        sample = sorted(column[:: max(1, len(column) // SAMPLE)])
        lower, upper = sample[len(sample) // 4], sample[len(sample) * 3 // 4]
        for extreme in (max(column), min(column)):
            try:
                far = extreme > upper + FAR * (upper - lower) or extreme < lower - FAR * (upper - lower)
            except OverflowError:  # an integer beyond all floats
                far = True
            if far:
                at = column.index(extreme)
                found.add(at if places is None else places[at])
    return sorted(found)


def _whole_columns(told: Told, keys: Sequence[str]) -> Iterator[tuple[_Numbers, Sequence[int] | None]]:
    """Fields of all items that hold nothing but numbers; with the items they stand in, None for all."""
    if len(told.items) < ENOUGH:
        return
    first = cast("dict[str, object]", told.items.values[0])
    for key in [key for key in keys if type(first[key]) in _NUMERIC][:KEYS]:
        if told.kinds(key) <= _NUMERIC:
            yield _finite(cast("_Numbers", told.column(key)))


def _columns(values: Sequence[object]) -> Iterator[tuple[_Numbers, Sequence[int] | None]]:
    """The same of items that are not alike; or the items themselves, where they are numbers."""
    if len(values) < ENOUGH:
        return
    if set(map(type, values)) <= _NUMERIC:
        yield _finite(cast("_Numbers", values))
        return
    places = [item for item, value in enumerate(values) if type(value) is dict]
    if len(places) < ENOUGH:
        return
    rows = cast("list[dict[str, object]]", [values[item] for item in places])
    for key in [key for key, value in rows[0].items() if type(value) in _NUMERIC][:KEYS]:
        held = [row.get(key) for row in rows]
        if set(map(type, held)) <= _NUMERIC:
            numbers, within = _finite(cast("_Numbers", held))
            yield numbers, places if within is None else [places[at] for at in within]


def _finite(values: _Numbers) -> tuple[_Numbers, Sequence[int] | None]:
    if not any(map(ne, values, values)):
        return values, None
    places = [item for item, value in enumerate(values) if value == value]  # NaN has no place in an order
    return [values[item] for item in places] or [0], places or [0]


# Fields


def _field(text: str, told: Told, key: str) -> str:
    """A field: its types, how many items have it if not all do, and how long or large its values are if they are of one type."""
    rows = cast("list[dict[str, object]]", told.items.values)
    held = told.column(key) if told.keys is not None else [row[key] for row in rows if key in row]
    if told.keys is not None and len(told.kinds(key)) == 1:
        kinds = {_TYPES[next(iter(told.kinds(key)))]: len(held)}
    else:
        kinds: dict[_Type, int] = {}
        for each, n in Counter(map(type, held)).items():
            kinds[_TYPES[each]] = kinds.get(_TYPES[each], 0) + n
    name = key if PLAIN_KEY.match(key) else json.dumps(key[:80])
    some = "" if len(held) == len(rows) else f" (in {len(held):,})"
    if len(kinds) > 1:
        return f"{name}{some} {' or '.join(f'{each} ({n:,})' for each, n in kinds.items())}"
    (kind,) = kinds
    if kind == "number":
        numbers = cast("list[float]", held)
        first, last = (_spelled(text, told, key, extreme) for extreme in (min(numbers), max(numbers)))
        return f"{name}{some} number {first}" + (f" to {last}" if last != first else "")
    if kind in ("string", "array"):
        sizes = set(map(len, cast("list[str | list[object]]", held)))
        span = f"{min(sizes):,}" + (f" to {max(sizes):,}" if len(sizes) > 1 else "")
        return f"{name}{some} {kind} of {span}" + (" characters" if kind == "string" else "")
    return f"{name}{some} {kind}"


def _spelled(text: str, told: Told, key: str, number: float) -> str:
    """A number that a field of some item holds, as the text has it."""
    items = told.items
    if told.keys is not None:
        item = told.column(key).index(number)
    else:
        rows = cast("list[dict[str, object]]", items.values)
        item = next(item for item, row in enumerate(rows) if key in row and (row[key] is number or row[key] == number))
    held = items_of(text, items.values_at[item], items.ends[item], "")
    for at, end, name in zip(reversed(held.values_at), reversed(held.ends), reversed(held.keys), strict=True):
        if name == key or ("\\" in name and spelled_as(name) == key):
            return text[at:end][:40]
    return "?"
