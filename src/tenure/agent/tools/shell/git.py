"""What a git command does: only look, change the repository, or throw work away. Pure.

Which options leave a subcommand a look stands in `looks.GIT`. Even these do what the repository's settings say, which the judge reads.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.effects import (
    QUIET,
    Asks,
    Destroys,
    Effect,
    Effects,
    Reaches,
    Reads,
    Repository,
    Writes,
    has_option,
    positional,
    texts,
)
from tenure.agent.tools.shell.looks import GIT
from tenure.agent.tools.shell.script import Word

_GLOBAL_PLAIN: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"})
_GLOBAL_VALUE: Final = frozenset({"--git-dir", "--work-tree", "--namespace"})
_LISTING: Final = ("list", "contains", "no-contains", "merged", "no-merged", "points-at")  # of branch and tag, with names behind
_DRY: Final = re.compile(r"-[dxXq]*n[dxXqn]*")  # of clean
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z-]*")


def _branch(words: Sequence[Word]) -> Effects:
    if has_option(words, "D", ("delete-force",)) or (has_option(words, "d", ("delete",)) and has_option(words, "f", ("force",))):
        return (Destroys(reason="it deletes a branch with what is only on it"),)
    return (_asks("branch"),)


def _stash(words: Sequence[Word]) -> Effects:
    action = words[0].text if words else ""
    return (Destroys(reason="it throws stashed work away"),) if action in ("drop", "clear") else (_asks("stash"),)


def _push(words: Sequence[Word]) -> Effects:
    forced = has_option(words, "fd", ("force", "force-with-lease", "force-if-includes", "mirror", "delete", "prune"))
    if forced or any(word.text.startswith(("+", ":")) or not word.plain for word in words):
        return (Destroys(reason="it may overwrite or delete what others have"),)
    return (Asks(reason="it publishes commits", key="git push"),)


def _reset(words: Sequence[Word]) -> Effects:
    lost = has_option(words, "", ("hard", "merge", "keep"))
    return (Destroys(reason="it throws away changes that are not committed"),) if lost else (_asks("reset"),)


def _checkout(words: Sequence[Word]) -> Effects:
    said = texts(words)
    new = has_option(words, "bB", ("orphan",))
    paths = "--" in said or has_option(words, "fp", ("force", "patch", "pathspec-from-file", "ours", "theirs")) or "." in said
    named = positional(words)
    files = len(named) > 1 or any(re.search(r"[/.*]", word.text) and not word.text.startswith("origin/") for word in named)
    if paths or (files and not new) or has_option(words, "B"):
        return (Destroys(reason="it may throw away changes that are not committed"),)
    return (_asks("checkout"),)


def _switch(words: Sequence[Word]) -> Effects:
    lost = has_option(words, "fC", ("force", "discard-changes", "force-create"))
    return (Destroys(reason="it may throw away changes that are not committed"),) if lost else (_asks("switch"),)


def _restore(words: Sequence[Word]) -> Effects:
    staged = has_option(words, "S", ("staged",)) and not has_option(words, "W", ("worktree",))
    return (_asks("restore --staged"),) if staged else (Destroys(reason="it throws away changes that are not committed"),)


def _config(words: Sequence[Word]) -> Effects:
    if has_option(words, "", ("global", "system", "file")):
        return (Reaches(reason="it changes git's settings outside this repository"),)
    return (Asks(reason="it changes git's settings, which can run programs"),)


def _new(words: Sequence[Word]) -> Effects:
    """Of clone and init: it writes where it is told to."""
    named = positional(words, "bjocu")
    elsewhere = named[-1:] if named and not re.search(r"^\w[\w+.-]*:|@.*:", named[-1].text) else []
    return (Asks(reason="it makes a repository"), *(Writes(target=word) for word in elsewhere))


def _worktree(words: Sequence[Word]) -> Effects:
    action = words[0].text if words else ""
    if action in ("remove", "move") and has_option(words, "f", ("force",)):
        return (Destroys(reason="it throws away changes that are not committed"),)
    named = positional(words[1:], "bB")
    return (_asks("worktree"), *(Writes(target=word) for word in (named[:1] if action == "add" else named[1:2])))


def _kept(words: Sequence[Word]) -> Effects:
    """Of what has subcommands, some of which throw away."""
    action = words[0].text if words else ""
    forced = has_option(words, "f", ("force", "expire", "all"))
    lost = action in ("expire", "delete") or (action in ("prune", "remove", "deinit", "drop") and forced)
    return (Destroys(reason="it deletes what git could bring back"),) if lost else (Asks(reason="it changes the repository"),)


def _destroys(reason: str) -> Callable[[Sequence[Word]], Effects]:
    return lambda _: (Destroys(reason=reason),)


_RULES: Final[Mapping[str, Callable[[Sequence[Word]], Effects]]] = {
    "branch": _branch,
    "stash": _stash,
    "push": _push,
    "reset": _reset,
    "clean": _destroys("it deletes files that git does not know"),
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "config": _config,
    "clone": _new,
    "init": _new,
    "worktree": _worktree,
    "submodule": _kept,
    "reflog": _kept,
    "notes": _kept,
    "bisect": _kept,
    "filter-branch": _destroys("it rewrites history"),
    "filter-repo": _destroys("it rewrites history"),
    "update-ref": _destroys("it moves or deletes references"),
    "prune": _destroys("it deletes what git could bring back"),
    "gc": _destroys("it may delete what git could bring back"),
    "checkout-index": _destroys("it may overwrite files"),
    "read-tree": _destroys("it may overwrite files"),
}


def git(words: Sequence[Word]) -> Effects:
    """What `git WORDS` does."""
    rest = list(words)
    folder: Word | None = None
    found: list[Effect] = []
    while rest and rest[0].text.startswith("-"):
        option = rest[0]
        if option.text == "-C" and len(rest) > 1 and folder is None and rest[1].plain:
            folder, rest = rest[1], rest[2:]
        elif option.plain and option.text in _GLOBAL_PLAIN:
            rest = rest[1:]
        else:  # -c and --config-env can make git run anything, --work-tree can be anywhere
            found.append(Asks(reason=f"git {option.text} may make git act elsewhere or run other programs"))
            rest = rest[2 if option.text in ("-C", "-c") or option.text in _GLOBAL_VALUE else 1 :]
    found += _subcommand(rest, folder)
    if folder is not None and any(isinstance(effect, Asks) for effect in found):
        found.append(Writes(target=folder))
    return tuple(found)


def _subcommand(words: Sequence[Word], folder: Word | None) -> Effects:
    if not words:
        return QUIET
    name, rest = words[0], words[1:]
    if not name.plain or not _SUBCOMMAND.fullmatch(name.text):
        return (Asks(reason="which git command it is can only be told when it runs"),)
    looks = _looks(name.text, rest)
    if looks is not None and not any(isinstance(effect, Asks) for effect in looks):
        return (*(_below(effect, folder) for effect in looks), Repository(folder=folder))
    if name.text in _RULES:
        return _RULES[name.text](rest)
    if name.text == "rm" and has_option(rest, "f", ("force",)):
        return (Destroys(reason="it deletes files with changes that are not committed"),)
    return looks or (_asks(name.text),)


def _looks(name: str, rest: Sequence[Word]) -> Effects | None:
    """What it does as far as it is a subcommand that can be a look; None of any other."""
    action = f"{name} {rest[0].text}" if rest and rest[0].plain else ""
    if action in GIT:
        name, rest = action, rest[1:]
    elif name in ("branch", "tag") and has_option(rest, "l" if name == "branch" else "ln", _LISTING):
        name = f"{name} --list"
    elif name == "clean" and any(word.plain and (word.text == "--dry-run" or _DRY.fullmatch(word.text)) for word in rest):
        name = "clean -n"
    if name not in GIT or (name == "config" and not rest):
        return None
    if any("%G" in word.text or "signature" in word.text for word in rest):
        return (Asks(reason="it may run the program that checks signatures"),)
    found = GIT[name].effects(f"git {name}", rest)
    files = [effect for effect in found if isinstance(effect, Reads)]
    if name == "diff" and (
        len(files) > 1 or any(effect.target.loose for effect in files)
    ):  # of two folders all that is below, git's or not
        return tuple(structs.replace(effect, deep=True) if isinstance(effect, Reads) else effect for effect in found)
    return found


def _below(effect: Effect, folder: Word | None) -> Effect:
    """An effect as it is from another folder: what a revision and a colon stand before is a path as well."""
    if not isinstance(effect, Reads):
        return effect
    target = effect.target
    path = target.text.rpartition(":")[2] if target.plain else target.text
    if folder is not None and not path.startswith("/"):
        target = structs.replace(
            target, text=f"{folder.text}/{path}", template=target.template and f"{folder.text}/{target.template}"
        )
    elif target.plain:
        target = structs.replace(target, text=path)
    return structs.replace(effect, target=target)


def _asks(subcommand: str) -> Asks:
    return Asks(reason="it changes the repository", key=f"git {subcommand}")
