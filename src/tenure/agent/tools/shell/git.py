"""What a git command does, as tables. Pure. Promise: what throws work away is told from what only looks, and from what can be undone."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tenure.agent.tools.shell.effects import (
    FREE,
    Asks,
    Destroys,
    Effects,
    Reaches,
    Writes,
    has_option,
    may_be_option,
    positional,
    texts,
)
from tenure.agent.tools.shell.script import Word

# Subcommands that only look, whatever is asked of them but the options below.
_LOOKS: Final = frozenset(
    "status diff log show blame annotate rev-parse rev-list ls-files ls-tree cat-file describe shortlog grep merge-base name-rev"
    " for-each-ref show-ref show-branch count-objects check-ignore check-attr check-ref-format diff-tree diff-index diff-files"
    " whatchanged range-diff cherry var version verify-commit verify-tag patch-id".split()
)
_TELLING: Final = (
    "output",
    "open-files-in-pager",
    "ext-diff",
    "textconv",
    "filters",
    "exec",
)  # options of these that write or run something
_GLOBAL_PLAIN: Final = frozenset(
    "--no-pager -P --no-optional-locks --literal-pathspecs --no-replace-objects --bare --paginate -p".split()
)
_GLOBAL_VALUE: Final = frozenset({"-C", "--git-dir", "--work-tree", "--namespace"})
_DRY: Final = re.compile(r"-[dfxXq]*n[dfxXqn]*|--dry-run")  # of clean
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z-]*")


def _branch(words: Sequence[Word]) -> Effects:
    if has_option(words, "D", ("delete-force",)) or (has_option(words, "d", ("delete",)) and has_option(words, "f", ("force",))):
        return (Destroys(reason="it deletes a branch with what is only on it"),)
    changing = has_option(
        words, "dDmMcCfuet", ("delete", "move", "copy", "force", "set-upstream-to", "unset-upstream", "edit-description")
    )
    listing = has_option(words, "l", ("list", "show-current", "contains", "no-contains", "merged", "no-merged", "points-at"))
    return FREE if not changing and (listing or not positional(words)) else (_asks("branch"),)


def _stash(words: Sequence[Word]) -> Effects:
    action = words[0].text if words else ""
    if action in ("list", "show"):
        return FREE
    return (Destroys(reason="it throws stashed work away"),) if action in ("drop", "clear") else (_asks("stash"),)


def _push(words: Sequence[Word]) -> Effects:
    forced = has_option(words, "fd", ("force", "force-with-lease", "force-if-includes", "mirror", "delete", "prune"))
    if forced or any(word.text.startswith(("+", ":")) or not word.plain for word in words):
        return (Destroys(reason="it may overwrite or delete what others have"),)
    return (Asks(reason="it publishes commits", key="git push"),)


def _reset(words: Sequence[Word]) -> Effects:
    lost = has_option(words, "", ("hard", "merge", "keep"))
    return (Destroys(reason="it throws away changes that are not committed"),) if lost else (_asks("reset"),)


def _clean(words: Sequence[Word]) -> Effects:
    dry = any(_DRY.fullmatch(word.text) for word in words)
    return FREE if dry else (Destroys(reason="it deletes files that git does not know"),)


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
    reading = has_option(words, "l", ("get", "get-all", "get-regexp", "get-urlmatch", "list", "show-origin", "show-scope"))
    reads = reading or (words and words[0].text in ("get", "list")) or (len(words) == 1 and words[0].text[:1] not in ("-", ""))
    editing = has_option(words, "e", ("edit", "unset", "unset-all", "add", "replace-all", "rename-section", "remove-section"))
    if reads and not editing:
        return FREE
    if has_option(words, "", ("global", "system", "file")):
        return (Reaches(reason="it changes git's settings outside this repository"),)
    return (Asks(reason="it changes git's settings, which can run programs"),)


def _remote(words: Sequence[Word]) -> Effects:
    action = next((word.text for word in words if not word.text.startswith("-")), "")
    return FREE if action in ("", "get-url") else (_asks("remote"),)


def _tag(words: Sequence[Word]) -> Effects:
    changing = has_option(words, "dfasum", ("delete", "force", "annotate", "sign", "message", "file"))
    listing = has_option(words, "ln", ("list", "contains", "no-contains", "points-at", "merged", "no-merged"))
    return FREE if not changing and (listing or not positional(words)) else (_asks("tag"),)


def _new(words: Sequence[Word]) -> Effects:
    """Of clone and init: it writes where it is told to."""
    named = positional(words, "bjocu")
    elsewhere = named[-1:] if named and not re.search(r"^\w[\w+.-]*:|@.*:", named[-1].text) else []
    return (Asks(reason="it makes a repository"), *(Writes(target=word) for word in elsewhere))


def _worktree(words: Sequence[Word]) -> Effects:
    action = words[0].text if words else ""
    if action == "list":
        return FREE
    if action in ("remove", "move") and has_option(words, "f", ("force",)):
        return (Destroys(reason="it throws away changes that are not committed"),)
    named = positional(words[1:], "bB")
    return (_asks("worktree"), *(Writes(target=word) for word in (named[:1] if action == "add" else named[1:2])))


def _listed(*actions: str) -> Callable[[Sequence[Word]], Effects]:
    def rule(words: Sequence[Word]) -> Effects:
        action = words[0].text if words else ""
        if action in actions or ("" in actions and action.startswith("-")):
            return FREE
        lost = action in ("expire", "delete", "prune", "remove", "deinit", "drop") and has_option(
            words, "f", ("force", "expire", "all")
        )
        lost = lost or action in ("expire", "delete")
        return (Destroys(reason="it deletes what git could bring back"),) if lost else (Asks(reason="it changes the repository"),)

    return rule


def _destroys(reason: str) -> Callable[[Sequence[Word]], Effects]:
    return lambda _: (Destroys(reason=reason),)


_RULES: Final[Mapping[str, Callable[[Sequence[Word]], Effects]]] = {
    "branch": _branch,
    "stash": _stash,
    "push": _push,
    "reset": _reset,
    "clean": _clean,
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "config": _config,
    "remote": _remote,
    "tag": _tag,
    "clone": _new,
    "init": _new,
    "worktree": _worktree,
    "submodule": _listed("status", "summary"),
    "reflog": _listed("", "show", "exists"),
    "notes": _listed("", "list", "show"),
    "bisect": _listed("log", "view"),
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
    while rest and rest[0].text.startswith("-"):
        option = rest[0].text
        if option in ("--version", "--help", "--exec-path", "--html-path") and len(rest) == 1:
            return FREE
        if option in _GLOBAL_VALUE:
            rest = rest[2:]
        elif option in _GLOBAL_PLAIN or option.partition("=")[0] in _GLOBAL_VALUE:
            rest = rest[1:]
        else:  # -c and --config-env can make git run anything
            return (
                *_subcommand(rest[2 if option == "-c" else 1 :]),
                Asks(reason=f"git {option} may make git run other programs"),
            )
    return _subcommand(rest)


def _subcommand(words: Sequence[Word]) -> Effects:
    if not words:
        return FREE
    name, rest = words[0], words[1:]
    if not name.plain or not _SUBCOMMAND.fullmatch(name.text):
        return (Asks(reason="which git command it is can only be told when it runs"),)
    if name.text in _LOOKS:
        if has_option(rest, "O" if name.text == "grep" else "", _TELLING) or may_be_option(rest):
            return (Asks(reason="an option of it may write a file or run a program"),)
        return FREE
    if name.text in _RULES:
        found = _RULES[name.text](rest)
        return found if found or not may_be_option(rest) else (Asks(reason="an option of it may change something"),)
    if name.text == "rm" and has_option(rest, "f", ("force",)):
        return (Destroys(reason="it deletes files with changes that are not committed"),)
    return (_asks(name.text),)


def _asks(subcommand: str) -> Asks:
    return Asks(reason="it changes the repository", key=f"git {subcommand}")
