"""Sequences of real size: tasks on the files of a repository, played by a model that reads again what it can no longer see.

The shapes are those of the CWL paper (section 6.5): which task builds on which. A task reads some ninety thousand tokens of files, writes down lines
that stand in them and in files of the tasks it builds on, and edits some of the files. The words of a task name symbols and files and never the lines, so
every line is a need: it is *visible* in the request, *routed* (a handle of the file's read stands there: one call of `recall`), or *lost* (another
search). For an edit the lines around it must stand in a row. Which files are read is decided by hashes of their paths.
"""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from tenure.apis.json_text import Json
from tenure.apis.server import Call, Reply
from tenure.engine.record.tools import DELIMITER, RECALL, name_of
from tenure.errors import InputError
from tenure.lab.bench.outcome import NeedTally
from tenure.lab.bench.sequence import CheckResult, NeedSpeaker, SequenceStep, sequence_named
from tenure.models.scripted import Playing, Script, Turn

CEILING: Final = 80_000  # provider tokens; CWL paper, section 6.1

TASK_CHARS: Final = 330_000  # of the files that a task reads: some 90,000 tokens
FILE_CHARS: Final = (8_000, 60_000)  # of a file that is read
WIDEST: Final = 400  # characters of a line; files with wider ones are not read
FACTS: Final = 12  # lines that a task writes down of its own files
EARLIER: Final = 6  # and of the files of each task that it builds on
EDITS: Final = 4
AROUND: Final = 3  # lines of an edit's passage
TOGETHER: Final = 2  # reads in one reply
SOURCES: Final = frozenset(".py .c .h .cc .cpp .ts .tsx .js .go .rs .java .rb".split())

_DEFINITION: Final = re.compile(
    r"^\s{0,8}(?:(?:export|pub|static|async|inline|public|private|protected|final|const|default)\s+)*"
    r"(?:def|class|func|function|fn|struct|interface|type|impl|int|void|long|char|double|bool|size_t)\b[\s*]+(?P<name>[A-Za-z_]\w{3,})"
)
_HANDLE: Final = re.compile(r"\b(?:read:\d+|episode:[\w.-]+)@[0-9a-f]{4,}")
_OTHERS: Final = frozenset({"site-packages", "node_modules", "vendor"})  # folders of other repositories' files
_BEFORE: Final = r"(?:[ ]*\d+\t|[^\n]{0,300}?[:-]\d+[:-])?"  # what tools print before a line

Gone = Literal["visible", "routed", "lost"]

# Which earlier tasks each task builds on.
LONG: Final = "-long"  # behind the name of the short sequence of the same shape
SHAPES: Final[Mapping[str, tuple[tuple[int, ...], ...]]] = MappingProxyType(
    {
        "canvas-long": ((), (0,), (0, 1)),  # the paper's Excalidraw
        "hashes-long": ((), (0,), (0, 1)),  # Redis
        "kernel-long": ((), (0,), (0, 1), (0, 1)),  # the Linux kernel
    }
)


class Fact(Struct, frozen=True, kw_only=True):
    """A line that defines a symbol, with the lines behind it. It stands once in its file."""

    path: str
    name: str
    lines: tuple[str, ...]

    @property
    def line(self) -> str:
        """The line itself."""
        return self.lines[0]


class LongTask(Struct, frozen=True, kw_only=True):
    """What a task reads, which lines it needs, and which passages it changes."""

    name: str
    paths: tuple[str, ...]
    facts: tuple[Fact, ...]
    earlier: tuple[Fact, ...]
    edits: tuple[Fact, ...]
    builds_on: tuple[str, ...]

    @property
    def words(self) -> str:
        """What a person asks for."""
        needed = "\n".join(f"- {fact.name} in {fact.path}" for fact in (*self.facts, *self.earlier))
        changed = "\n".join(f"- {fact.name} in {fact.path}" for fact in self.edits)
        return (
            f"Read {', '.join(self.paths)}. Then write {self.name}.md: for each of these names the line that defines it, exactly as it stands in "
            f"its file, one a line.\n{needed}\nIn front of the definitions of these put a line `{self.comment}`:\n{changed}"
        )

    @property
    def comment(self) -> str:
        """The line that its edits add."""
        return f"# {self.name}"


class LongSequence(Struct, frozen=True, kw_only=True):
    """The tasks, and where their files come from."""

    name: str
    repository: Path
    tasks: tuple[LongTask, ...]
    ceiling: int = CEILING
    stands_for: str = "tasks over files of real size, read again where a line is gone"

    @property
    def steps(self) -> tuple[SequenceStep, ...]:
        """The tasks as a person asks for them."""
        return tuple(SequenceStep(name=task.name, words=task.words) for task in self.tasks)

    def lay_out(self, folder: Path) -> None:
        """Copy the files that the tasks read into an empty folder."""
        for path in {path for task in self.tasks for path in task.paths}:
            to = folder / path
            to.parent.mkdir(parents=True, exist_ok=True)
            to.write_text((self.repository / path).read_text("utf-8"), "utf-8")

    def checked(self, step: SequenceStep, folder: Path) -> CheckResult:
        """Whether a task's lines are written down and its edits made."""
        task = next(task for task in self.tasks if task.name == step.name)
        written = folder / f"{task.name}.md"
        lines = written.read_text("utf-8").splitlines() if written.is_file() else []
        missing = [fact.name for fact in (*task.facts, *task.earlier) if fact.line not in lines]
        unchanged = [
            fact.name for fact in task.edits if f"{task.comment}\n{fact.line}" not in (folder / fact.path).read_text("utf-8")
        ]
        wrong = (("not written", missing), ("not edited", unchanged))
        return CheckResult(
            solved=not missing and not unchanged, said="; ".join(f"{what}: {', '.join(names)}" for what, names in wrong if names)
        )

    def speaker(self, *, episodes: bool) -> "ReadingSpeaker":
        """The model that plays it, as whom the short sequence of its shape is billed. `episodes`: it marks them."""
        short = sequence_named(self.name.removesuffix(LONG))
        return ReadingSpeaker(self.tasks, Playing(model=short.model, dialect=short.dialect), episodes=episodes)


def long_sequence(name: str, repository: Path, size: int = TASK_CHARS) -> LongSequence:
    """The sequence of that name over a repository's files, of which each task reads `size` characters. Raises InputError where there are too few."""
    shape = SHAPES[name]
    tasks: list[LongTask] = []
    files = _files(repository)
    for number, bases in enumerate(shape):
        paths: list[str] = []
        found: list[Fact] = []
        chars = 0
        while chars < size:
            path, text = next(files, ("", ""))
            if not path:
                raise InputError(str(repository), "too few source files", f"some {len(shape) * size:,} characters of them")
            if facts := _facts(path, text):
                paths.append(path)
                found += facts
                chars += len(text)
        chosen = sorted(found, key=lambda fact: _hash(f"{name}{fact.path}{fact.name}"))
        earlier = [fact for base in bases for fact in tasks[base].facts[:EARLIER]]
        tasks.append(
            LongTask(
                name=f"task-{number + 1}",
                paths=tuple(paths),
                facts=tuple(chosen[:FACTS]),
                earlier=tuple(earlier),
                edits=tuple(chosen[FACTS : FACTS + EDITS]),
                builds_on=tuple(f"read-{base + 1}" for base in (*bases, number)),
            )
        )
    return LongSequence(name=name, repository=repository, tasks=tuple(tasks))


def _files(repository: Path) -> Iterator[tuple[str, str]]:
    """Source files of a fitting size with their texts, in the order of their paths' hashes."""
    least, most = FILE_CHARS
    found = {
        path.relative_to(repository): path for path in repository.rglob("*") if path.suffix in SOURCES and not path.is_symlink()
    }
    own = [path for inner, path in found.items() if path.is_file() and _OTHERS.isdisjoint(inner.parts)]
    for path in sorted(own, key=lambda path: _hash(path.relative_to(repository).as_posix())):
        if not least <= path.stat().st_size <= most:
            continue
        try:
            text = path.read_text("utf-8")
        except UnicodeError:
            continue
        if all(len(line) <= WIDEST and line.replace("\t", "").isprintable() for line in text.splitlines()):
            yield path.relative_to(repository).as_posix(), text


def _facts(path: str, text: str) -> list[Fact]:
    """The definitions in a text whose line, and whose name among definitions, stands there once."""
    lines = text.splitlines()
    matches = [(n, match["name"]) for n, line in enumerate(lines) if (match := _DEFINITION.match(line))]
    names = [name for _, name in matches]
    return [
        Fact(path=path, name=name, lines=tuple(lines[n : n + AROUND]))
        for n, name in matches
        if names.count(name) == 1 and lines.count(lines[n]) == 1 and len(lines[n]) >= 16 and n + AROUND <= len(lines)
    ]


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class _Request:
    """What a request shows: its texts, and the names of its tools."""

    def __init__(self, body: bytes) -> None:
        request: dict[str, Any] = msgspec.json.decode(body)
        self.tools = frozenset(name_of(tool) for tool in request.get("tools", ()))
        self._text = "\n".join(_strings(request.get("messages", ())))

    def shows(self, lines: Sequence[str]) -> bool:
        """Whether these lines stand there in a row, be it behind the numbers that tools print."""
        if len(lines) == 1:
            return lines[0] in self._text
        return re.search("\n".join(_BEFORE + re.escape(line) for line in lines), self._text) is not None

    def handle(self, path: str) -> str:
        """The handle of a read of that file, or of the episode that read it, as a note names it; empty where none does."""
        for line in self._text.split("\n"):
            at = line.find(path.rpartition("/")[2])
            if at >= 0 and (handles := list(_HANDLE.finditer(line))):
                return min(handles, key=lambda handle: abs(handle.start() - at))[0]
        return ""


def _strings(value: Json) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict() | list():
            for each in value.values() if isinstance(value, dict) else value:
                yield from _strings(each)
        case _:
            pass


class ReadingSpeaker(NeedSpeaker):
    """A model that knows what it looks for, and answers each request by what it shows. Mutable. Lives for a whole sequence."""

    def __init__(self, tasks: Sequence[LongTask], playing: Playing, *, episodes: bool) -> None:
        super().__init__(Script(replies=(), playing=playing))
        self._episodes = episodes
        self._work = self._played(tasks)
        self._begun = False

    def turn(self, body: bytes) -> Turn:
        """The next reply."""
        request = _Request(body)
        if self._begun:
            return self._work.send(request)
        self._begun = True
        next(self._work)
        return self._work.send(request)

    def _played(self, tasks: Sequence[LongTask]) -> "Generator[Reply, _Request, None]":
        shown = yield Reply()  # taken by nobody: the first request comes with it
        for task in tasks:
            self.tallies[task.name] = NeedTally()
            shown = yield from self._explored(task, shown)
            shown = yield from self._changed(task, shown)

    def _explored(self, task: LongTask, shown: _Request) -> "Generator[Reply, _Request, _Request]":
        number = task.name.rpartition("-")[2]
        for at in range(0, len(task.paths), TOGETHER):
            marks = self._mark(action="start", name=f"read-{number}", type="expl") if at == 0 else ()
            reads = tuple(_call("read", path=path) for path in task.paths[at : at + TOGETHER])
            shown = yield Reply(text="I read on.", calls=(*marks, *reads))
        described = "; ".join(f"{path} defines {', '.join(_named(task, path)) or 'nothing needed'}" for path in task.paths)
        marks = (
            *self._mark(action="end", description=described),
            *self._mark(action="start", name=f"write-{number}", type="act", dependencies=list(task.builds_on)),
        )
        return (yield Reply(text="I mark where I am.", calls=marks)) if marks else shown

    def _changed(self, task: LongTask, shown: _Request) -> "Generator[Reply, _Request, _Request]":
        for fact in (*task.facts, *task.earlier):
            shown = yield from self._seen(task, fact, fact.lines[:1], shown)
        content = "\n".join(fact.line for fact in (*task.facts, *task.earlier))
        shown = yield Reply(text="I write them down.", calls=(_call("write", path=f"{task.name}.md", content=f"{content}\n"),))
        for fact in task.edits:
            shown = yield from self._seen(task, fact, fact.lines, shown)
            old = "\n".join(fact.lines)
            shown = yield Reply(text="I edit.", calls=(_call("edit", path=fact.path, old=old, new=f"{task.comment}\n{old}"),))
        if marks := self._mark(action="end"):
            shown = yield Reply(text="I end it.", calls=marks)
        return (yield Reply(text=f"{task.name} is done."))

    def _seen(self, task: LongTask, fact: Fact, lines: Sequence[str], shown: _Request) -> "Generator[Reply, _Request, _Request]":
        """Have the lines in the request: they are there, a handle leads to them, or they are looked for again."""
        gone: Gone = "visible" if shown.shows(lines) else "lost"
        if gone == "lost" and len(lines) == 1 and RECALL in shown.tools and (handle := shown.handle(fact.path)):
            shown = yield Reply(text="", calls=(_call(RECALL, handle=handle, pattern=re.escape(fact.line.strip())),))
            gone = "routed" if shown.shows(lines) else "lost"
        if gone == "lost":
            around = {"context": AROUND - 1} if len(lines) > 1 else {}
            again = _call("grep", pattern=fact.line.strip(), path=fact.path, literal=True, **around)
            shown = yield Reply(text="I look again.", calls=(again,))
        self.tallies[task.name] = self.tallies[task.name].plus(gone, is_edit=len(lines) > 1)
        return shown

    def _mark(self, **arguments: Any) -> tuple[Call, ...]:
        return (_call(DELIMITER, **arguments),) if self._episodes else ()


def _named(task: LongTask, path: str) -> list[str]:
    return [fact.name for fact in (*task.facts, *task.edits) if fact.path == path]


def _call(tool: str, **arguments: Any) -> Call:
    return Call(name=tool, arguments=msgspec.json.encode(arguments).decode())
