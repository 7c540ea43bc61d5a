"""What a git repository's own settings would make git run (an edge: it reads them). What is not known to be harmless counts.

https://git-scm.com/docs/git-config. Settings of the user are the user's own; those of the repository came with it.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_BYTES: Final = 2**20  # of settings
_MODULES: Final = 200  # repositories within one
_FILES: Final = 5_000
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
    r"|(?:color|column|advice|init|push|fetch|gc|pack|index|feature|maintenance|tag|rerere|format|status|blame|checkout|worktree|http|url\.\*"
    r"|submodule(?:\.\*)?|color\.\*|http\.\*|credential(?:\.\*)?|alias|gui|gitflow(?:\.\*)?|github|hub|lazygit|magithub|entire(?:\.\*)?)\.\w[\w-]*"
    r"|pull\.(?:rebase|ff|twohead)|rebase\.(?:autosquash|autostash|updaterefs|stat)|merge\.(?:conflictstyle|ff|log|renames|renamelimit|stat|directoryrenames)"
    r"|commit\.(?:gpgsign|verbose|cleanup|status)|log\.(?:date|decorate|follow|abbrevcommit|mailmap|initialdecorationset)"
    r"|diff\.(?:renames|renamelimit|algorithm|colormoved|colormovedws|mnemonicprefix|noprefix|context|interhunkcontext|submodule|ignoresubmodules|wordregex"
    r"|statgraphwidth|indentheuristic|relative|orderfile)|diff\.\*\.(?:xfuncname|funcname|binary|wordregex|cachetextconv)"
    r"|lfs\.(?:repositoryformatversion|url|locksverify|allowincompletepush|concurrenttransfers|batch)|lfs\.\*\.(?:access|locksverify)"
)


def unsafe_setting(folder: Path) -> str:
    """A setting of the repository around a folder that may make git run something, as `section.key`; empty when there is none."""
    place = _git_folder(folder)
    if place is None:
        return ""
    return next((name for path in _configs(place) for name in _settings(path) if not _HARMLESS.fullmatch(name)), "")


def _git_folder(folder: Path) -> Path | None:
    """Where the repository keeps its data: `.git` beside or above, or where such a file leads."""
    for each in (folder, *folder.parents):
        place = each / ".git"
        if place.is_dir():
            return place
        if place.is_file():
            words = _text(place).removeprefix("gitdir:").strip()
            return each / words if words else None
    return None


def _configs(place: Path) -> Iterator[Path]:
    """The files with settings of a repository and of those within it."""
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
    for line in text.replace("\\\n", "").splitlines():
        rest = line
        if found := _HEAD.match(line):
            section = found[1].lower() if found[2] is None else f"{found[1].lower()}.*"
            rest = line[found.end() :]
        if not rest.strip() or rest.lstrip()[0] in "#;":
            continue
        named = _KEY.match(rest)
        yield f"{section}.{named[1].lower()}" if named else f"{path.name}: {rest.strip()[:40]}"


def _text(path: Path) -> str:
    """A file's words. Raises OSError, also when it is too large or no text."""
    if not path.is_file() or path.stat().st_size > _BYTES:
        raise OSError(f"{path} is no file, or too large")
    return path.read_text("utf-8", "surrogateescape")
