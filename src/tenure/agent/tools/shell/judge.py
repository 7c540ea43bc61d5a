"""What a shell command may change, judged from its words alone. Promise: when it cannot be told, it is not free.

Every command in the text counts, wherever it stands; the worst of them decides. Paths are judged by where they lead, for every folder the
script may have gone to by then.
"""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, assert_never

from msgspec import Struct

from tenure.agent.approval import Act, Approval
from tenure.agent.tools.harmless import visible
from tenure.agent.tools.shell.effects import (
    OPAQUE,
    Asks,
    Destroys,
    Effect,
    Moves,
    Reaches,
    Runs,
    RunsInput,
    RunsText,
    Writes,
)
from tenure.agent.tools.shell.parser import parsed
from tenure.agent.tools.shell.phrases import destructive
from tenure.agent.tools.shell.programs import effects
from tenure.agent.tools.shell.script import Command, Redirect, Word
from tenure.agent.tools.shell.tables import PROSE, is_harmless
from tenure.agent.tools.shell.words import PROCESS
from tenure.agent.workspace import Workspace
from tenure.errors import InputError

DEEPEST: Final = 6  # scripts within scripts
WORDS: Final = 3_000  # in all its commands
FOLDERS: Final = 8  # that a script may have gone to
SUMMARY: Final = 120  # characters
DETAIL: Final = 8_000

_ORDER: Final = tuple(Act)  # the worst is last
_NOWHERE: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty", PROCESS})
_WRITING: Final = frozenset({">", ">>", ">|", "&>", "&>>", ">&", "<>"})
# Places of keys, for words that only become paths when they run.
_KEYS_AT: Final = (
    "~/.ssh/id_rsa", "~/.ssh/id_ed25519", "~/.ssh/config", "~/.aws/credentials", "~/.netrc", "~/.gnupg/x", "~/.kube/config", "~/.npmrc",
    "~/.docker/config.json", "~/.config/gh/hosts.yml", "~/.git-credentials", "~/.pypirc", "/etc/shadow", "/proc/self/environ", "/proc/1/environ", ".env",
)  # fmt: skip


class Finding(Struct, frozen=True, kw_only=True, gc=False):
    """Something that a command may change."""

    act: Act
    reason: str
    key: str = ""


def judged(command: str, workspace: Workspace) -> Approval | None:
    """What a command needs: None when it only looks."""
    judge = _Judge(workspace)
    judge.text(command, 0)
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


class _Judge:
    """Collects what it finds. Mutable."""

    def __init__(self, workspace: Workspace) -> None:
        self.found: list[Finding] = []
        self._left = WORDS
        self._workspace = workspace
        self._folders: list[Path] | None = [workspace.root]  # None: it cannot be told

    def text(self, text: str, depth: int) -> None:
        """Judge a script."""
        if depth > DEEPEST:
            self._add(Act.DESTROY, "it has too many scripts within scripts")
            return
        script = parsed(text, self._known(text))
        for odd in script.odd:
            self._add(Act.DESTROY, f"it has {odd}: what it does cannot be judged beforehand")
        for unknown in script.unknown:
            self._add(Act.COMMAND, f"it has {unknown}, which can only be told when it runs")
        if script.odd or script.unknown:
            self._phrases(text)
        for command in script.commands:
            self._command(command, depth)
            if self._left < 0:
                self._add(Act.DESTROY, "it is too long to be judged beforehand")
                return

    def _known(self, text: str) -> Mapping[str, str]:
        """Variables with a settled value; the folder only as long as it stays."""
        workspace = self._workspace
        stays = {} if "cd" in text or "pushd" in text else {"PWD": str(workspace.root)}
        return {"HOME": str(workspace.home), **stays, **({"TMPDIR": str(workspace.scratch)} if workspace.scratch else {})}

    def _command(self, command: Command, depth: int) -> None:
        self._left -= len(command.assignments)
        for assignment in command.assignments:
            if not is_harmless(assignment.name):
                self._add(Act.COMMAND, f"it sets {assignment.name}, which may change what other commands do")
            if "$(" in assignment.value.text or "`" in assignment.value.text:  # in a sum, for one, it would be run
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
        for word in words:
            self._secret(word)
        found = effects(words)
        for effect in found:
            self._effect(effect, redirects, depth)
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
            case Runs(words=words):
                self._nested(words, redirects, depth)
            case RunsText(text=word) if word.plain:
                self.text(word.text, depth + 1)
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
            self.text(text, depth + 1)
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
                self._add(Act.COMMAND, f"it writes {target.text}", f"write {target.text}" if target.plain else "")
        elif redirect.sign == "<":
            self._secret(target)

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

    def _paths(self, text: str) -> list[Path]:
        """What a path may lead to, for every folder the script may be in."""
        absolute = text.startswith(("/", "~"))
        if self._folders is None and not absolute:
            self._add(Act.OUTSIDE, "in which folder it writes can only be told when it runs")
            return []
        try:
            return [self._workspace.path(text, folder) for folder in (self._folders or [self._workspace.root])]
        except InputError:
            self._add(Act.OUTSIDE, "where it writes cannot be told")
            return []

    def _move(self, folder: Word | None) -> None:
        if self._folders is None or folder is None or len(self._folders) >= FOLDERS:
            self._folders = None
            return
        try:
            self._folders = list(
                dict.fromkeys([*self._folders, *(self._workspace.path(folder.text, base) for base in self._folders)])
            )
        except InputError:
            self._folders = None

    def _secret(self, word: Word) -> None:
        """A look at a place where keys are kept is no free look."""
        text = word.text.rpartition("=")[2].removeprefix("@") or word.text
        guess = text.replace("*", "x") if not word.plain else text
        try:
            paths = [self._workspace.path(guess, folder) for folder in (self._folders or [self._workspace.root])]
        except InputError:
            return
        if any(self._workspace.is_secret(path) for path in paths) or (not word.plain and self._may_be_key(text)):
            self._add(Act.OUTSIDE, f"it may look at {visible(word.text)[:80]}, where keys or passwords are kept")

    def _may_be_key(self, pattern: str) -> bool:
        """Whether a pattern that begins somewhere could become one of the usual places."""
        home = str(self._workspace.home)
        if not pattern.startswith(("/", ".")) or pattern in ("./*", ".", "..") or pattern.startswith("./*"):
            return False
        return any(fnmatchcase(place.replace("~", home, 1), pattern) for place in _KEYS_AT)

    def _add(self, act: Act, reason: str, key: str = "") -> None:
        self.found.append(Finding(act=act, reason=reason, key=key))
