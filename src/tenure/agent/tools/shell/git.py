"""What a git command does: only look, change the repository, or throw work away. Pure.

Which options leave a subcommand a look stands in `looks.GIT`. Even these do what the repository's settings say, which the judge reads.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from tenure.agent.approval import CallEffect
from tenure.agent.tools.shell.effects import (
    QUIET,
    Asks,
    Effect,
    Effects,
    GitSettings,
    Reads,
    Rule,
    Writes,
    destroys,
    has_option,
    positional,
    reaches,
    texts,
)
from tenure.agent.tools.shell.grammar import CommandLine
from tenure.agent.tools.shell.read_only_options import GIT
from tenure.agent.tools.shell.remote import acts_remotely, remotely
from tenure.agent.tools.shell.script import Word

_GLOBAL_PLAIN: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"})
_GLOBAL_VALUE: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_LISTING: Final = "list contains no-contains merged no-merged points-at"  # of branch and tag, with names behind
_DRY: Final = re.compile(r"-[dxXq]*n[dxXqn]*")  # of clean
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9-]*")

# Subcommands that change this repository, or what is known of others here.
_LOCAL: Final = frozenset(
    "add am apply archive branch bundle cherry-pick citool clone commit commit-graph commit-tree difftool fast-export fast-import fetch fetch-pack format-patch"
    " fsck gui hash-object help index-pack init instaweb interpret-trailers ls-remote mailinfo mailsplit maintenance merge merge-file merge-tree mergetool mktag mktree"
    " multi-pack-index mv pack-objects pack-refs patch-id prune-packed pull quiltimport rebase remote repack replace rerere reset revert rm scalar sparse-checkout"
    " stage stripspace switch tag unpack-file unpack-objects update-index var verify-commit verify-pack verify-tag write-tree".split()
)

_LOSES: Final = "it throws away changes that are not committed"
_MAY_LOSE: Final = "it may throw away changes that are not committed"
_ENDS: Final = "it deletes what git could bring back"
# Subcommands that destroy whatever they are told.
_ALWAYS: Final[Mapping[str, str]] = {
    "clean": "it deletes files that git does not know",
    "filter-branch": "it rewrites history",
    "filter-repo": "it rewrites history",
    "update-ref": "it moves or deletes references",
    "prune": _ENDS,
    "gc": "it may delete what git could bring back",
    "checkout-index": "it may overwrite files",
    "read-tree": "it may overwrite files",
}
# Subcommands that destroy with one of these letters or names of options.
_WITH: Final[Mapping[str, tuple[str, str, str]]] = {
    "reset": ("", "hard merge keep", _LOSES),
    "switch": ("fC", "force discard-changes force-create", _MAY_LOSE),
    "rm": ("f", "force", "it deletes files with changes that are not committed"),
    "tag": ("df", "delete force", "it deletes or moves a tag"),
    "branch": ("D", "delete-force", "it deletes a branch with what is only on it"),
    "push": ("fd", "force force-with-lease force-if-includes mirror delete prune", "it may overwrite or delete what others have"),
    "checkout": ("fpB", "force patch pathspec-from-file ours theirs", _MAY_LOSE),
}


def git(words: Sequence[Word]) -> Effects:
    """What `git WORDS` does."""
    rest = list(words)
    folder: Word | None = None
    effects: list[Effect] = []
    while rest and rest[0].text.startswith("-"):
        option = rest[0]
        if option.text == "-C" and len(rest) > 1 and folder is None and rest[1].plain:
            folder, rest = rest[1], rest[2:]
        elif option.plain and option.text in _GLOBAL_PLAIN:
            rest = rest[1:]
        else:  # -c and --config-env can make git run anything, --work-tree can be anywhere
            effects.append(Asks(reason=f"git {option.text} may make git act elsewhere or run other programs"))
            rest = rest[2 if option.text in _GLOBAL_VALUE else 1 :]
    effects += _subcommand(rest, folder)
    if folder is not None and any(isinstance(effect, Asks) and effect.act is CallEffect.COMMAND for effect in effects):
        effects.append(Writes(target=folder))
    return tuple(effects)


def _subcommand(words: Sequence[Word], folder: Word | None) -> Effects:
    if not words:
        return QUIET
    name, rest = words[0].text, words[1:]
    if not words[0].plain or not _SUBCOMMAND.fullmatch(name):
        return (Asks(reason="which git command it is can only be told when it runs"),)
    looks = _looks(name, rest)
    if looks is not None and not any(isinstance(effect, Asks) for effect in looks):
        return (*(_below(effect, folder) for effect in looks), GitSettings(folder=folder, blames=name in ("blame", "annotate")))
    if name in _ALWAYS:
        return (destroys(_ALWAYS[name]),)
    letters, names, reason = _WITH.get(name, ("", "", ""))
    if has_option(rest, letters, names):
        return (destroys(reason),)
    if name in _RULES:
        return _RULES[name](rest)
    if looks or name in _LOCAL or (name == "lfs" and not acts_remotely("git lfs", rest)):
        return looks or (_asks(name),)
    return (remotely(f"git {name}", f"git {name}"),)  # an alias, or a program called `git-…`


def _looks(name: str, rest: Sequence[Word]) -> Effects | None:
    """What it does as far as it is a subcommand that can be a look; None of any other."""
    action = f"{name} {rest[0].text}" if rest and rest[0].plain else ""
    if action in GIT:
        name, rest = action, rest[1:]
    elif name in ("branch", "tag") and has_option(rest, "" if name == "branch" else "ln", _LISTING):
        name = f"{name} --list"
    elif name == "clean" and any(word.plain and (word.text == "--dry-run" or _DRY.fullmatch(word.text)) for word in rest):
        name = "clean -n"
    if name not in GIT or (name == "config" and not rest):
        return None
    formats = CommandLine(GIT[name], rest).values("--format", "--pretty", "--group")
    if any("%G" in word.text or "signature" in word.text for word in rest) or not all(word.plain for word in formats):
        return (Asks(reason="it may run the program that checks signatures"),)
    effects = GIT[name].effects(f"git {name}", rest)
    files = [effect for effect in effects if isinstance(effect, Reads)]
    if name != "diff" or not (len(files) > 1 or any(effect.target.loose for effect in files)):
        return effects
    # A diff of two folders shows all that is below, git's or not.
    return tuple(structs.replace(effect, deep=True) if isinstance(effect, Reads) else effect for effect in effects)


def _below(effect: Effect, folder: Word | None) -> Effect:
    """An effect as it is from another folder: what a revision and a colon stand before is a path as well."""
    if not isinstance(effect, Reads):
        return effect
    target = effect.target
    path = target.text.rpartition(":")[2] if target.plain else target.text
    if folder is not None and not path.startswith("/"):
        template = target.template and f"{folder.text}/{target.template}"
        target = structs.replace(target, text=f"{folder.text}/{path}", template=template)
    elif target.plain:
        target = structs.replace(target, text=path)
    return structs.replace(effect, target=target)


def _asks(subcommand: str) -> Asks:
    return Asks(reason="it changes the repository", key=f"git {subcommand}")


def _branch(words: Sequence[Word]) -> Effects:
    lost = has_option(words, "d", "delete") and has_option(words, "f", "force")
    return (destroys(_WITH["branch"][2]) if lost else _asks("branch"),)


def _stash(words: Sequence[Word]) -> Effects:
    lost = words and words[0].text in ("drop", "clear")
    return (destroys("it throws stashed work away") if lost else _asks("stash"),)


def _push(words: Sequence[Word]) -> Effects:
    if any(word.text.startswith(("+", ":")) or not word.plain for word in words):
        return (destroys(_WITH["push"][2]),)
    return (remotely("git push", "git push"),)


def _checkout(words: Sequence[Word]) -> Effects:
    named = positional(words)
    files = len(named) > 1 or any(re.search(r"[/.*]", word.text) and not word.text.startswith("origin/") for word in named)
    lost = {"--", "."} & set(texts(words)) or (files and not has_option(words, "b", "orphan"))
    return (destroys(_WITH["checkout"][2]) if lost else _asks("checkout"),)


def _restore(words: Sequence[Word]) -> Effects:
    staged = has_option(words, "S", "staged") and not has_option(words, "W", "worktree")
    return (_asks("restore --staged") if staged else destroys(_LOSES),)


def _config(words: Sequence[Word]) -> Effects:
    if has_option(words, "", "global system file"):
        return (reaches("it changes git's settings outside this repository"),)
    return (Asks(reason="it changes git's settings, which can run programs"),)


def _new(words: Sequence[Word]) -> Effects:
    """Of clone and init: it writes where it is told to."""
    named = positional(words, "bjocu")
    elsewhere = named[-1:] if named and not re.search(r"^\w[\w+.-]*:|@.*:", named[-1].text) else []
    return (Asks(reason="it makes a repository"), *(Writes(target=word) for word in elsewhere))


def _worktree(words: Sequence[Word]) -> Effects:
    action = words[0].text if words else ""
    if action in ("remove", "move") and has_option(words, "f", "force"):
        return (destroys(_LOSES),)
    named = positional(words[1:], "bB")
    return (_asks("worktree"), *(Writes(target=word) for word in (named[:1] if action == "add" else named[1:2])))


def _kept(words: Sequence[Word]) -> Effects:
    """Of what has subcommands, some of which throw away."""
    action = words[0].text if words else ""
    forced = has_option(words, "f", "force expire all")
    lost = action in ("expire", "delete") or (action in ("prune", "remove", "deinit", "drop") and forced)
    return (destroys(_ENDS) if lost else Asks(reason="it changes the repository"),)


_RULES: Final[Mapping[str, Rule]] = {
    "branch": _branch,
    "stash": _stash,
    "push": _push,
    "checkout": _checkout,
    "restore": _restore,
    "config": _config,
    "worktree": _worktree,
    **dict.fromkeys(("clone", "init"), _new),
    **dict.fromkeys(("submodule", "reflog", "notes", "bisect"), _kept),
}
