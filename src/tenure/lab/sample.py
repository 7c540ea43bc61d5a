"""A session made on the spot, for where no recorded one is found.

A scripted agent really searches, reads, edits and tests a copy of part of Python's own standard library, and annotates its work with
`delimiter` as the CWL paper says (section 4.2). What it does is a table, `TASKS`; no model and no network is involved. The drafts
depend on the Python release alone: times are made up, and what commands print is freed of durations and absolute paths.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.record.episodes import Answer, EpisodeGraph
from tenure.errors import InputError

PACKAGES: Final = ("concurrent", "email", "html", "http", "json", "logging", "tomllib", "urllib", "wsgiref", "xml")
CHECKS: Final = "checks"  # the package of the agent's own tests; CPython's are not installed everywhere
READ_LINES: Final = 2_000
GREP_LINES: Final = 400
COMMAND_TIMEOUT_S: Final = 20
FIRST_STEP: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
STEP: Final = timedelta(seconds=20)


class Task(Struct, frozen=True, kw_only=True):
    """What the human asks for, and how the agent goes about it: replace the words `old` by `new` in one package."""

    name: str  # its episodes are named after it
    ask: str
    package: str
    old: str
    new: str
    reads: tuple[str, ...]  # the first file holds the definition
    callers: tuple[str, ...] = ()  # read in a second expl episode
    checks: tuple[tuple[str, str], ...] = ()  # expressions and the values they must have afterwards
    builds_on: tuple[str, ...] = ()  # earlier tasks whose exploration this one uses too
    together: bool = False  # delimiter calls share a message with the calls after them
    overlooked: str = ""  # a file that the first round of edits leaves out, so that the check fails
    undeclared: bool = False  # the act is first started without dependencies, and refused
    recheck: bool = False  # ends with an act of its own that runs every check so far

    @property
    def module(self) -> str:
        """The module that holds the definition."""
        return self.reads[0].removesuffix(".py").replace("/", ".")

    @property
    def words(self) -> re.Pattern[str]:
        """Finds `old` as whole words."""
        return re.compile(rf"(?<!\w){re.escape(self.old)}(?!\w)")


TASKS: Final = (
    Task(
        name="json-encoder",
        ask="Rename the private helper _make_iterencode in json.encoder to _build_iterencode and keep the tests green. "
        "The C accelerator stays as it is.",
        package="json",
        old="_make_iterencode",
        new="_build_iterencode",
        reads=("json/encoder.py", "json/__init__.py"),
        callers=("logging/config.py", "logging/__init__.py"),
        checks=(
            ("json.encoder._build_iterencode.__name__", "'_build_iterencode'"),
            ("hasattr(json.encoder, '_make_iterencode')", "False"),
            ("json.dumps({'a': [1, None]}, indent=1)", r"'{\n \"a\": [\n  1,\n  null\n ]\n}'"),
        ),
    ),
    Task(
        name="json-decoder",
        ask="Now json.decoder: _decode_uXXXX is a riddle of a name. Call it _read_unicode_escape, everywhere.",
        package="json",
        old="_decode_uXXXX",
        new="_read_unicode_escape",
        reads=("json/decoder.py", "json/scanner.py", "json/tool.py"),
        checks=(
            ("hasattr(json.decoder, '_decode_uXXXX')", "False"),
            (r"json.decoder.py_scanstring('\"\\u00e9\"', 1)", "('é', 8)"),
        ),
        builds_on=("json-encoder",),
        together=True,
    ),
    Task(
        name="logging-config",
        ask="_clearExistingHandlers in logging.config breaks the naming rules. Make it _clear_existing_handlers; dictConfig must "
        "still reset what was there.",
        package="logging",
        old="_clearExistingHandlers",
        new="_clear_existing_handlers",
        reads=("logging/config.py", "logging/__init__.py"),
        checks=(
            ("callable(logging.config._clear_existing_handlers)", "True"),
            ("logging.config.dictConfig({'version': 1})", "None"),
        ),
        undeclared=True,
    ),
    Task(
        name="logging-port",
        ask="Our collector listens on 9120. Change the default TCP port of logging.handlers from 9020 to 9120, and nothing else: "
        "the UDP port stays 9021.",
        package="logging",
        old="DEFAULT_TCP_LOGGING_PORT    = 9020",
        new="DEFAULT_TCP_LOGGING_PORT    = 9120",
        reads=("logging/handlers.py",),
        checks=(
            ("logging.handlers.DEFAULT_TCP_LOGGING_PORT", "9120"),
            ("logging.handlers.DEFAULT_UDP_LOGGING_PORT", "9021"),
        ),
        builds_on=("logging-config",),
        recheck=True,
    ),
    Task(
        name="url-split",
        ask="In urllib.parse, _splitnetloc should read _split_netloc. Look at who parses URLs before you touch it.",
        package="urllib",
        old="_splitnetloc",
        new="_split_netloc",
        reads=("urllib/parse.py",),
        callers=("urllib/robotparser.py", "urllib/response.py", "http/cookiejar.py"),
        checks=(
            ("hasattr(urllib.parse, '_splitnetloc')", "False"),
            ("urllib.parse.urlsplit('https://user@host:81/a?b#c').netloc", "'user@host:81'"),
        ),
        together=True,
    ),
    Task(
        name="url-proxy",
        ask="Rename _parse_proxy in urllib.request to _split_proxy, doctests included.",
        package="urllib",
        old="_parse_proxy",
        new="_split_proxy",
        reads=("urllib/request.py", "urllib/error.py"),
        checks=(
            ("hasattr(urllib.request, '_parse_proxy')", "False"),
            ("urllib.request._split_proxy('http://joe:pw@proxy:3128/')", "('http', 'joe', 'pw', 'proxy:3128')"),
        ),
        builds_on=("url-split",),
    ),
    Task(
        name="mail-surrogates",
        ask="email.utils._has_surrogates is used all over the email package. Rename it to _contains_surrogates in every module and "
        "show me that messages with broken bytes still parse.",
        package="email",
        old="_has_surrogates",
        new="_contains_surrogates",
        reads=("email/utils.py", "email/_policybase.py", "email/generator.py"),
        callers=("email/policy.py", "email/message.py", "email/headerregistry.py", "email/_header_value_parser.py"),
        checks=(
            ("hasattr(email.utils, '_has_surrogates')", "False"),
            ("email.utils._contains_surrogates('plain')", "False"),
            ("str(email.message_from_bytes(b'Subject: caf\\xe9\\n\\nx')['subject'])", "'caf\\ufffd'"),
            ("email.policy.default.header_fetch_parse('To', 'a@b.c')", "'a@b.c'"),
        ),
        overlooked="email/policy.py",
        recheck=True,
    ),
    Task(
        name="http-headers",
        ask="Some upstreams send more than 100 headers. Raise the limit in http.client to 200.",
        package="http",
        old="_MAXHEADERS = 100",
        new="_MAXHEADERS = 200",
        reads=("http/client.py", "email/parser.py"),
        checks=(
            ("http.client._MAXHEADERS", "200"),
            ("len(http.client.parse_headers(io.BytesIO(b'A: b\\r\\n' * 150 + b'\\r\\n')))", "150"),
        ),
        together=True,
    ),
    Task(
        name="cookie-time",
        ask="_str2time in http.cookiejar takes parts of a date, not a string. Name it _time_from_parts.",
        package="http",
        old="_str2time",
        new="_time_from_parts",
        reads=("http/cookiejar.py", "http/cookies.py"),
        checks=(
            ("hasattr(http.cookiejar, '_str2time')", "False"),
            ("http.cookiejar.http2time('Wed, 09 Feb 1994 22:23:32 GMT')", "760832612.0"),
        ),
        builds_on=("url-split", "http-headers"),
    ),
    Task(
        name="cookie-unquote",
        ask="And in http.cookies: _unquote becomes _unquote_value, so that nobody takes it for the one in urllib.",
        package="http",
        old="_unquote",
        new="_unquote_value",
        reads=("http/cookies.py", "http/server.py"),
        checks=(
            ("hasattr(http.cookies, '_unquote')", "False"),
            (r"http.cookies.SimpleCookie('a=\"b\\073c\"')['a'].value", "'b;c'"),
        ),
        builds_on=("cookie-time",),
        together=True,
    ),
    Task(
        name="xml-escape",
        ask="ElementTree: rename _escape_cdata to _escape_text, it has nothing to do with CDATA. Leave _escape_cdata_c14n alone.",
        package="xml",
        old="_escape_cdata",
        new="_escape_text",
        reads=("xml/etree/ElementTree.py", "xml/etree/ElementPath.py", "xml/sax/saxutils.py"),
        callers=("xml/dom/minidom.py", "html/__init__.py"),
        checks=(
            ("hasattr(xml.etree.ElementTree, '_escape_cdata')", "False"),
            ("callable(xml.etree.ElementTree._escape_cdata_c14n)", "True"),
            ("xml.etree.ElementTree.tostring(xml.etree.ElementTree.XML('<a>1 &lt; 2</a>'))", "b'<a>1 &lt; 2</a>'"),
        ),
    ),
    Task(
        name="toml-chars",
        ask="Last one: skip_chars in tomllib becomes skip_any_of. Then run all the checks of today once more.",
        package="tomllib",
        old="skip_chars",
        new="skip_any_of",
        reads=("tomllib/_parser.py", "tomllib/_re.py"),
        checks=(
            ("hasattr(tomllib._parser, 'skip_chars')", "False"),
            ("tomllib.loads('[a]\\nb = [1, 2]  # c')", "{'a': {'b': [1, 2]}}"),
        ),
        recheck=True,
    ),
)


def sample_session(workspace: Path, tasks: int = len(TASKS)) -> Iterator[Draft]:
    """The drafts of a session of the first `tasks` tasks, worked through in `workspace` while they are taken.

    A task that this Python's library has nothing for is left out. Raises InputError when `workspace` holds something already or
    `tasks` is out of range.
    """
    if not 1 <= tasks <= len(TASKS):
        raise InputError("tasks", f"{tasks}", f"1 to {len(TASKS)}")
    agent = _Agent(_lay_out(workspace))
    for task in TASKS[:tasks]:
        if agent.finds(task):
            yield from agent.work(task)


def _lay_out(workspace: Path) -> Path:
    """Copy the packages, sources only and writable wherever they come from."""
    workspace.mkdir(parents=True, exist_ok=True)
    if any(workspace.iterdir()):
        raise InputError(f"{workspace}", "it holds files already", "an empty folder")
    library = Path(sysconfig.get_paths()["stdlib"])
    for package in PACKAGES:
        for source in (library / package).rglob("*.py"):
            copy = workspace / source.relative_to(library)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source.read_bytes())
    (workspace / CHECKS).mkdir()
    (workspace / CHECKS / "__init__.py").touch()
    return workspace.resolve()


# The script: what the agent says and calls, step by step. Steps are made while the session runs, so they see the files as they are.


class _Call(Struct, frozen=True):
    tool: str
    arguments: dict[str, Any]


class _Step(Struct, frozen=True, kw_only=True):
    """One message of the agent."""

    thinking: str = ""
    text: str = ""
    calls: tuple[_Call, ...] = ()

    @property
    def delimits(self) -> bool:
        """Whether it does nothing but mark an episode."""
        return bool(self.calls) and all(call.tool == "delimiter" for call in self.calls)

    def __add__(self, later: "_Step") -> "_Step":
        return _Step(
            thinking=f"{self.thinking}\n{later.thinking}".strip(),
            text=f"{self.text} {later.text}".strip(),
            calls=self.calls + later.calls,
        )


def _script(task: Task, workspace: Path, earlier: tuple[str, ...]) -> Iterator[_Step]:
    expl = [f"locate-{task.name}"]
    yield from _locate(task, workspace)
    if task.callers:
        expl.append(f"callers-of-{task.name}")
        yield from _study_callers(task)
    yield from _change(task, workspace, (*earlier, *expl))
    if task.recheck:
        yield from _recheck(task, expl[0])
    yield _Step(text=f"Done: {task.old} is now {task.new} in {task.package}, and {CHECKS}/{_check_file(task)} passes.")


def _locate(task: Task, workspace: Path) -> Iterator[_Step]:
    thinking = f"The definition should be in {task.reads[0]}, but other modules may use the name; search before reading."
    yield _Step(thinking=thinking, calls=(_start(f"locate-{task.name}", "expl"),))
    yield _Step(
        text=f"Searching {task.package} for {task.old}.",
        calls=(
            _Call("glob", {"pattern": f"{task.package}/**/*.py"}),
            _Call("grep", {"pattern": re.escape(task.old), "path": "."}),
            _Call("grep", {"pattern": r"^\s*(def|class) _?\w+", "path": task.package}),
        ),
    )
    yield _Step(calls=(_Call("ls", {"path": task.package}), _read(task.reads[0])))
    for path in task.reads[1:]:
        yield _Step(text=f"{path} belongs to it as well.", calls=(_read(path),))
    yield _Step(calls=(_end(_findings(task, workspace)),))


def _findings(task: Task, workspace: Path) -> str:
    sites = _sites(task, workspace)
    definition = re.compile(rf"\s*(def )?{re.escape(task.old)}")
    places = ", ".join(f"{path}:{number}" for path, number, _ in sites)
    defined = next((f"{path}:{number}" for path, number, line in sites if definition.match(line)), task.reads[0])
    return f"{task.old} is defined at {defined} and appears at {places}; nowhere else."


def _study_callers(task: Task) -> Iterator[_Step]:
    yield _Step(calls=(_start(f"callers-of-{task.name}", "expl"),))
    pattern = rf"^\s*(import|from) {re.escape(task.package)}\b"
    yield _Step(text="Who depends on this?", calls=(_Call("grep", {"pattern": pattern, "path": "."}),))
    for path in task.callers:
        yield _Step(calls=(_read(path),))
    yield _Step(
        thinking=f"None of them reaches for {task.old} by a string, so replacing whole words is safe.",
        calls=(_end(f"{', '.join(task.callers)} use {task.package} as usual; no lookup of {task.old} by name."),),
    )


def _change(task: Task, workspace: Path, dependencies: tuple[str, ...]) -> Iterator[_Step]:
    yield from _declare(task, dependencies)
    yield _Step(text="First a check of my own.", calls=(_write_check(task),))
    yield from _edits(task, workspace, leave_out=task.overlooked)
    yield _run(f"python -m unittest {CHECKS}.{_check_file(task).removesuffix('.py')}")
    if task.overlooked:
        said = _Step(thinking=f"I left out {task.overlooked}.", text=f"{task.overlooked} still uses the old name.")
        yield from (said + edits for edits in _edits(task, workspace))  # of one file, so in one step
        yield _run(f"python -m unittest {CHECKS}.{_check_file(task).removesuffix('.py')}")
    yield _Step(
        calls=(
            _Call("grep", {"pattern": rf"(?<!\w){re.escape(task.old)}(?!\w)", "path": task.package}),
            _Call("bash", {"command": f"python -c 'import {task.module} as module; print(module.__file__)'"}),
        )
    )
    yield _Step(calls=(_end(),))


def _declare(task: Task, dependencies: tuple[str, ...]) -> Iterator[_Step]:
    name = f"change-{task.name}"
    declared = _start(name, "act", dependencies)
    if task.undeclared:
        yield _Step(text="I know what to change.", calls=(_start(name, "act"),))
        yield _Step(thinking=f"It has to name what it builds on: {', '.join(dependencies)}.", calls=(declared,))
    else:
        yield _Step(text="I know what to change.", calls=(declared,))


def _edits(task: Task, workspace: Path, leave_out: str = "") -> Iterator[_Step]:
    """One edit per line that differs, the edits of a file in parallel."""
    by_path: dict[str, dict[str, str]] = {}
    for path, _, line in _sites(task, workspace):
        if path != leave_out:
            by_path.setdefault(path, {})[line] = task.words.sub(task.new, line)
    for path, lines in by_path.items():
        yield _Step(calls=tuple(_Call("edit", {"path": path, "old": old, "new": new}) for old, new in lines.items()))


def _recheck(task: Task, dependency: str) -> Iterator[_Step]:
    yield _Step(calls=(_start(f"recheck-after-{task.name}", "act", (dependency,)),))
    yield _run(f"python -m unittest discover -v -s {CHECKS} -t .")
    yield _Step(calls=(_end(),))


def _sites(task: Task, workspace: Path) -> list[tuple[str, int, str]]:
    """Path, line number and line of every place that holds the old words."""
    return [
        (path, number, line)
        for path in _sources(workspace, task.package)
        for number, line in enumerate(_lines(workspace / path), start=1)
        if task.words.search(line)
    ]


def _start(name: str, type_: str, dependencies: tuple[str, ...] = ()) -> _Call:
    declared = {"dependencies": list(dependencies)} if dependencies else {}
    return _Call("delimiter", {"action": "start", "name": name, "type": type_, **declared})


def _end(description: str = "") -> _Call:
    return _Call("delimiter", {"action": "end", **({"description": description} if description else {})})


def _read(path: str) -> _Call:
    return _Call("read", {"path": path})


def _run(command: str) -> _Step:
    return _Step(calls=(_Call("bash", {"command": command}),))


def _check_file(task: Task) -> str:
    return f"test_{task.name.replace('-', '_')}.py"


def _write_check(task: Task) -> _Call:
    cases = "".join(
        f"\n    def test_{number}(self):\n        self.assertEqual({expression}, {expected})\n"
        for number, (expression, expected) in enumerate(task.checks, start=1)
    )
    imports = "".join(f"import {name}\n" for name in sorted({"io", "unittest", task.module}))
    imports += "import email.policy\n" * (task.package == "email")
    content = f'"""{task.ask}"""\n\n{imports}\n\nclass Check(unittest.TestCase):{cases}'
    return _Call("write", {"path": f"{CHECKS}/{_check_file(task)}", "content": content})


def _together(steps: Iterable[_Step]) -> Iterator[_Step]:
    """The same steps, with delimiter calls in the message of the calls after them."""
    held = _Step()
    for step in steps:
        if step.delimits:
            held += step
            continue
        if step.calls:
            yield held + step
        else:  # the closing words wait for the last results
            yield from (held, step) if held.calls else (step,)
        held = _Step()


# The agent: carries the steps out and writes down what was said and done.


class _Agent:
    def __init__(self, workspace: Path) -> None:
        self._tools = _Tools(workspace)
        self._workspace = workspace
        self._located: set[str] = set()
        self._drafts = 0
        self._calls = 0

    def finds(self, task: Task) -> bool:
        """Whether there is anything to change."""
        return any(path == task.reads[0] for path, _, _ in _sites(task, self._workspace))

    def work(self, task: Task) -> Iterator[Draft]:
        """The human's words, and everything up to the agent's last answer."""
        yield self._draft(Role.USER, Text(text=task.ask, origin=Origin.HUMAN))
        earlier = tuple(f"locate-{name}" for name in task.builds_on if name in self._located)
        self._located.add(task.name)
        steps = _script(task, self._workspace, earlier)
        for step in _together(steps) if task.together else steps:
            calls = tuple(map(self._number, step.calls))
            yield self._draft(Role.ASSISTANT, *_said(step), *calls)
            if calls:
                yield self._draft(Role.TOOL, *map(self._answer, calls))

    def _draft(self, role: Role, *blocks: Block) -> Draft:
        at = FIRST_STEP + self._drafts * STEP
        self._drafts += 1
        return Draft(role=role, blocks=blocks, at=f"{at:%Y-%m-%dT%H:%M:%SZ}")

    def _number(self, call: _Call) -> ToolCall:
        self._calls += 1
        arguments = json.dumps(call.arguments, ensure_ascii=False)
        return ToolCall(call_id=f"call_{self._calls:04}", name=call.tool, arguments=arguments)

    def _answer(self, call: ToolCall) -> ToolResult:
        answer = self._tools.answer(call)
        return ToolResult(call_id=call.call_id, text=answer.text, error=answer.error)


def _said(step: _Step) -> Iterator[Block]:
    if step.thinking:
        yield Thinking(text=step.thinking)
    if step.text:
        yield Text(text=step.text, origin=Origin.MODEL)


class _Tools:
    """The agent's hands, in one folder."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace
        self._graph = EpisodeGraph([])
        self._answered = 0

    def answer(self, call: ToolCall) -> Answer:
        """Carry out `call`."""
        self._answered += 1
        if call.name == "delimiter":
            return self._graph.apply(call.arguments, at=(self._answered, 0), turn=0)
        run = {"read": _answer_read, "grep": _answer_grep, "glob": _answer_glob, "ls": _answer_ls}
        run |= {"edit": _answer_edit, "write": _answer_write, "bash": _answer_bash}
        try:
            return run[call.name](self._workspace, **json.loads(call.arguments))
        except OSError as error:  # another Python's library may lack the file
            return Answer(text=f"{call.name}: {error.strerror}", error=True)


def _answer_read(workspace: Path, path: str) -> Answer:
    lines = _lines(workspace / path)
    shown = [f"{number:6}\t{line}" for number, line in enumerate(lines[:READ_LINES], start=1)]
    rest = [f"({len(lines) - READ_LINES} more lines)"] if len(lines) > READ_LINES else []
    return Answer(text="\n".join(shown + rest))


def _answer_grep(workspace: Path, pattern: str, path: str) -> Answer:
    wanted = re.compile(pattern)
    hits = [
        f"{source}:{number}:{line}"
        for source in _sources(workspace, path)
        for number, line in enumerate(_lines(workspace / source), start=1)
        if wanted.search(line)
    ]
    rest = [f"({len(hits) - GREP_LINES} more hits)"] if len(hits) > GREP_LINES else []
    return Answer(text="\n".join(hits[:GREP_LINES] + rest) or "no hits")


def _answer_glob(workspace: Path, pattern: str) -> Answer:
    return Answer(text="\n".join(sorted(path.relative_to(workspace).as_posix() for path in workspace.glob(pattern))))


def _answer_ls(workspace: Path, path: str) -> Answer:
    entries = sorted((workspace / path).iterdir())
    return Answer(text="\n".join(f"{e.name}/" if e.is_dir() else f"{e.name}  {e.stat().st_size}" for e in entries))


def _answer_edit(workspace: Path, path: str, old: str, new: str) -> Answer:
    lines = _lines(workspace / path)
    count = lines.count(old)
    if not count:
        return Answer(text=f"{path} has no line {old!r}", error=True)
    _write(workspace / path, "\n".join(new if line == old else line for line in lines))
    return Answer(text=f"edited {path}: {count} {'line' if count == 1 else 'lines'}")


def _answer_write(workspace: Path, path: str, content: str) -> Answer:
    _write(workspace / path, content)
    return Answer(text=f"wrote {path}: {content.count(chr(10))} lines")


def _answer_bash(workspace: Path, command: str) -> Answer:
    """Run `python …`; nothing else is on this agent's path."""
    words = shlex.split(command)
    environment = {"PATH": os.defpath, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - the commands are the script's own
            [sys.executable, *words[1:]],
            cwd=workspace,
            env=environment,
            capture_output=True,
            encoding="utf-8",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(text=f"timed out after {COMMAND_TIMEOUT_S} s", error=True)
    status = f"\nexit status {done.returncode}" if done.returncode else ""
    return Answer(text=_timeless(done.stdout + done.stderr, workspace).strip() + status, error=bool(done.returncode))


def _timeless(text: str, workspace: Path) -> str:
    """The same output on any machine: no durations, no absolute paths."""
    text = text.replace(f"{workspace}{os.sep}", "").replace(sysconfig.get_paths()["stdlib"], "lib")
    return re.sub(r"in \d+\.\d+s", "in 0.01s", text)


def _sources(workspace: Path, path: str) -> list[str]:
    return sorted(source.relative_to(workspace).as_posix() for source in (workspace / path).rglob("*.py"))


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8")
