"""What programs do: which only look, which write, which run others. Pure. An unknown program is never taken for a free one."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.builtins import BUILTINS
from tenure.agent.tools.shell.effects import (
    FREE,
    OPAQUE,
    QUIET,
    Asks,
    Destroys,
    Effect,
    Effects,
    Overwrites,
    Prints,
    Reaches,
    Reads,
    Runs,
    RunsFile,
    RunsInput,
    RunsText,
    Writes,
    has_option,
    positional,
    texts,
)
from tenure.agent.tools.shell.filters import awk, fd, find, jq, sed
from tenure.agent.tools.shell.git import git
from tenure.agent.tools.shell.grammar import Grammar, grammar, read
from tenure.agent.tools.shell.looks import LOOKS, VERSIONS
from tenure.agent.tools.shell.script import CLOSE, OPEN, OUTPUT, Word
from tenure.agent.tools.shell.tables import (
    DESTROYERS,
    DESTROYING,
    DISKS,
    ELSEWHERE,
    KEY,
    LANGUAGES,
    LISTED_BIN,
    LOOKED_AT,
    OUTPUTS,
    RUNNERS,
    SAID,
    SHELLS,
    SUBCOMMANDS,
    TELLTALES,
    UNPACKERS,
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
    if len(rest) == 1 and rest[0].plain and rest[0].text in VERSIONS.get(name, ()):
        return FREE
    action = f"{name} {rest[0].text}" if rest and rest[0].plain else ""
    if action in LOOKS:
        name, rest = action, rest[1:]
    if name in LOOKS:
        looks = LOOKS[name].effects(name, rest)
        return (*looks, *_outputs(rest)) if any(isinstance(effect, Asks) for effect in looks) else looks
    return _unknown(name, rest)


def _outputs(rest: Sequence[Word]) -> Effects:
    """What a program may write that is not known, by the options with which programs are told where to."""
    found: list[Effect] = []
    for n, word in enumerate(rest):
        if (named := OUTPUTS.match(word.text)) is None:
            continue
        value = word.text[named.end() :].removeprefix("=")
        target = structs.replace(word, text=value, template="") if value else rest[n + 1] if n + 1 < len(rest) else None
        if target is not None and not target.text.startswith("-") and (target.plain or "/" in target.text):
            found.append(Writes(target=target))
    return tuple(found)


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
    written = (Writes(target=word) for word in positional(rest) if word.plain) if name in UNPACKERS else ()
    return (
        *_program(name),
        Asks(reason=f"`{name}` may change something", key=_key(name, rest)),
        *hidden,
        *_outputs(rest),
        *written,
    )


def _program(name: str) -> Effects:
    """The file that a program is, when it is named by one."""
    return (RunsFile(file=Word(text=name)),) if "/" in name else FREE


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
    known = name in ("bash", "sh", "dash")  # others read some texts differently
    while at < len(rest) and rest[at].text[:1] in ("-", "+") and rest[at].text != "-":
        option = rest[at].text
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
            known = False
        else:
            text = text or ("c" in option)
            known = known and rest[at - 1].plain and _SHELL_OPTION.fullmatch(option) is not None
            at += option[-1] in "oO"
            if "s" in option:
                return (RunsInput(script=True),)
    if at >= len(rest) or rest[at].text == "-":
        return (RunsInput(script=True),)
    if text:
        known = known and not (name != "bash" and _ONLY_BASH.search(rest[at].text))
        unknown = () if known else (Asks(reason=f"`{name}` is not known to only read its text with these options"),)
        return (*unknown, RunsText(text=rest[at]))
    return _file(name, rest[at])


_SHELL_OPTION: Final = re.compile(r"-[ceuxl]+")
# What means something else to other shells: in `[[ a > b ]]` they write a file, `$'a'` and `{a,b}` are no quotes and no alternatives, and values are split.
_ONLY_BASH: Final = re.compile(r"\[\[|\$['\"]|<<<|[<>]\(|\{[^{}]*(?:,|\.\.)|\b(?:export|readonly|local|declare|typeset|select)\b")


def _language(name: str, rest: Sequence[Word]) -> Effects:
    """An interpreter of another language."""
    for n, word in enumerate(rest):
        if word.text == "-":
            return (RunsInput(script=False),)
        if word.text == "-m" and name.startswith(("python", "pypy")):
            module = rest[n + 1].text if n + 1 < len(rest) and rest[n + 1].plain else ""
            return (Asks(reason=f"`{name}` may change something", key=f"{name} -m {module}" if KEY.fullmatch(module) else ""),)
        if not word.plain and word.text[:1] in ("*", "?", "["):
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
    return (
        RunsFile(file=word),
        Asks(reason=f"it runs {word.text}", key=f"{name} {word.text}" if KEY.fullmatch(word.text) else ""),
    )


def _wrapper(name: str) -> Rule:
    """A program that runs another one."""
    table, before = WRAPPERS[name]
    known = grammar(f"{table} TEXT")

    def rule(rest: Sequence[Word]) -> Effects:
        if name == "command" and rest and rest[0].plain and rest[0].text in ("-v", "-V"):
            return QUIET
        at = _behind_options(known, rest) + before
        line = read(known, rest[: at - before])
        inner = [*rest[at:]]
        if line.unknown or line.doubtful or any(word.loose for word in rest[at - before : at]):
            return (*_unknown(name, rest), *([Runs(words=(*inner, *_MORE))] if inner and name == "xargs" else ()))
        if name == "xargs":
            token = next((value.text for key in ("-I", "-i", "--replace") for value in line.given.get(key, ())), "")
            token = token or ("{}" if {"-i", "--replace"} & line.given.keys() else "")
            inner = [*(_unknown_word(word, token) for word in inner or [Word(text="echo")]), *(() if token else _MORE)]
        found: list[Effect] = [Reads(target=word) for word in line.files]
        found += [Asks(reason="it runs a command in a session of its own")] if name == "setsid" else []
        return (*found, *([Runs(words=tuple(inner))] if inner else [Prints()]))

    return rule


_MORE: Final = (Word(text="*", plain=False, loose=True, template=f"{OPEN}{OUTPUT}{CLOSE}"),)


def _behind_options(known: Grammar, rest: Sequence[Word]) -> int:
    """Where the command begins that a wrapper runs: behind its options and their values."""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-") and rest[at].plain:
        option = rest[at].text
        at += 1
        if option == "--":
            break
        name = option if option.startswith("--") else f"-{option[-1]}"
        alone = option.startswith("--") or all(known.options.get(f"-{letter}") == "" for letter in option[1:-1])
        at += alone and known.options.get(name) in (":", "@")
    return at


def _unknown_word(word: Word, token: str) -> Word:
    """The word as xargs leaves it, which puts what it reads in place of the token."""
    if not token or token not in word.text:
        return word
    text = word.text.replace(token, "*")
    return Word(text=text, plain=False, template=word.text.replace(token, f"{OPEN}{OUTPUT}{CLOSE}"))


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
            name, _, value = text.partition("=")
            found += [] if is_harmless(name, value) else [Asks(reason="it changes the environment of a command")]
            at += 1
        else:
            break
    inner = tuple(rest[at:])
    return (*found, Runs(words=inner) if inner else Reaches(reason="it shows the environment, where keys may be kept"))


def _rm(rest: Sequence[Word]) -> Effects:
    if has_option(rest, "rR", ("recursive", "no-preserve-root")) or any(not word.plain for word in rest):
        return (Destroys(reason="it deletes files that cannot be brought back"),)
    return (Asks(reason="it deletes a file"), *(Overwrites(target=word) for word in positional(rest)))


def _writer(name: str, *, last: bool = False, skip: int = 0, recursive: bool = False) -> Rule:
    """A program that changes what its arguments name: all of them, or the last one."""

    def rule(rest: Sequence[Word]) -> Effects:
        if recursive and has_option(rest, "R", ("recursive",)):
            return (Destroys(reason="it changes a whole folder at once"),)
        named = positional(rest, "mstS" if name in ("install", "mkdir", "truncate", "touch") else "tS")
        into = [rest[n + 1] for n, word in enumerate(rest[:-1]) if word.text in ("-t", "--target-directory")]
        into += [
            structs.replace(word, text=found[1], template="")
            for word in rest
            if (found := re.match(r"(?:--target-directory=|-t)(.+)", word.text))
        ]
        targets = into or (named[-1:] if last else named[skip:])
        extra = () if named or rest else (Asks(reason=f"`{name}` may change something"),)
        lost: list[Effect] = []
        if name in _OVERWRITING and targets and not has_option(rest, "nbu", ("no-clobber", "backup", "update")):
            lost = [Overwrites(target=targets[-1], by=tuple(named if into else named[:-1]) if last else ())]
        kept = [Writes(target=word) for word in targets]
        return (Asks(reason=f"`{name}` changes files", key=name), *kept, *lost, *extra)

    return rule


_OVERWRITING: Final = frozenset({"mv", "cp", "install", "truncate", "tee"})


def _move(rest: Sequence[Word]) -> Effects:
    """`mv`: what it takes away is changed as well."""
    return (*_writer("mv", last=True)(rest), *(Writes(target=word) for word in positional(rest, "tS")))


def _link(rest: Sequence[Word]) -> Effects:
    """`ln`: through a link to what lies outside it could be changed, so that what it leads to counts as well."""
    named = positional(rest, "tS")
    return (*_writer("ln", last=True)(rest), *(Writes(target=word) for word in named))


def _dd(rest: Sequence[Word]) -> Effects:
    writes = any(word.text.startswith("of=") or not word.plain for word in rest)
    return (Destroys(reason="it overwrites a file or a device"),) if writes else (Asks(reason="`dd` may change something"),)


def _net(rest: Sequence[Word]) -> Effects:
    """The network, and what curl and wget are told to write."""
    return (Asks(reason="it speaks to the network"), *_outputs(rest))


def _source(rest: Sequence[Word]) -> Effects:
    return _file("source", rest[0]) if rest else FREE


def _ps(rest: Sequence[Word]) -> Effects:
    """`ps`: its letters without a dash, and some with one, can ask for what programs keep in their environment."""
    at = 0
    while at < len(rest):
        text = rest[at].text
        at += 1
        if rest[at - 1].plain and text in ("-o", "-p", "-C", "-u", "-U", "-G", "-g", "-t", "--pid", "--ppid", "-q"):
            at += 1
        elif not rest[at - 1].plain or not _PS.fullmatch(text):
            shows = re.fullmatch(r"-?[a-zA-Z]*[eE][a-zA-Z]*", text) is not None
            return (Reaches(reason="it shows what other programs keep in their environment"),) if shows else _unknown("ps", rest)
    return FREE


_PS: Final = re.compile(
    r"[aAfghjlmrSTuvwxX]+|-[AadefFHjlLTwy]+|-aux|-[op][\w,.=-]+|\d[\d,]*|--(?:sort|format|pid|ppid)=[\w,.+-]+|--(?:forest|no-headers|headers)"
)


def _date(rest: Sequence[Word]) -> Effects:
    """`date`: a word without a plus sets the clock."""
    line = read(_DATE, rest)
    shows = not line.unknown and not line.doubtful and all(word.text.startswith("+") for word in line.operands)
    return FREE if shows else (Asks(reason="`date` may set the clock"),)


_DATE: Final = grammar("-uRn -d: -r: -I? -j --date= --reference= --utc --universal --iso-8601=? --rfc-email --rfc-3339= TEXT")


def _hostname(rest: Sequence[Word]) -> Effects:
    return (
        FREE if all(word.plain and word.text in ("-s", "-f", "-i", "-I", "-d") for word in rest) else _unknown("hostname", rest)
    )


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
    **dict.fromkeys(("fd", "fdfind"), fd),
    **dict.fromkeys(("sed", "gsed"), sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    "jq": jq,
    "rm": _rm,
    "dd": _dd,
    **dict.fromkeys(("curl", "wget"), _net),
    **{name: _writer(name) for name in ("touch", "mkdir", "rmdir", "unlink", "tee", "truncate", "mkfifo", "mknod")},
    **{name: _writer(name, last=True) for name in ("cp", "install")},
    "mv": _move,
    "ln": _link,
    **{name: _writer(name, skip=1, recursive=True) for name in ("chmod", "chown", "chgrp")},
    "date": _date,
    "hostname": _hostname,
    **BUILTINS,
    **dict.fromkeys(("source", "."), _source),
    "ps": _ps,
    "kill": _kill,
}
