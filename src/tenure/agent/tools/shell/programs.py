"""What programs do, as tables: which only look, which write, which run others. Pure. Promise: an unknown program is never taken for a free one."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tenure.agent.tools.shell.builtins import BUILTINS
from tenure.agent.tools.shell.effects import (
    FREE,
    OPAQUE,
    Asks,
    Destroys,
    Effects,
    Reaches,
    Runs,
    RunsInput,
    RunsText,
    Writes,
    has_option,
    may_be_option,
    positional,
    texts,
)
from tenure.agent.tools.shell.filters import awk, fd, find, sed
from tenure.agent.tools.shell.git import git
from tenure.agent.tools.shell.script import Word
from tenure.agent.tools.shell.tables import (
    DESTROYERS,
    DESTROYING,
    DISKS,
    ELSEWHERE,
    KEY,
    LANGUAGES,
    LISTED_BIN,
    LOOKED_AT,
    LOOKS,
    LOOKS_BUT,
    QUERIES,
    RUNNERS,
    SAID,
    SHELLS,
    SUBCOMMANDS,
    TELLTALES,
    VERSIONED,
    VERSIONS,
    WRAPPER_NAMES,
    WRAPPERS,
    is_harmless,
)

Rule = Callable[[Sequence[Word]], Effects]  # of the words behind the program's name


def effects(words: Sequence[Word]) -> Effects:
    """What a command does."""
    program, rest = words[0], words[1:]
    if not program.plain:
        return (OPAQUE,)
    listed = LISTED_BIN.fullmatch(program.text)
    name = listed[1] if listed else program.text
    if name in RULES:
        return RULES[name](rest)
    if name in LOOKS:
        return FREE
    if name in LOOKS_BUT:
        letters, names = LOOKS_BUT[name]
        if has_option(rest, letters, names) or may_be_option(rest):
            return (Asks(reason=f"an option of {name} may write a file or run a program"),)
        return FREE
    if name in VERSIONED and len(rest) == 1 and rest[0].text in VERSIONS:
        return FREE
    if name in QUERIES and rest and rest[0].text in QUERIES[name] and not may_be_option(rest):
        return FREE
    return _unknown(name, rest)


def _unknown(name: str, rest: Sequence[Word]) -> Effects:
    """A program that is not known to only look, with what may be hidden among its arguments."""
    said = " ".join(texts(rest))
    destroys = name in DESTROYING and (len(said) > SAID or DESTROYING[name].search(said))
    if destroys or name in DESTROYERS or DISKS.fullmatch(name):
        return (Destroys(reason=f"`{name}` can do what cannot be undone"),)
    hidden = tuple(
        Runs(words=tuple(rest[n:]))
        for n, word in enumerate(rest[:LOOKED_AT])
        if word.text.rpartition("/")[2] in TELLTALES or DISKS.fullmatch(word.text)
    )
    if name in ELSEWHERE:
        unknown = () if all(word.plain for word in rest) else (OPAQUE,)
        return (Reaches(reason=f"`{name}` acts beyond the workspace or as somebody else"), *hidden, *unknown)
    if name in SHELLS:
        return _shell(name, rest)
    if LANGUAGES.fullmatch(name):
        return (*_language(name, rest), *hidden)
    return (Asks(reason=f"`{name}` may change something", key=_key(name, rest)), *hidden)


def _key(name: str, rest: Sequence[Word]) -> str:
    """What a person can allow for all calls of the kind: the program, with its subcommand where it has such."""
    words = [Word(text=name)]
    if name in SUBCOMMANDS and rest:
        first = next((n for n, word in enumerate(rest) if not word.text.startswith("-")), len(rest))
        taken = 2 if first < len(rest) and rest[first].text in RUNNERS else 1
        words += rest[first : first + taken]
        if len(words) <= taken or words[-1].text.startswith("-") or _is_interpreter(words[-1].text):
            return ""
    return " ".join(texts(words)) if all(word.plain and KEY.fullmatch(word.text) for word in words) else ""


def _is_interpreter(name: str) -> bool:
    return name in SHELLS or LANGUAGES.fullmatch(name) is not None


def _shell(name: str, rest: Sequence[Word]) -> Effects:
    """A shell: what it runs is a text, a file, or what comes in."""
    text = False
    at = 0
    while at < len(rest) and rest[at].text[:1] in ("-", "+") and rest[at].text != "-":
        option = rest[at].text
        at += 1
        if option in ("--version", "--help"):
            return FREE
        if option == "--":
            break
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
        else:
            text = text or ("c" in option)
            at += option[-1] in "oO"
            if "s" in option:
                return (RunsInput(script=True),)
    if at >= len(rest) or rest[at].text == "-":
        return (RunsInput(script=True),)
    if text:
        return (RunsText(text=rest[at]),)
    return _file(name, rest[at])


def _language(name: str, rest: Sequence[Word]) -> Effects:
    """An interpreter of another language."""
    if len(rest) == 1 and rest[0].text in ("--version", "-V", "--help", *(("-v",) if name.startswith("node") else ())):
        return FREE
    for n, word in enumerate(rest):
        if word.text == "-":
            return (RunsInput(script=False),)
        if word.text == "-m" and name.startswith(("python", "pypy")):
            module = rest[n + 1].text if n + 1 < len(rest) and rest[n + 1].plain else ""
            return (Asks(reason=f"`{name}` may change something", key=f"{name} -m {module}" if KEY.fullmatch(module) else ""),)
        if not word.plain and word.text[:1] in "*?[":
            return (OPAQUE,)
        if re.match(r"-\w*[ceEpr]|--(?:eval|print|exec)", word.text):
            return (Asks(reason=f"`{name}` runs code that may change something"),) if n + 1 < len(rest) else (OPAQUE,)
        if not word.text.startswith("-"):
            return _file(name, word)
    return (RunsInput(script=False),)


def _file(name: str, word: Word) -> Effects:
    """A script in a file; one that is made as it runs cannot be looked at."""
    if not word.plain or word.text.startswith(("/dev/", "/proc/")):
        return (OPAQUE,)
    return (Asks(reason=f"it runs {word.text}", key=f"{name} {word.text}" if KEY.fullmatch(word.text) else ""),)


def _wrapper(name: str) -> Rule:
    """A program that runs another one."""
    valued, flags, before = WRAPPERS[name]

    def rule(rest: Sequence[Word]) -> Effects:
        at, token = 0, ""
        while at < len(rest) and rest[at].text.startswith("-"):
            option = rest[at].text
            at += 1
            if option == "--":
                break
            if name == "command" and option in ("-v", "-V"):
                return FREE
            alone = len(option) == 2
            if not rest[at - 1].plain or len(option) < 2:
                return _unknown(name, rest)
            if option[1] in valued:
                token = (rest[at].text if alone and at < len(rest) else option[2:]) if option[1] == "I" else token
                at += alone
            elif not (option in WRAPPER_NAMES or set(option[1:]) <= set(flags) or (name == "nice" and option[1:].isdigit())):
                return _unknown(name, rest)
        inner = [_unknown_word(word, token) for word in rest[at + before :]]
        if name == "xargs" and inner:
            inner.append(Word(text="*", plain=False))
        return (Runs(words=tuple(inner)),) if inner else FREE

    return rule


def _unknown_word(word: Word, token: str) -> Word:
    """The word as xargs leaves it, which puts what it reads in place of the token."""
    return Word(text=word.text.replace(token, "*"), plain=False) if token and token in word.text else word


def _env(rest: Sequence[Word]) -> Effects:
    at = 0
    found: list[Asks] = []
    while at < len(rest):
        text = rest[at].text
        if text in ("-", "-i", "--ignore-environment", "-0", "--null"):
            at += 1
        elif text in ("-u", "--unset"):
            found.append(Asks(reason="it changes the environment of a command"))
            at += 2
        elif text.startswith("-"):
            return _unknown("env", rest)
        elif "=" in text:
            found += [] if is_harmless(text.partition("=")[0]) else [Asks(reason="it changes the environment of a command")]
            at += 1
        else:
            break
    inner = tuple(rest[at:])
    return (*found, *((Runs(words=inner),) if inner else ()))


def _rm(rest: Sequence[Word]) -> Effects:
    if has_option(rest, "rR", ("recursive", "no-preserve-root")) or any(not word.plain for word in rest):
        return (Destroys(reason="it deletes files that cannot be brought back"),)
    return (Asks(reason="it deletes a file"), *(Writes(target=word) for word in positional(rest)))


def _writer(name: str, *, last: bool = False, skip: int = 0, recursive: bool = False) -> Rule:
    """A program that changes what its arguments name: all of them, or the last one."""

    def rule(rest: Sequence[Word]) -> Effects:
        if recursive and has_option(rest, "R", ("recursive",)):
            return (Destroys(reason="it changes a whole folder at once"),)
        named = positional(rest, "mstS" if name in ("install", "mkdir", "truncate", "touch") else "tS")
        into = [rest[n + 1] for n, word in enumerate(rest[:-1]) if word.text == "-t"]
        into += [
            Word(text=word.text.partition("=")[2], plain=word.plain)
            for word in rest
            if word.text.startswith("--target-directory=")
        ]
        targets = into or (named[-1:] if last else named[skip:])
        extra = () if named or rest else (Asks(reason=f"`{name}` may change something"),)
        return (Asks(reason=f"`{name}` changes files", key=name), *(Writes(target=word) for word in targets), *extra)

    return rule


def _at_most(name: str, count: int, *, allowed: str = "", valued: str = "") -> Rule:
    """A program that looks as long as it has no more than so many arguments, or they begin as is allowed."""
    letters, names = LOOKS_BUT.get(name, ("", ()))

    def rule(rest: Sequence[Word]) -> Effects:
        named = [word for word in positional(rest, valued) if not (allowed and word.text.startswith(allowed))]
        if len(named) > count or has_option(rest, letters, names) or may_be_option(rest):
            return (Asks(reason=f"`{name}` may change something"),)
        return FREE

    return rule


def _dd(rest: Sequence[Word]) -> Effects:
    writes = any(word.text.startswith("of=") or not word.plain for word in rest)
    return (Destroys(reason="it overwrites a file or a device"),) if writes else (Asks(reason="`dd` may change something"),)


def _net(name: str) -> Rule:
    def rule(rest: Sequence[Word]) -> Effects:
        flags = ("-o", "--output") if name == "curl" else ("-O", "--output-document", "-P", "--directory-prefix")
        targets = [rest[n + 1] for n, word in enumerate(rest[:-1]) if word.text in flags]
        return (Asks(reason="it speaks to the network"), *(Writes(target=word) for word in targets if word.text != "-"))

    return rule


def _source(rest: Sequence[Word]) -> Effects:
    return tuple(_file("source", rest[0])) if rest else FREE


def _ps(rest: Sequence[Word]) -> Effects:
    shows = any(re.fullmatch(r"[a-zA-Z]*e[a-zA-Z]*", word.text) for word in rest)
    return (Reaches(reason="it shows what other programs keep in their environment"),) if shows else FREE


def _kill(rest: Sequence[Word]) -> Effects:
    said = texts(rest)
    if "-1" in said[1:] or "1" in said or said == ["-1"]:
        return (Destroys(reason="it ends every process"),)
    return (Asks(reason="it ends a process"),)


RULES: Final[Mapping[str, Rule]] = {
    **{name: _wrapper(name) for name in WRAPPERS},
    "env": _env,
    "git": git,
    "find": find,
    "fd": fd,
    "fdfind": fd,
    "sed": sed,
    "gsed": sed,
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    "rm": _rm,
    "dd": _dd,
    "curl": _net("curl"),
    "wget": _net("wget"),
    **{name: _writer(name) for name in ("touch", "mkdir", "rmdir", "unlink", "tee", "truncate", "mv", "mkfifo", "mknod")},
    **{name: _writer(name, last=True) for name in ("cp", "ln", "install")},
    **{name: _writer(name, skip=1, recursive=True) for name in ("chmod", "chown", "chgrp")},
    "uniq": _at_most("uniq", 1, valued="fsw"),
    "date": _at_most("date", 0, allowed="+", valued="dfr"),
    "hostname": _at_most("hostname", 0),
    "xxd": _at_most("xxd", 1, valued="lscgo"),
    **BUILTINS,
    **dict.fromkeys(("source", "."), _source),
    "ps": _ps,
    "kill": _kill,
}
