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
from shutil import which
from typing import Final, assert_never

from msgspec import structs

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.secrets import may_be_secret
from tenure.agent.tools.shell.disk import Below, below, unsafe_setting, widen
from tenure.agent.tools.shell.effects import (
    OPAQUE,
    Asks,
    Effect,
    Expects,
    GitSettings,
    Moves,
    Prints,
    Reads,
    Runs,
    RunsFile,
    RunsInput,
    RunsText,
    Writes,
)
from tenure.agent.tools.shell.programs import effects
from tenure.agent.tools.shell.reader import parse
from tenure.agent.tools.shell.script import PROCESS, Command, Redirect, Word
from tenure.agent.tools.shell.variables import Bindings, is_harmless, is_public, sounds_secret
from tenure.agent.workspace import Workspace
from tenure.engine.record.visible import visible
from tenure.errors import InputError

DEEPEST: Final = 6  # scripts within scripts
WORDS: Final = 3_000  # in all its commands
FOLDERS: Final = 8  # that a script may have gone to
SUMMARY: Final = 120  # characters
DETAIL: Final = 8_000

_ORDER: Final = tuple(CallEffect)  # the worst is last
_NOWHERE: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", PROCESS})
_WRITING: Final = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
_MATCHES: Final = 2_000  # files that a pattern is tried on
# Programs that stand in for others, and files that tell them which: https://asdf-vm.com, https://mise.jdx.dev, https://volta.sh, https://moonrepo.dev/proto
_SHIM: Final = re.compile(r"/(?:shims|\.volta/bin)/[^/]+$")
_PINS: Final = (
    ".tool-versions",
    "mise.toml",
    ".mise.toml",
    ".config/mise.toml",
    ".config/mise/config.toml",
    ".prototools",
    "package.json",
)
_KEPT: Final = "where keys or passwords are kept"

# Subcommands whose words are for people to read, and may speak of anything.
_PROSE: Final = frozenset(
    {("git", "commit"), ("git", "tag"), ("git", "stash"), ("git", "notes"), ("git", "add"), ("gh", "pr"), ("gh", "issue")}
)


def judge(command: str, workspace: Workspace, *, path: str = "", disk: bool = True) -> Approval | None:
    """What a command needs: None when it only looks. `path` is where its programs are looked for, as in PATH.

    Without `disk`, folders are not looked through and settings of git not read: for commands that ran elsewhere.
    """
    collector = _CommandJudge(workspace, path, disk=disk)
    collector.text(command, 0)
    collector.end()
    if not collector.asks:
        return None
    worst = max(collector.asks, key=lambda each: _ORDER.index(each.act))
    keys = [each.key for each in collector.asks]
    shown = visible(command.strip())
    first, more, _ = shown.partition("\n")
    return Approval(
        tool="bash",
        act=worst.act,
        summary=first[:SUMMARY] + "…" * (bool(more) or len(first) > SUMMARY),
        reason=worst.reason,
        detail=shown[:DETAIL] + (f"\n[{len(shown) - DETAIL:,} more characters]" if len(shown) > DETAIL else ""),
        exact=f"bash {command}" if worst.act is not CallEffect.DESTROY else "",
        broad=tuple(dict.fromkeys(keys)) if worst.act in (CallEffect.COMMAND, CallEffect.REMOTE) and all(keys) else (),
    )


class _CommandJudge:
    """Collects what a command may change. Mutable."""

    def __init__(self, workspace: Workspace, path: str, *, disk: bool) -> None:
        self.asks: list[Asks] = []
        self._left = WORDS
        self._workspace, self._disk = workspace, disk
        self._folders: list[Path] | None = [workspace.root]  # that it may be in; None: it cannot be told
        self._bindings = Bindings({})
        self._own = [
            folder for folder in path.split(os.pathsep) if path and (not folder.startswith("/") or workspace.holds(Path(folder)))
        ]
        self._path = path
        self._count = 0  # of commands
        self._feeds = False  # whether the output of the one at hand goes to others
        self._tellers: set[int] = set()  # commands that print a text of their own for others
        self._names: list[Path] = []  # folders of which names are printed
        self._later: list[tuple[int, Reads | Expects, Bindings]] = []  # what depends on what the other commands print
        self._written: set[Path] = set()
        self._looked: dict[tuple[Path, bool, tuple[str, ...]], Below] = {}

    @property
    def _starts(self) -> list[Path]:
        return self._folders or [self._workspace.root]

    def end(self) -> None:
        """Judge what depends on the whole."""
        if self.asks or not self._later:
            return
        for number, effect, bindings in self._later:
            if self._tellers - {number} or not bindings.is_output(effect.target):
                self._add(CallEffect.COMMAND, f"what {visible(effect.target.text)[:40]!r} is can only be told when it runs")
                return
        if self._folders is None:
            self._add(CallEffect.COMMAND, "which files it reads can only be told when it runs")
            return
        for folder in dict.fromkeys([*self._folders, *self._names]):
            self._deep(Reads(target=Word(text=str(folder)), deep=True), names=True)

    def text(self, text: str, depth: int, *, feeds: bool = False) -> None:
        """Judge a script; `feeds`: its output goes to other commands."""
        if depth > DEEPEST:
            self._add(CallEffect.DESTROY, "it has too many scripts within scripts")
            return
        script = parse(text, self._known(text))
        outer, self._bindings = self._bindings, self._bindings.of(script)
        for name in sorted(script.variables):
            if not self._bindings.knows(name) and not is_public(name):
                act = CallEffect.OUTSIDE if sounds_secret(name) else CallEffect.COMMAND
                self._add(act, f"it uses ${name}, which it does not set")
        for odd in script.odd:
            self._add(CallEffect.DESTROY, f"it has {odd}: what it does cannot be judged beforehand")
        for unknown in script.unknown:
            self._add(CallEffect.COMMAND, f"it has {unknown}, which can only be told when it runs")
        if script.odd or script.unknown:
            self._phrases(text)
        for command in script.commands:
            self._count += 1
            self._feeds = feeds or command.feeds
            self._command(command, depth)
            if self._left < 0:
                self._add(CallEffect.DESTROY, "it is too long to be judged beforehand")
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
                self._add(CallEffect.COMMAND, f"it sets {assignment.name}, which may change what other commands do")
            if "$(" in value or "`" in value:  # in a sum, for one, it would be run
                self._add(CallEffect.DESTROY, f"it hides a command in the variable {assignment.name}")
            self._secret(assignment.value)
        for redirect in command.redirects:
            self._redirect(redirect)
        if command.words:
            self._words(command.words, command.redirects, depth)

    def _words(self, words: Sequence[Word], redirects: Sequence[Redirect], depth: int) -> None:
        self._left -= len(words)
        if self._left < 0:
            return
        does = effects(words)
        runs = any(isinstance(effect, Runs) for effect in does)
        prints = next((effect for effect in does if isinstance(effect, Prints)), None)
        if words[0].plain and "/" not in words[0].text:
            self._program(words[0].text)
        elif words[0].plain and self._workspace.holds(Path(words[0].text)):
            self._add(CallEffect.COMMAND, f"`{words[0].text}` is a program of the workspace")
        if runs or any(isinstance(effect, Asks | RunsText | RunsInput) for effect in does):
            for word in words:
                self._secret(word)
        if self._feeds and prints is None and not runs and not any(isinstance(effect, RunsText) for effect in does):
            self._tellers.add(self._count)  # it prints a text of its own for others
        for effect in does:
            self._effect(effect, redirects, depth)
            if isinstance(effect, Reads) and (runs or (prints is not None and prints.names)):
                self._hand_on(effect.target)
        if any(isinstance(effect, Asks) and effect.act is not CallEffect.DESTROY for effect in does) and not _is_known(words):
            given = [redirect.body or redirect.target.text for redirect in redirects]
            self._phrases("\n".join([" ".join(word.text for word in words), *given]))

    def _effect(self, effect: Effect, redirects: Sequence[Redirect], depth: int) -> None:
        match effect:
            case Asks():
                self.asks.append(effect)
            case Writes(target=target, ends=ends, by=by):
                self._write(target)
                if ends:
                    self._lose(target, by)
            case RunsFile(file=word):
                self._script(word)
            case Reads():
                self._read(effect)
            case Expects():
                self._expect(effect)
            case GitSettings():
                self._repository(effect)
            case Prints():
                pass
            case Runs(words=words):
                if depth > DEEPEST:
                    self._add(CallEffect.DESTROY, "it has too many commands within commands")
                else:
                    self._words(words, redirects, depth + 1)
            case RunsText(text=word):
                if word.plain:
                    self.text(word.text, depth + 1, feeds=self._feeds)
                else:
                    self.asks.append(OPAQUE)
            case RunsInput(script=script):
                self._input(redirects, depth, script=script)
            case Moves(folder=folder):
                self._move(folder)
            case _:
                assert_never(effect)

    def _input(self, redirects: Sequence[Redirect], depth: int, *, script: bool) -> None:
        """A program that reads its script: from a here-document it can be judged, from a pipe it cannot."""
        given = next((each for each in reversed(redirects) if each.sign.startswith("<")), None)
        text = None
        if given is not None:
            text = given.body if given.sign in ("<<", "<<-") else given.target.text if given.target.plain else None
        if given is None or text is None:
            self._add(CallEffect.DESTROY, "it runs what comes through its input, which cannot be seen beforehand")
        elif given.sign not in ("<<", "<<-", "<<<"):
            self._script(given.target)
            self._add(CallEffect.COMMAND, f"it runs {text}")
        elif script:
            self.text(text, depth + 1, feeds=self._feeds)
        else:
            self._add(CallEffect.COMMAND, "it runs code that may change something")
            self._phrases(text)

    def _phrases(self, text: str) -> None:
        if phrase := destructive(text):
            self._add(CallEffect.DESTROY, f"it speaks of `{visible(phrase)[:40].strip()}`")

    def _redirect(self, redirect: Redirect) -> None:
        target = redirect.target
        if target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self._add(CallEffect.OUTSIDE, "it speaks to the network")
        elif redirect.sign in _WRITING:
            number = (redirect.sign == ">&" and target.text.rstrip("-").isdigit()) or target.text == "-"
            if not number and target.text not in _NOWHERE:
                self._write(target)
                if redirect.sign in (">", ">|", "&>", ">&"):
                    self._lose(target, ())
                self._add(CallEffect.COMMAND, f"it writes {target.text}", f"write {target.text}" if target.plain else "")
        elif redirect.sign == "<":
            self._tellers.add(0)
            self._read(Reads(target=target))
        elif target.text != PROCESS:
            self._tellers.add(0)

    def _write(self, target: Word) -> None:
        literal = target.text
        if target.plain and literal in _NOWHERE:
            return
        if literal.startswith("/dev/"):
            self._add(CallEffect.DESTROY, f"it writes to the device {literal}")
            return
        if not target.plain:
            literal, _, rest = literal.partition("*")
            if not target.glob or ".." in rest:
                self._add(CallEffect.OUTSIDE, "where it writes can only be told when it runs")
                return
            literal = literal.rpartition("/")[0] or ("/" if literal.startswith("/") else ".")
        for path in self._paths(literal):
            shown = self._workspace.shown(path)
            if self._workspace.is_secret(path):
                self._add(CallEffect.OUTSIDE, f"it changes {shown}, {_KEPT}")
            elif not self._workspace.holds(path):
                self._add(CallEffect.OUTSIDE, f"it changes {shown}, outside the workspace")
            elif self._workspace.is_git(path):
                self._add(CallEffect.OUTSIDE, f"it changes {shown}, which is git's own")
            self._written.add(path)

    def _lose(self, target: Word, by: Sequence[Word]) -> None:
        """Judge whether what is overwritten could be brought back."""
        names = self._bindings.texts(target) or ([target.text] if target.plain else [])
        for path in (path for name in names for path in self._paths(name)):
            into = [path / Path(word.text).name for word in by] if path.is_dir() else [path]
            lost = next((each for each in into if self._disk and not self._workspace.is_kept(each)), None)
            if lost is not None and self._workspace.holds(lost):
                self._add(
                    CallEffect.DESTROY, f"it overwrites or deletes {self._workspace.shown(lost)}, which git could not bring back"
                )

    def _hand_on(self, folder: Word) -> None:
        """Names below a folder go to other commands."""
        names = self._split(folder, self._bindings.texts(folder))
        if names is None:
            self._later.append((self._count, Reads(target=folder, shows=False), self._bindings))
        for name in names or ():
            self._names += self._expanded(name)

    def _expanded(self, name: str) -> Iterator[Path]:
        """What a path or a pattern of file names stands for, for every folder the script may be in."""
        for start in self._starts:
            whole = os.path.join(start, name)  # noqa: PTH118 - a pattern of file names
            yield Path(whole)
            if self._disk and set("*?[") & set(name):
                yield from map(Path, islice(iglob(widen(whole)), _MATCHES))  # noqa: PTH207 - as bash does it

    def _script(self, word: Word) -> None:
        """Judge the run of a file: what the agent has just written itself, nobody has looked at."""
        for path in self._paths(word.text) if word.plain else []:
            if self._workspace.is_written(path) or path in self._written:
                shown = self._workspace.shown(path)
                self._add(CallEffect.DESTROY, f"it runs {shown}, which was written here: what that does cannot be judged")

    def _program(self, name: str) -> None:
        """A program that lies in the workspace may be another one than its name says."""
        for folder in self._own:
            if Path(self._workspace.root, folder, name).exists():
                self._add(CallEffect.COMMAND, f"`{name}` is a program of the workspace: {Path(folder, name)}")
        found = which(name, path=self._path) if self._path and self._disk else None
        pin = next(self._pins(), None) if found and _SHIM.search(found) else None
        if pin is not None:
            self._add(CallEffect.COMMAND, f"which `{name}` runs may be told by {self._workspace.shown(pin)}")

    def _pins(self) -> Iterator[Path]:
        """Files by which a folder tells which program a name stands for."""
        folders = dict.fromkeys(each for start in self._starts for each in (start, *start.parents))
        return (path for folder in folders for name in _PINS if (path := folder / name).exists())

    def _leads(self, text: str) -> list[Path]:
        """Where a path leads, for every folder the script may be in. Raises InputError for what can be no path."""
        return [self._place(text, folder) for folder in self._starts]

    def _place(self, text: str, folder: Path) -> Path:
        """Where a path leads from a folder: links are followed before `..` is. Raises InputError for what can be no path."""
        path = self._workspace.path(text, folder)
        if ".." not in text:
            return path
        written = self._workspace.home / text[2:] if text.startswith("~/") else folder / text
        return Path(os.path.realpath(written.parent)) / written.name if written.name != ".." else Path(os.path.realpath(written))

    def _paths(self, text: str) -> list[Path]:
        if self._folders is None and not text.startswith(("/", "~")):
            self._add(CallEffect.OUTSIDE, "in which folder it works can only be told when it runs")
            return []
        try:
            return self._leads(text)
        except InputError:
            self._add(CallEffect.OUTSIDE, "where it writes cannot be told")
            return []

    def _places(self, text: str) -> list[Path]:
        """What a path that is read may lead to. One that could only be told when it runs asks."""
        if self._folders is None and not text.startswith(("/", "~")):
            self._add(CallEffect.COMMAND, "in which folder it looks can only be told when it runs")
        try:
            return self._leads(text) if text else []
        except InputError:
            return []

    def _texts(self, effect: Reads | Expects) -> Sequence[str] | None:
        texts = self._bindings.texts(effect.target)
        return [effect.target.text] if texts is None and effect.target.glob else texts

    def _split(self, word: Word, texts: Sequence[str] | None) -> Sequence[str] | None:
        """What a word may be, with the words into which the shell may split it."""
        if texts is None or not word.loose:
            return texts
        return list(dict.fromkeys(part for text in texts for part in (text, *text.split())))

    def _read(self, effect: Reads) -> None:
        word = effect.target
        texts = self._split(word, self._texts(effect))
        if texts is None:
            self._secret(word)
            if effect.shows:
                self._later.append((self._count, effect, self._bindings))
        for text in texts or ():
            if set("*?[") & set(text) and not word.plain:
                self._pattern(text)
            for path in self._places(text):
                self._look(path)
                if effect.deep:
                    self._deep(structs.replace(effect, target=Word(text=str(path))))

    def _look(self, path: Path) -> None:
        if self._workspace.is_secret(path):
            self._add(CallEffect.OUTSIDE, f"it looks at {visible(self._workspace.shown(path))[:80]}, {_KEPT}")
        elif str(path).startswith("/dev/") and str(path) not in _NOWHERE and not str(path).startswith("/dev/fd/"):
            self._add(CallEffect.COMMAND, f"it reads the device {path}")

    def _pattern(self, text: str) -> None:
        """Judge a pattern of file names by the usual places of keys, and by the files that there are."""
        text = widen(text)
        if text not in ("*", "./*") and may_be_secret(text, str(self._workspace.home)):
            self._add(CallEffect.OUTSIDE, f"it may look at {visible(text)[:80]}, {_KEPT}")
            return
        for folder in self._starts if self._disk else []:
            matches = list(islice(iglob(os.path.join(folder, text)), _MATCHES))  # noqa: PTH207, PTH118 - as bash does it
            secret = next((match for match in matches if self._workspace.is_secret(Path(match))), None)
            if secret is not None or len(matches) == _MATCHES:
                self._add(CallEffect.OUTSIDE, f"it looks at {visible(secret or text)[:80]}, where keys or passwords may be kept")
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
        has, shown = self._looked[key], visible(self._workspace.shown(folder))
        if has.secret is not None:
            self._add(CallEffect.OUTSIDE, f"below {shown} it would look at {visible(str(has.secret))[-80:]}, {_KEPT}")
        elif not has.whole:
            self._add(CallEffect.COMMAND, f"{shown} is too large to be looked through for keys")
        elif names and has.odd is not None:
            name = visible(has.odd.name)
            self._add(CallEffect.COMMAND, f"a name below {shown} may be taken for several words or an option: {name!r}")
        elif effect.follow and has.leaves is not None:
            self._add(CallEffect.COMMAND, f"a link below {shown} leads elsewhere: {visible(has.leaves.name)!r}")

    def _expect(self, effect: Expects) -> None:
        texts, shown = self._texts(effect), visible(effect.target.text)[:40]
        if texts is None and effect.needed:
            self._add(CallEffect.COMMAND, f"whether {shown!r} is one word can only be told when it runs")
        elif texts is None:
            self._later.append((self._count, effect, self._bindings))
        for text in texts or ():
            parts = text.split() if effect.target.loose else [text]
            if any(part.startswith("-") for part in (text, *parts)):
                self._add(CallEffect.COMMAND, f"{shown!r} may become an option")
            elif len(parts) > 1 or (effect.needed and (not parts or set("*?[") & set(text))):
                self._add(CallEffect.COMMAND, f"{shown!r} may become no word, or several")
            elif text[:1] in ("*", "?", "[") and "/" not in text.rstrip("/") and self._has_dashes():
                self._add(CallEffect.COMMAND, f"{shown!r} may become an option: there is a file whose name begins with a dash")

    def _has_dashes(self) -> bool:
        return self._folders is None or any(
            self._disk and path.name.startswith("-") for folder in self._folders if folder.is_dir() for path in folder.iterdir()
        )

    def _repository(self, effect: GitSettings) -> None:
        places = self._folders if effect.folder is None else self._places(effect.folder.text)
        if places is None:
            self._add(CallEffect.COMMAND, "which repository it looks at can only be told when it runs")
        for place in (places or []) if self._disk else []:
            if setting := unsafe_setting(place, blames=effect.blames):
                self._add(
                    CallEffect.COMMAND, f"the repository's settings may make git run other programs: {visible(setting)[:60]}"
                )

    def _move(self, folder: Word) -> None:
        """Go to another folder: as the shell does, by its name, and as the system does, where links lead before `..`."""
        texts = self._bindings.texts(folder)
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
            for text in filter(None, dict.fromkeys((full, full.rpartition("=")[2].removeprefix("@"), full.rpartition(":")[2]))):
                try:
                    paths = self._leads(text)
                except InputError:
                    continue
                if any(map(self._workspace.is_secret, paths)):
                    self._add(CallEffect.OUTSIDE, f"it may look at {visible(text)[:80]}, {_KEPT}")
                    return
        pattern = widen(word.text)
        home = str(self._workspace.home)
        if not word.plain and pattern.startswith(("/", ".")) and not pattern.startswith("./*") and may_be_secret(pattern, home):
            self._add(CallEffect.OUTSIDE, f"it may look at {visible(pattern)[:80]}, {_KEPT}")

    def _add(self, act: CallEffect, reason: str, key: str = "") -> None:
        self.asks.append(Asks(act=act, reason=reason, key=key))


def _is_known(words: Sequence[Word]) -> bool:
    """Whether a command's words need no second look: rm is judged by its own rule, and a commit's message is said to people."""
    subcommand = next((word.text for word in words[1:] if not word.text.startswith("-")), "")
    return words[0].text == "rm" or (words[0].text, subcommand) in _PROSE


# Words that are enough.
_ALONE: Final = re.compile(
    r"\brm\s+(?:-\S{1,20}\s+){0,5}(?:-\w{0,10}[rRf]|--recursive|--force)|\bmkfs|\bshred\s|\bwipefs\b"
    r"|\bch(?:mod|own|grp)\s+(?:-\S{1,20}\s+){0,5}(?:-\w{0,10}R|--recursive)"
    r"|\b(?:drop|truncate)\s+(?:table|database|schema|index|view|user)\b|\bdelete\s+from\b|\bdropDatabase\b|\bflush(?:all|db)\b"
    r"|\brmtree\b|\bremovedirs\b|\brm_rf?\b|\brmSync\b|\brimraf\b|\bremoveSync\b|\bunlink(?:Sync)?\b|\bos\.remove\b|\bfs\.rm\b|\bremove_dir_all\b"
    r"|:\(\)\s{0,5}\{|>\s{0,5}/dev/(?:sd|nvme|hd|vd|disk|mapper)",
    re.IGNORECASE,
)

# What a program must be told in the same line for it to destroy.
_DESTROYING: Final[Mapping[str, re.Pattern[str]]] = {
    "git": re.compile(
        r"push\b.*(?:\s-\w*f|--force|--delete|--mirror|\s\+)|reset\b.*--hard|clean\b.*\s-\w*[fxd]|branch\b.*\s-D\b|stash\s+(?:drop|clear)"
    ),
    "find": re.compile(r"\s-delete\b|-exec\s+rm\b"),
    "dd": re.compile(r"\bof="),
    "curl": re.compile(r"\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|perl|ruby|node)\b"),
}
_PROGRAMS: Final = re.compile(r"\b(git|find|dd|curl|wget)\s[^\n]{0,300}")


def destructive(text: str) -> str:
    """The first words of a text that speak of destroying; empty when none do."""
    if found := _ALONE.search(text):
        return found[0]
    for found in _PROGRAMS.finditer(text):
        if _DESTROYING["curl" if found[1] == "wget" else found[1]].search(found[0]):
            return found[0]
    return ""
