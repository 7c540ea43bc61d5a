"""What the disk tells of a command (an edge): which keys lie below a folder, and what a git repository's settings would make git run.

What is too much to be looked through counts, and what is not known to be harmless. https://git-scm.com/docs/git-config. Settings of the user are
the user's own; those of a repository came with it.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from tenure.agent.secrets import is_secret
from tenure.agent.workspace import Workspace

MOST: Final = 50_000  # entries
_NOT_ENTERED: Final = frozenset({".git"})
_ODD: Final = re.compile(r"^-|[\s'\"\\]")  # names that a shell or xargs takes for several words, or for an option


class Below(Struct, frozen=True, kw_only=True):
    """What was found below a folder."""

    secret: Path | None = None  # a place where keys are kept
    odd: Path | None = None  # a name that may become several words or an option, or of which a part is the path of a key
    leaves: Path | None = None  # a link to a folder elsewhere
    whole: bool = True  # all of it was looked at


_IGNORES: Final = frozenset({".gitignore", ".ignore", ".rgignore"})  # of rg, in the folders above as well
_EXCLUDE: Final = ".git/info/exclude"
_BYTES: Final = 2**18  # of such a file
_ENDS: Final = re.compile(r"(?<=\w)(?!\w)")
_SYSTEM: Final = re.compile(r"/(?:etc|proc|dev|run|var)/")


def _may_be_elsewhere(path: str) -> bool:
    """Whether the end of a path is that of a place of the system where keys are kept, or begins with one."""
    return any(
        is_secret(path[: end.start()][found.start() :]) for found in _SYSTEM.finditer(path) for end in _ENDS.finditer(path)
    )


def below(folder: Path, workspace: Workspace, *, hidden: bool = True, only: Sequence[str] = ()) -> Below:
    """Look through a folder; `hidden` files too, and of those with keys only names that fit one of `only`."""
    secret = odd = leaves = None
    passed_over: list[Path] = []
    again: set[str] = set()  # patterns by which hidden files are searched nevertheless
    if not hidden:
        around = (parent / name for parent in (folder, *folder.resolve().parents) for name in (*_IGNORES, _EXCLUDE))
        again.update(name for path in (*around, workspace.home / ".config/git/ignore") for name in _again(path))
    left = MOST
    stack = [str(folder)]
    while stack:
        try:
            entries = list(os.scandir(stack.pop()))
        except OSError:
            continue
        left -= len(entries)
        if left < 0:
            return Below(secret=secret, odd=odd, leaves=leaves, whole=False)
        for entry in entries:
            path = Path(entry.path)
            if not hidden and entry.name in _IGNORES:
                again.update(_again(path))
            if not hidden and entry.name == ".git":
                again.update(_again(path.parent / _EXCLUDE))
            if entry.name.startswith(".") and not hidden:
                passed_over.append(path)
                continue
            if odd is None and (_ODD.search(entry.name) or _may_be_elsewhere(entry.path[len(str(folder)) :])):
                odd = path
            fits = not only or any(fnmatchcase(entry.name, pattern) for pattern in only)
            if secret is None and fits and workspace.is_secret(path, linked=entry.is_symlink()):
                secret = path
            if leaves is None and entry.is_symlink() and path.is_dir() and not workspace.holds(path):
                leaves = path
            if entry.name not in _NOT_ENTERED and entry.is_dir(follow_symlinks=False):
                stack.append(entry.path)
    if secret is None and again:
        secret = next(
            (
                path
                for path in passed_over
                if any(fnmatchcase(path.name, widen(pattern)) for pattern in again) and _has_secret(path, workspace)
            ),
            None,
        )
    return Below(secret=secret, odd=odd, leaves=leaves)


def _again(ignores: Path) -> Iterator[str]:
    """The names that an ignore file takes back."""
    try:
        text = ignores.read_text("utf-8", "replace") if ignores.stat().st_size <= _BYTES else "!*"
    except OSError:
        return
    for line in text.splitlines():
        if line.startswith("!"):
            yield from line[1:].strip().strip("/").replace("\\", "").split("/")


_CLASS: Final = re.compile(r"\[[!^]?\]?(?:\[([:.=])[^\]]{0,64}\1\]|[^\]])*\]")


def widen(pattern: str) -> str:
    """A pattern in which a class of characters is any character: shells have classes (`[^a]`, `[[:alpha:]]`) that Python's patterns have not."""
    closed, bracket, rest = pattern.rpartition("]")  # so that each class has an end, and is read once
    return _CLASS.sub("?", closed + bracket) + rest.replace("[", "?")


def _has_secret(path: Path, workspace: Workspace) -> bool:
    return workspace.is_secret(path) or (path.is_dir() and below(path, workspace).secret is not None)


_SETTINGS_BYTES: Final = 2**20  # of settings
_MODULES: Final = 200  # repositories within one
_HEAD: Final = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*')
_KEY: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s*(?:=\s*(.*))?$")

# Settings that make git run nothing and read nothing elsewhere, or that `environment` overrules: `section.key`, `section.*.key` with a name between, `*` for any key.
_HARMLESS: Final = re.compile(
    r"core\.(?:hookspath|fsmonitor|pager|editor|sshcommand|askpass|repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|autocrlf|eol|safecrlf|symlinks|quotepath|abbrev"
    r"|compression|preloadindex|untrackedcache|longpaths|checkstat|trustctime|sparsecheckout(?:cone)?|commentchar|whitespace|hidedotfiles|protectntfs"
    r"|protecthfs|bigfilethreshold|fscache|sharedrepository|deltabasecachelimit|packedgitlimit|packedgitwindowsize|fsync\w*|commitgraph|multipackindex)"
    r"|extensions\.(?:objectformat|worktreeconfig|partialclone|preciousobjects|refstorage|noop|relativeworktrees|compatobjectformat)"
    r"|remote\.\*\.(?:url|fetch|push|pushurl|tagopt|mirror|prune|prunetags|promisor|partialclonefilter|skip\w*|gh-resolved|followremotehead|lfsurl)"
    r"|remote\.pushdefault|branch\.\*\.\w[\w-]*|branch\.\w+|user\.(?:name|email|signingkey|useconfigonly)|(?:author|committer)\.(?:name|email)"
    r"|(?:color|column|advice|init|push|fetch|gc|pack|index|feature|maintenance|tag|rerere|format(?!\.pretty)|status|blame|checkout|worktree|http|url\.\*"
    r"|submodule(?:\.\*)?|color\.\*|http\.\*|credential(?:\.\*)?|alias|gui|gitflow(?:\.\*)?|github|hub|lazygit|magithub|entire(?:\.\*)?)\.\w[\w-]*"
    r"|pull\.(?:rebase|ff|twohead)|rebase\.(?:autosquash|autostash|updaterefs|stat)|merge\.(?:conflictstyle|ff|log|renames|renamelimit|stat|directoryrenames)"
    r"|commit\.(?:gpgsign|verbose|cleanup|status)|log\.(?:date|decorate|follow|abbrevcommit|mailmap|initialdecorationset)"
    r"|diff\.(?:renames|renamelimit|algorithm|colormoved|colormovedws|mnemonicprefix|noprefix|context|interhunkcontext|ignoresubmodules|wordregex"
    r"|statgraphwidth|indentheuristic|relative|orderfile)|diff\.\*\.(?:xfuncname|funcname|binary|wordregex|cachetextconv)"
    r"|lfs\.(?:repositoryformatversion|url|locksverify|allowincompletepush|concurrenttransfers|batch)|lfs\.\*\.(?:access|locksverify)"
)


def unsafe_setting(folder: Path, *, blames: bool = False) -> str:
    """A setting of the repositories around a folder that may make git run something, or read another file when it `blames`, as `section.key`.

    Those above count as well, since git passes over what is no repository, and those within that a repository has as submodules.
    """
    start = Path(os.path.realpath(folder))
    waiting, seen = [start, *start.parents], set[Path]()
    try:
        while waiting:
            tree = waiting.pop(0)
            place = _place(tree)
            if place is None or place in seen:
                continue
            seen.add(place)
            for name in (name for path in _configs(place) for name in _settings(path)):
                if not _HARMLESS.fullmatch(name) or (blames and name == "blame.ignorerevsfile"):
                    return name
            modules = _modules(place)
            if modules is None or len(modules) + len(seen) > _MODULES:
                return "submodules that cannot be looked through"
            waiting += [tree / name for name in modules]
    except OSError as error:
        return f"what cannot be read: {error}"
    return ""


def _place(tree: Path) -> Path | None:
    """Where the repository of a work tree keeps its data: `.git`, or where such a file leads. None if it has none of its own."""
    place = tree / ".git"
    return tree / _text(place).removeprefix("gitdir:").strip() if place.is_file() else place if place.is_dir() else None


_LINK: Final = b"\0\0\xe0\0"  # the mode of a submodule
_INDEX_BYTES: Final = 2**26


def _modules(place: Path) -> Sequence[str] | None:
    """The submodules in a repository's index; None when they cannot be told. https://git-scm.com/docs/index-format."""
    names: list[str] = []
    for path in (place / "index", *islice(place.glob("sharedindex.*"), _MODULES)):
        try:
            data = path.read_bytes() if path.stat().st_size <= _INDEX_BYTES else _LINK
        except FileNotFoundError:
            continue
        except OSError:
            return None
        if _LINK not in data:
            continue
        if data[:4] != b"DIRC" or data[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
            return None
        at = 12
        for _ in range(int.from_bytes(data[8:12])):
            flags = int.from_bytes(data[at + 60 : at + 62])
            begins = at + (64 if flags & 0x4000 else 62)
            ends = data.find(b"\0", begins)
            if ends < 0 or min(ends - begins, 0xFFF) != flags & 0xFFF:  # also where hashes are longer
                return None
            if data[at + 24 : at + 28] == _LINK:
                names.append(os.fsdecode(data[begins:ends]))
            at += (ends - at + 8) // 8 * 8
    return names


def _configs(place: Path) -> Iterator[Path]:
    common = place / "commondir"
    base = place / _text(common).strip() if common.is_file() else place
    yield base / "config"
    yield place / "config.worktree"
    modules = base / "modules"
    if modules.is_dir():
        for seen, path in enumerate(modules.rglob("config*")):
            yield path if seen < _MODULES else modules


def _settings(path: Path) -> Iterator[str]:
    """The names of a file's settings in small letters, a subsection's name as a star; what cannot be read is called after its file."""
    try:
        text = _text(path)
    except OSError:
        if path.exists():
            yield path.name
        return
    section = ""
    for line in _joined(text.splitlines()):
        rest = line
        if found := _HEAD.match(line):
            section = found[1].lower() if found[2] is None else f"{found[1].lower()}.*"
            rest = line[found.end() :]
        if not rest.strip() or rest.lstrip()[0] in "#;":
            continue
        named = _KEY.match(rest)
        yield f"{section}.{named[1].lower()}" if named else f"{path.name}: {rest.strip()[:40]}"


_GOES_ON: Final = re.compile(r'(?:[^"\\#;]|\\.|"(?:[^"\\]|\\.)*+")*+(?:"(?:[^"\\]|\\.)*+)?\\')  # in a comment no line does
_LONGEST: Final = 10_000  # characters of a setting


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Lines of settings, put together where one goes on."""
    whole = ""
    for line in lines:
        whole += line
        if len(whole) < _LONGEST and _GOES_ON.fullmatch(whole):
            whole = whole[:-1]
        else:
            yield whole
            whole = ""
    yield whole


def _text(path: Path) -> str:
    """A file's words. Raises OSError, also when it is too large or no text."""
    if not path.is_file() or path.stat().st_size > _SETTINGS_BYTES:
        raise OSError(f"{path} is no file, or too large")
    return path.read_text("utf-8", "surrogateescape")
