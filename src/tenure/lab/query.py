"""Events as tables that SQL can ask: DuckDB views over JSON lines, one view for each type of event.

The columns of a view are the fields of its event in `tenure.lab.events` or `measured`: numbers, texts, lists, structs and maps. Texts with several shapes are
JSON. A column is null where a line leaves it out; a field or a type of event that is not known is ignored.
"""

# ruff: noqa: S608 - the names in these statements are this module's own

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, TracebackType
from typing import Final, Self

import duckdb
from msgspec import Struct, inspect

from tenure.engine.record.visible import json_of
from tenure.errors import InputError
from tenure.lab.events import spelled
from tenure.lab.measured import EVENTS
from tenure.lab.query_process import MEMORY, NO_MEMORY, QueryAnswer, write

# The views that unfold the lists of others, as the columns that they have and what they are made of.
_UNFOLDED: Final = MappingProxyType(
    {
        "blocks": "select e.entry, e.role, e.turn, e.source, unnest(e.blocks, recursive := false) as b from entries e",
        "edits": 'select c."commit", c.before_call, c.moment, c.policy, unnest(c.edits) as b from commits c',
        "actions": 'select c."commit", c.before_call, c.moment, c.policy, unnest(c.actions) as b from commits c',
    }
)
_SCALARS: Final[Mapping[type, str]] = MappingProxyType(
    {inspect.IntType: "BIGINT", inspect.FloatType: "DOUBLE", inspect.BoolType: "BOOLEAN", inspect.StrType: "VARCHAR"}
)


class Events:
    """A set of events that can be asked, in the order in which they were written. Mutable; a context manager."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._database = duckdb.connect(config={"threads": 1, "preserve_insertion_order": True})
        names = [str(file) for file in files]
        source = (
            "read_ndjson_objects(?, maximum_object_size := 1073741824)"
            if names
            else "(select null::JSON as json where ?::VARCHAR[] is null)"
        )
        self._run(f"create table raw as select row_number() over () as n, json->>'type' as type, json from {source}", [names])
        for view, event in EVENTS.items():
            self.view(view, event)
        for view, made in _UNFOLDED.items():
            self._run(f"create view {view} as select * exclude (b), unnest(b) from ({made})")

    @classmethod
    def of(cls, events: Iterable[object]) -> Self:
        """Events that are at hand."""
        with TemporaryDirectory(prefix="tenure-") as folder:
            file = Path(folder, "events.jsonl")
            write(file, events)
            return cls([file])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._database.close()

    def view(self, name: str, event: type[Struct]) -> None:
        """A view of another type of event than `EVENTS` has."""
        structure = json_of(columns_of(event)).decode().replace("'", "''")
        tag = event.__struct_config__.tag
        self._run(f"create table {name} as select unnest(from_json(json, '{structure}')), n from raw where type = '{tag}'")

    def add(self, name: str, columns: Mapping[str, str], rows: Sequence[Sequence[object]]) -> None:
        """A table of other facts beside the events; `columns` are DuckDB types by name."""
        self._run(f"create table {name} ({', '.join(f'{column} {kind}' for column, kind in columns.items())})")
        if rows:
            self._database.executemany(f"insert into {name} values ({', '.join('?' * len(columns))})", rows)

    def script(self, sql: str) -> None:
        """Statements that define views and macros."""
        self._run(sql)

    def seal(self) -> None:
        """Let queries see nothing but the events, no file and no network, and hold at most MEMORY bytes, from here on."""
        self._run(f"set memory_limit = '{MEMORY} bytes'; set temp_directory = ''")
        self._run("set enable_external_access = false; set lock_configuration = true")

    def ask(self, sql: str, **values: object) -> QueryAnswer:
        """The rows of a query with `$name` for values. Raises InputError with what is wrong in it, and where."""
        return self.first(sys.maxsize, sql, **values)

    def first(self, most: int, sql: str, /, **values: object) -> QueryAnswer:
        """The first `most` rows of a query."""
        try:
            result = self._database.execute(spelled(sql), values or None)
            if not result:  # nothing but blanks, comments or semicolons
                raise InputError("query", f"no statement in {sql!r}", 'one, as in "select * from calls"')
            columns = tuple(str(column[0]) for column in result.description or ())
            return QueryAnswer(columns, tuple(result.fetchall() if most == sys.maxsize else result.fetchmany(most)))
        except (duckdb.OutOfMemoryException, MemoryError) as error:
            raise InputError("query", NO_MEMORY, "a query that holds less") from error
        except duckdb.Error as error:
            raise InputError("query", _sentence(error)) from error

    def _run(self, sql: str, values: Sequence[object] | None = None) -> None:
        self._database.execute(sql, values)


def tables() -> dict[str, tuple[str, ...]]:
    """Every view with its columns."""
    with Events([]) as nothing:
        views = nothing.ask("select table_name from information_schema.tables where table_name <> 'raw' order by all").rows
        return {view: nothing.ask(f"select * from {view}").columns for (view,) in views}


def columns_of(event: type[Struct]) -> dict[str, str]:
    """The DuckDB type of each field of an event."""
    info = inspect.type_info(event)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: _kind(field.type) for field in info.fields}


def _kind(of: inspect.Type) -> str:
    """How DuckDB holds a field: what has several shapes as JSON."""
    for scalar, name in _SCALARS.items():
        if isinstance(of, scalar):
            return name
    match of:
        case inspect.LiteralType() | inspect.EnumType():
            return "VARCHAR" if all(isinstance(each, str | Enum) for each in _values(of)) else "JSON"
        case inspect.VarTupleType() | inspect.ListType():
            return f"{_kind(of.item_type)}[]"
        case inspect.TupleType():
            kinds = {_kind(each) for each in of.item_types}
            return f"{kinds.pop()}[]" if len(kinds) == 1 else "JSON"
        case inspect.DictType():
            return f"MAP(VARCHAR, {_kind(of.value_type)})"
        case inspect.StructType():
            return _struct([of])
        case inspect.UnionType():
            kinds = [each for each in of.types if not isinstance(each, inspect.NoneType) and type(each).__name__ != "UnsetType"]
            structs = [each for each in kinds if isinstance(each, inspect.StructType)]
            if len(structs) == len(kinds) > 1:
                return _struct(structs)
            return _kind(kinds[0]) if len(kinds) == 1 else "JSON"
        case _:
            return "JSON"


def _values(of: "inspect.LiteralType | inspect.EnumType") -> Iterable[object]:
    return of.values if isinstance(of, inspect.LiteralType) else of.cls


def _struct(structs: Sequence[inspect.StructType]) -> str:
    """The fields of a struct, or of all that may stand in one place, their tag first."""
    fields = {str(structs[0].tag_field): "VARCHAR"} if structs[0].tag_field else {}
    for each in structs:
        fields |= {field.encode_name: _kind(field.type) for field in each.fields}
    return "STRUCT(" + ", ".join(f'"{name}" {kind}' for name, kind in fields.items()) + ")"


def _sentence(error: duckdb.Error) -> str:
    """The first line of what DuckDB says, in the words of the person who asked."""
    text = str(error).strip().split("\n\n")[0]
    return re.sub(r"^(\w+ )?Error: ", "", " ".join(text.split()))
