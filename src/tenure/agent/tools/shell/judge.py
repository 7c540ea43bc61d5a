"""What a shell command may change, judged from its words alone. When it cannot be told, it is not free.

Every command in the text counts, wherever it stands; the worst of them decides. Paths are judged by where they lead, for every folder the
script may have gone to by then.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from glob import iglob
from itertools import islice
from pathlib import Path
from typing import Final, assert_never

from msgspec import Struct, structs

from tenure.agent.approval import Act, Approval
from tenure.agent.secrets import may_be_secret
from tenure.agent.tools.shell.below import Below, below
from tenure.agent.tools.shell.bindings import Bindings
from tenure.agent.tools.shell.effects import (
    OPAQUE,
    Asks,
    Destroys,
    Effect,
    Expects,
    Moves,
    Overwrites,
    Prints,
    Reaches,
    Reads,
    Repository,
    Runs,
    RunsFile,
    RunsInput,
    RunsText,
    Writes,
)
from tenure.agent.tools.shell.programs import effects
from tenure.agent.tools.shell.reader import parsed
from tenure.agent.tools.shell.repository import unsafe_setting
from tenure.agent.tools.shell.script import PROCESS, Command, Redirect, Word
from tenure.agent.tools.shell.tables import PROSE, destructive, is_harmless, is_public, sounds_secret
from tenure.agent.workspace import Workspace
from tenure.engine.record.visible import visible
from tenure.errors import InputError

DEEPEST: Final = 6  # scripts within scripts
WORDS: Final = 3_000  # in all its commands
FOLDERS: Final = 8  # that a script may have gone to
SUMMARY: Final = 120  # characters
DETAIL: Final = 8_000

_ORDER: Final = tuple(Act)  # the worst is last
_NOWHERE: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", PROCESS})
_WRITING: Final = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
_MATCHES: Final = 2_000  # files that a pattern is tried on


class Finding(Struct, frozen=True, kw_only=True, gc=False):
    """Something that a command may change."""

    act: Act
    reason: str
    key: str = ""


def judged(command: str, workspace: Workspace, *, path: str = "", disk: bool = True) -> Approval | None:
    """What a command needs: None when it only looks. `path` is where its programs are looked for, as in PATH.

    Without `disk`, folders are not looked through and settings of git not read: for commands that ran elsewhere.
    """
    judge = _Judge(workspace, path, disk=disk)
    judge.text(command, 0)
    judge.end()
    if not judge.found:
        return None
    worst = max(judge.found, key=lambda found: _ORDER.index(found.act))
    keys = [found.key for found in judge.found]
    shown = visible(command.strip())
    first, more, _ = shown.partition("\n")
    summary = first[:SUMMARY] + "…" * (bool(more) or len(first) > SUMMARY)
    remembered = worst.act is not Act.DESTROY
    return Approval(
        tool="bash",
        act=worst.act,
        summary=summary,
        reason=worst.reason,
        detail=shown[:DETAIL] + (f"\n[{len(shown) - DETAIL:,} more characters]" if len(shown) > DETAIL else ""),
        exact=f"bash {command}" if remembered else "",
        broad=tuple(dict.fromkeys(keys)) if worst.act is Act.COMMAND and all(keys) else (),
    )


def is_plain(words: Sequence[Word]) -> bool:
    """Whether a command's words need no second look: rm is judged by its own rule, and a commit's message is said to people."""
    return (
        words[0].text == "rm"
        or (words[0].text, next((word.text for word in words[1:] if not word.text.startswith("-")), "")) in PROSE
    )


_CLASS: Final = re.compile(r"\[[!^]?\]?(?:\[([:.=])[^\]]{0,64}\1\]|[^\]])*\]")


def _loose(pattern: str) -> str:
    """A pattern in which a class of characters is any character: shells have classes (`[^a]`, `[[:alpha:]]`) that Python's patterns have not."""
    closed, bracket, rest = pattern.rpartition("]")  # so that each class has an end, and is read once
    return _CLASS.sub("?", closed + bracket) + rest.replace("[", "?")


class _Judge:
    """Collects what it finds. Mutable."""

    def __init__(self, workspace: Workspace, path: str, *, disk: bool) -> None:
        self.found: list[Finding] = []
        self._left = WORDS
        self._workspace, self._disk = workspace, disk
        self._folders: list[Path] | None = [workspace.root]  # None: it cannot be told
        self._bindings = Bindings({})
        self._own = [
            folder for folder in path.split(os.pathsep) if path and (not folder.startswith("/") or workspace.holds(Path(folder)))
        ]
        self._count = 0  # of commands
        self._feeds = False  # whether the output of the one at hand goes to others
        self._tellers: set[int] = set()  # commands that print a text of their own for others
        self._names: list[Path] = []  # folders of which names are printed
        self._later: list[tuple[int, Reads | Expects, Bindings]] = []  # what depends on what the other commands print
        self._written: set[Path] = set()
        self._looked: dict[tuple[Path, bool, tuple[str, ...]], Below] = {}

    def end(self) -> None:
        """Judge what depends on the whole."""
        if self.found or not self._later:
            return
        for number, effect, bindings in self._later:
            word = effect.word if isinstance(effect, Expects) else effect.target
            if self._tellers - {number} or not bindings.is_output(word):
                shown = visible(word.text)[:40]
                self._add(Act.COMMAND, f"what {shown!r} is can only be told when it runs")
                return
        if self._folders is None:
            self._add(Act.COMMAND, "which files it reads can only be told when it runs")
            return
        for folder in dict.fromkeys([*self._folders, *self._names]):
            self._deep(Reads(target=Word(text=str(folder)), deep=True), names=True)

    def text(self, text: str, depth: int, *, feeds: bool = False) -> None:
        """Judge a script; `feeds`: its output goes to other commands."""
        if depth > DEEPEST:
            self._add(Act.DESTROY, "it has too many scripts within scripts")
            return
        script = parsed(text, self._known(text))
        outer, self._bindings = self._bindings, self._bindings.of(script)
        for name in sorted(script.variables):
            if not self._bindings.knows(name) and not is_public(name):
                act = Act.OUTSIDE if sounds_secret(name) else Act.COMMAND
                self._add(act, f"it uses ${name}, which it does not set")
        for odd in script.odd:
            self._add(Act.DESTROY, f"it has {odd}: what it does cannot be judged beforehand")
        for unknown in script.unknown:
            self._add(Act.COMMAND, f"it has {unknown}, which can only be told when it runs")
        if script.odd or script.unknown:
            self._phrases(text)
        for command in script.commands:
            self._count += 1
            self._feeds = feeds or command.feeds
            self._command(command, depth)
            if self._left < 0:
                self._add(Act.DESTROY, "it is too long to be judged beforehand")
                break
        if depth:
            self._bindings = outer

    def _known(self, text: str) -> Mapping[str, str]:
        """Variables with a settled value; the folder only as long as it stays."""
        workspace = self._workspace
        stays = {} if "cd" in text or "pushd" in text else {"PWD": str(workspace.root)}
        return {"HOME": str(workspace.home), **stays, **({"TMPDIR": str(workspace.scratch)} if workspace.scratch else {})}

    def _command(self, command: Command, depth: int) -> None:
        self._left -= len(command.assignments)
        reads = bool(command.words) and command.words[0].text in ("read", "mapfile", "readarray")
        for assignment in command.assignments:
            value = assignment.value.text
            if not is_harmless(assignment.name, value) and not (reads and assignment.name == "IFS"):
                self._add(Act.COMMAND, f"it sets {assignment.name}, which may change what other commands do")
            if "$(" in value or "`" in value:  # in a sum, for one, it would be run
                self._add(Act.DESTROY, f"it hides a command in the variable {assignment.name}")
            self._secret(assignment.value)
        for redirect in command.redirects:
            self._redirect(redirect)
        if command.words:
            self._words(command.words, command.redirects, depth)

    def _words(self, words: Sequence[Word], redirects: Sequence[Redirect], depth: int) -> None:
        self._left -= len(words)
        if self._left < 0:
            return
        found = effects(words)
        self._program(words[0])
        if any(isinstance(effect, Asks | Reaches | Destroys | Runs | RunsText | RunsInput) for effect in found):
            for word in words:
                self._secret(word)
        prints = next((effect for effect in found if isinstance(effect, Prints)), None)
        if prints is None and not any(isinstance(effect, Runs | RunsText) for effect in found):
            self._tell(self._count)
        for effect in found:
            self._effect(effect, redirects, depth)
            if isinstance(effect, Reads) and (
                (prints is not None and prints.names) or any(isinstance(each, Runs) for each in found)
            ):
                self._hand_on(effect.target)
        if any(isinstance(effect, Asks | Reaches) for effect in found) and not is_plain(words):
            self._phrases(
                "\n".join(
                    [" ".join(word.text for word in words), *(redirect.body or redirect.target.text for redirect in redirects)]
                )
            )

    def _effect(self, effect: Effect, redirects: Sequence[Redirect], depth: int) -> None:
        match effect:
            case Asks(reason=reason, key=key):
                self._add(Act.COMMAND, reason, key)
            case Reaches(reason=reason):
                self._add(Act.OUTSIDE, reason)
            case Destroys(reason=reason):
                self._add(Act.DESTROY, reason)
            case Writes(target=target):
                self._write(target)
            case Overwrites(target=target, by=by):
                self._write(target)
                self._lose(target, by)
            case RunsFile(file=word):
                self._script(word)
            case Reads():
                self._read(effect)
            case Expects(word=word):
                self._expect(word)
            case Repository(folder=folder):
                self._repository(folder)
            case Prints():
                pass
            case Runs(words=words):
                self._nested(words, redirects, depth)
            case RunsText(text=word) if word.plain:
                self.text(word.text, depth + 1, feeds=self._feeds)
            case RunsText():
                self._add(Act.DESTROY, OPAQUE.reason)
            case RunsInput(script=script):
                self._input(redirects, depth, script=script)
            case Moves(folder=folder):
                self._move(folder)
            case _:
                assert_never(effect)

    def _nested(self, words: Sequence[Word], redirects: Sequence[Redirect], depth: int) -> None:
        if depth > DEEPEST:
            self._add(Act.DESTROY, "it has too many commands within commands")
        else:
            self._words(words, redirects, depth + 1)

    def _input(self, redirects: Sequence[Redirect], depth: int, *, script: bool) -> None:
        """A program that reads its script: from a here-document it can be judged, from a pipe it cannot."""
        given = next((each for each in reversed(redirects) if each.sign.startswith("<")), None)
        text = (
            None
            if given is None
            else given.body
            if given.sign in ("<<", "<<-")
            else given.target.text
            if given.target.plain
            else None
        )
        if given is None or text is None:
            self._add(Act.DESTROY, "it runs what comes through its input, which cannot be seen beforehand")
        elif given.sign not in ("<<", "<<-", "<<<"):
            self._add(Act.COMMAND, f"it runs {text}")
        elif script:
            self.text(text, depth + 1, feeds=self._feeds)
        else:
            self._add(Act.COMMAND, "it runs code that may change something")
            self._phrases(text)

    def _phrases(self, text: str) -> None:
        if found := destructive(text):
            self._add(Act.DESTROY, f"it speaks of `{visible(found)[:40].strip()}`")

    def _redirect(self, redirect: Redirect) -> None:
        target = redirect.target
        if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self._add(Act.OUTSIDE, "it speaks to the network")
        elif redirect.sign in _WRITING:
            number = (redirect.sign == ">&" and target.text.rstrip("-").isdigit()) or target.text == "-"
            if not number and target.text not in _NOWHERE:
                self._write(target)
                if redirect.sign in (">", ">|", "&>", ">&"):
                    self._lose(target, ())
                self._add(Act.COMMAND, f"it writes {target.text}", f"write {target.text}" if target.plain else "")
        elif redirect.sign == "<":
            self._tell(0)
            self._read(Reads(target=target))
        elif target.text != PROCESS:
            self._tell(0)

    def _write(self, target: Word) -> None:
        """Judge a change of what a word names."""
        if target.plain and target.text in _NOWHERE:
            return
        if target.text.startswith("/dev/"):
            self._add(Act.DESTROY, f"it writes to the device {target.text}")
            return
        literal = target.text
        if not target.plain:
            literal, _, rest = literal.partition("*") if target.glob else ("", "", literal)
            if not target.glob or ".." in rest:
                self._add(Act.OUTSIDE, "where it writes can only be told when it runs")
                return
            literal = literal.rpartition("/")[0] or ("/" if literal.startswith("/") else ".")
        for path in self._paths(literal):
            shown = self._workspace.shown(path)
            if self._workspace.is_secret(path):
                self._add(Act.OUTSIDE, f"it changes {shown}, where keys or passwords are kept")
            elif not self._workspace.holds(path):
                self._add(Act.OUTSIDE, f"it changes {shown}, outside the workspace")
            elif self._workspace.is_git(path):
                self._add(Act.OUTSIDE, f"it changes {shown}, which is git's own")
            self._written.add(path)

    def _lose(self, target: Word, by: Sequence[Word]) -> None:
        """Judge whether what is overwritten could be brought back."""
        names = self._bindings.texts(target) or ([target.text] if target.plain else [])
        for path in (path for name in names for path in self._paths(name)):
            into = [path / Path(word.text).name for word in by] if path.is_dir() else [path]
            lost = next((each for each in into if self._disk and not self._workspace.is_kept(each)), None)
            if lost is not None and self._workspace.holds(lost):
                self._add(Act.DESTROY, f"it overwrites or deletes {self._workspace.shown(lost)}, which git could not bring back")

    def _hand_on(self, folder: Word) -> None:
        """Names below a folder go to other commands."""
        names = self._bindings.texts(folder)
        if names is None:
            self._later.append((self._count, Reads(target=folder, shows=False), self._bindings))
        for name in names or ():
            self._names += self._expanded(name)

    def _expanded(self, name: str) -> Iterator[Path]:
        """What a path or a pattern of file names stands for, for every folder the script may be in."""
        for start in self._folders or [self._workspace.root]:
            whole = os.path.join(start, name)  # noqa: PTH118 - a pattern of file names
            yield Path(whole)
            if self._disk and set("*?[") & set(name):
                yield from map(Path, islice(iglob(_loose(whole)), _MATCHES))  # noqa: PTH207 - as bash does it

    def _script(self, word: Word) -> None:
        """Judge the run of a file: what the agent has just written itself, nobody has looked at."""
        for path in self._paths(word.text) if word.plain else []:
            if self._workspace.is_written(path) or path in self._written:
                self._add(
                    Act.DESTROY, f"it runs {self._workspace.shown(path)}, which was written here: what that does cannot be judged"
                )

    def _tell(self, number: int) -> None:
        """A command prints a text of its own; 0: one gets what is no output of a command."""
        if self._feeds or not number:
            self._tellers.add(number)

    def _program(self, word: Word) -> None:
        """A program that lies in the workspace may be another one than its name says."""
        for folder in self._own if word.plain and "/" not in word.text else []:
            if Path(self._workspace.root, folder, word.text).exists():
                self._add(Act.COMMAND, f"`{word.text}` is a program of the workspace: {Path(folder, word.text)}")

    def _paths(self, text: str) -> list[Path]:
        """What a path may lead to, for every folder the script may be in: links are followed before `..` is."""
        absolute = text.startswith(("/", "~"))
        if self._folders is None and not absolute:
            self._add(Act.OUTSIDE, "in which folder it works can only be told when it runs")
            return []
        try:
            return [self._place(text, folder) for folder in (self._folders or [self._workspace.root])]
        except InputError:
            self._add(Act.OUTSIDE, "where it writes cannot be told")
            return []

    def _place(self, text: str, folder: Path) -> Path:
        """Where a path leads from a folder. Raises InputError for what can be no path."""
        path = self._workspace.path(text, folder)
        if ".." not in text:
            return path
        written = self._workspace.home / text[2:] if text.startswith("~/") else folder / text
        return Path(os.path.realpath(written.parent)) / written.name if written.name != ".." else Path(os.path.realpath(written))

    def _read(self, effect: Reads) -> None:
        """Judge a look: at keys it is none that is free."""
        word = effect.target
        texts = self._bindings.texts(word)
        if texts is None and not word.glob:
            self._secret(word)
            if effect.shows:
                self._later.append((self._count, effect, self._bindings))
            return
        for text in texts if texts is not None else [word.text]:
            if any(sign in text for sign in "*?[") and not word.plain:
                self._pattern(text)
            for path in self._places(text):
                self._look(path)
                if effect.deep:
                    self._deep(structs.replace(effect, target=Word(text=str(path))))

    def _look(self, path: Path) -> None:
        if self._workspace.is_secret(path):
            self._add(Act.OUTSIDE, f"it looks at {visible(self._workspace.shown(path))[:80]}, where keys or passwords are kept")
        elif str(path).startswith("/dev/") and str(path) not in _NOWHERE and not str(path).startswith("/dev/fd/"):
            self._add(Act.COMMAND, f"it reads the device {path}")

    def _places(self, text: str) -> list[Path]:
        """What a path that is read may lead to. One that could only be told when it runs asks."""
        if self._folders is None and not text.startswith(("/", "~")):
            self._add(Act.COMMAND, "in which folder it looks can only be told when it runs")
        try:
            return [self._place(text, folder) for folder in (self._folders or [self._workspace.root])] if text else []
        except InputError:
            return []

    def _pattern(self, text: str) -> None:
        """Judge a pattern of file names by the usual places of keys, and by the files that there are."""
        text = _loose(text)
        if text not in ("*", "./*") and may_be_secret(text, str(self._workspace.home)):
            self._add(Act.OUTSIDE, f"it may look at {visible(text)[:80]}, where keys or passwords are kept")
            return
        for folder in (self._folders or [self._workspace.root]) if self._disk else []:
            matches = list(islice(iglob(os.path.join(folder, text)), _MATCHES))  # noqa: PTH207, PTH118 - as bash does it
            secret = next((match for match in matches if self._workspace.is_secret(Path(match))), None)
            if secret is not None or len(matches) == _MATCHES:
                self._add(Act.OUTSIDE, f"it looks at {visible(secret or text)[:80]}, where keys or passwords may be kept")
                return

    def _deep(self, effect: Reads, *, names: bool = False) -> None:
        """Judge a look at all that lies below a folder; `names`: what is found is handed on by its name."""
        for folder in self._expanded(effect.target.text):
            if self._disk and folder.is_dir():
                self._look_below(folder, effect, names=names)

    def _look_below(self, folder: Path, effect: Reads, *, names: bool) -> None:
        key = (folder, effect.hidden, effect.only)
        if key not in self._looked:
            self._looked[key] = below(folder, self._workspace, hidden=effect.hidden, only=effect.only)
        found, shown = self._looked[key], visible(self._workspace.shown(folder))
        if found.secret is not None:
            self._add(
                Act.OUTSIDE,
                f"below {shown} it would look at {visible(str(found.secret))[-80:]}, where keys or passwords are kept",
            )
        elif not found.whole:
            self._add(Act.COMMAND, f"{shown} is too large to be looked through for keys")
        elif names and found.odd is not None:
            self._add(
                Act.COMMAND, f"a name below {shown} may be taken for several words or an option: {visible(found.odd.name)!r}"
            )
        elif effect.follow and found.leaves is not None:
            self._add(Act.COMMAND, f"a link below {shown} leads elsewhere: {visible(found.leaves.name)!r}")

    def _expect(self, word: Word) -> None:
        """Judge a word that must not become an option, or several words."""
        texts = self._bindings.texts(word)
        if texts is None and not word.glob:
            self._later.append((self._count, Expects(word=word), self._bindings))
            return
        for text in texts if texts is not None else [word.text]:
            pattern = any(sign in text for sign in "*?[")
            if text.startswith("-") or any(sign.isspace() for sign in text):
                self._add(Act.COMMAND, f"{visible(word.text)[:40]!r} may become an option")
            elif pattern and text[0] in "*?[" and "/" not in text.rstrip("/") and self._has_dashes():
                self._add(
                    Act.COMMAND,
                    f"{visible(word.text)[:40]!r} may become an option: there is a file whose name begins with a dash",
                )

    def _has_dashes(self) -> bool:
        return self._folders is None or any(
            self._disk and name.startswith("-")
            for folder in self._folders
            if folder.is_dir()
            for name in map(os.path.basename, folder.iterdir())
        )

    def _repository(self, folder: Word | None) -> None:
        """Judge what the settings of a repository make git do."""
        places = self._places(folder.text) if folder is not None else self._folders
        if places is None:
            self._add(Act.COMMAND, "which repository it looks at can only be told when it runs")
        for place in (places or []) if self._disk else []:
            if setting := unsafe_setting(place):
                self._add(Act.COMMAND, f"the repository's settings may make git run other programs: {visible(setting)[:60]}")

    def _move(self, folder: Word | None) -> None:
        """Go to another folder: as the shell does, by its name, and as the system does, where links lead before `..`."""
        texts = None if folder is None else self._bindings.texts(folder)
        if self._folders is None or texts is None or any(sign in text for text in texts for sign in "*?["):
            self._folders = None
            return
        try:
            new = [place(text, base) for text in texts for base in self._folders for place in (self._workspace.path, self._place)]
        except InputError:
            new = []
        folders = list(dict.fromkeys([*self._folders, *new]))
        self._folders = folders if new and len(folders) <= FOLDERS else None

    def _secret(self, word: Word) -> None:
        """A word of a command of which it is not known what it takes for a path: one where keys are kept counts."""
        given = self._bindings.texts(word)
        for full in given if given is not None else [word.text.replace("*", "x")]:
            for text in {full, full.rpartition("=")[2].removeprefix("@"), full.rpartition(":")[2]} - {""}:
                try:
                    paths = [self._place(text, folder) for folder in (self._folders or [self._workspace.root])]
                except InputError:
                    continue
                if any(self._workspace.is_secret(path) for path in paths):
                    self._add(Act.OUTSIDE, f"it may look at {visible(text)[:80]}, where keys or passwords are kept")
                    return
        pattern = _loose(word.text)
        home = str(self._workspace.home)
        if not word.plain and pattern.startswith(("/", ".")) and not pattern.startswith("./*") and may_be_secret(pattern, home):
            self._add(Act.OUTSIDE, f"it may look at {visible(pattern)[:80]}, where keys or passwords are kept")

    def _add(self, act: Act, reason: str, key: str = "") -> None:
        self.found.append(Finding(act=act, reason=reason, key=key))
