"""What find, fd, sed, awk and jq do, which look or change or run others as their arguments say. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.effects import (
    OPAQUE,
    Asks,
    Effect,
    Effects,
    Expects,
    Prints,
    Reads,
    Runs,
    Writes,
    destroys,
    has_option,
    positional,
)
from tenure.agent.tools.shell.grammar import CommandLine, grammar
from tenure.agent.tools.shell.read_only_options import LOOKS
from tenure.agent.tools.shell.script import CLOSE, OPEN, OUTPUT, Word

_RUNNING: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITING: Final = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})
# What find can be asked, with how many words behind it.
_TESTS: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        "-print -print0 -prune -depth -mount -xdev -empty -true -false -readable -writable -executable -nouser -nogroup -not ! ( ) , -a -and -o -or"
        " -H -P -daystart -noleaf -quit -nowarn -warn -ignore_readdir_race -noignore_readdir_race".split(),
        0,
    ),
    **dict.fromkeys(
        "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype -size -perm -user -group -uid -gid -links"
        " -inum -newer -anewer -cnewer -newermt -newerat -newerct -newermm -amin -atime -cmin -ctime -mmin -mtime -used -maxdepth -mindepth -fstype"
        " -samefile".split(),
        1,
    ),
}
_TELLING: Final[Mapping[str, int]] = {"-ls": 0, "-printf": 1, "-L": 0, "-follow": 0}  # more than names below the folders

_FOUND: Final = Word(text="./*", plain=False, template=f"{OPEN}{OUTPUT}{CLOSE}")
_PLACES: Final = re.compile(r"\{[/.]*\}")


def find(words: Sequence[Word]) -> Effects:
    """`find`: it may delete, write lists, and run a command on what it finds."""
    effects: list[Effect] = []
    folders: list[Effect] = []
    prints = True
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if not word.plain and (word.loose or text[:1] in "*?["):
            effects.append(Expects(target=word))
        if text == "-delete":
            effects.append(destroys("it deletes what it finds"))
        elif text in _WRITING:
            effects += [Asks(reason="it writes what it finds"), *(Writes(target=word) for word in words[at : at + 1])]
        elif text in _RUNNING:
            end = next((n for n in range(at, len(words)) if words[n].text in (";", "+")), len(words))
            effects.append(Runs(words=tuple(map(_filled, words[at:end]))) if end > at else OPAQUE)
            at, prints = end + 1, False
        elif text in _TESTS or text in _TELLING or re.fullmatch(r"-O[0-3]", text):
            prints = prints and text not in _TELLING
            values = words[at : at + _TESTS.get(text, _TELLING.get(text, 0))]
            effects += [Expects(target=value, needed=value.may_vanish) for value in values if value.loose or value.glob]
            effects += [Reads(target=value, shows=False) for value in values if "newer" in text or text == "-samefile"]
            at += len(values)
        elif text.startswith("-") and not word.number:
            effects.append(Asks(reason=f"find is not known to only look with {text[:40]}"))
        else:
            folders.append(Reads(target=word, shows=False))
    return (*effects, *folders, *([Prints(names=True)] if prints else []))


def fd(words: Sequence[Word]) -> Effects:
    """`fd`: it may run a command on what it finds."""
    at = next((n for n, word in enumerate(words) if word.text in ("-x", "-X", "--exec", "--exec-batch")), len(words))
    looks = LOOKS["fd"].effects("fd", words[:at])
    if at == len(words):
        return looks
    inner = tuple(map(_filled, words[at + 1 :]))
    if not inner:
        return (OPAQUE,)
    return (*looks, Runs(words=inner if any(word.template for word in inner[1:]) else (*inner, _FOUND)))


def _filled(word: Word) -> Word:
    """A word of a command in which a found path takes the place of `{}`; such a path begins with its folder."""
    if "{}" not in word.text and "{/" not in word.text:
        return word
    if word.text == "{}":
        return _FOUND
    template = _PLACES.sub(f"{OPEN}{OUTPUT}{CLOSE}", word.text)
    return structs.replace(word, text=_PLACES.sub("./*", word.text), plain=False, glob=True, template=template)


# Between brackets a mark stands for itself in some versions and ends the pattern in others.
_BRACKETS: Final = r"\[\^?(?:\[:[a-z]+:\]|(?!{mark})[^]\[\\\n]|\\[^]\[\n])+\]"
_LINE: Final = rf"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n[]|\\[^\n]|{_BRACKETS.format(mark='/')})*/I?)"
_SUBSTITUTE: Final = (
    rf"s(?P<mark>[/|,#@:!])(?:(?!(?P=mark))[^\\\n[]|\\[^\n]|{_BRACKETS.format(mark='(?P=mark)')})*(?P=mark)"
    r"(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)[gpiIM0-9]*"
)
_SED: Final = re.compile(rf"\s*+(?:{_LINE}(?:,(?:{_LINE}|\+\d+))?)?\s*+!?\s*+(?:[pdqDPNnGgHhxl=]|[qQ]\d*|{_SUBSTITUTE})\s*+|\s*+")
_SED_LINE: Final = grammar(
    "-nErsuz -e:! --quiet --silent --regexp-extended --separate --unbuffered --null-data --expression=! PATTERN READ"
)


def sed(words: Sequence[Word]) -> Effects:
    """`sed`: free when its script only prints and replaces, and it does not edit in place."""
    if has_option(words, "i", "in-place"):
        files = positional([word for word in words if not word.text.startswith("-i")], "el")
        targets = files if has_option(words, "e", "expression") else files[1:]
        return (Asks(reason="it edits files in place", key="sed -i"), *(Writes(target=word) for word in targets))
    line = CommandLine(_SED_LINE, words)
    scripts = line.values("-e", "--expression") or line.operands[:1]
    known = not line.unknown and all((word.plain or word.number) and _only_prints(word) for word in scripts)
    return _SED_LINE.effects("sed", words) if known else (Asks(reason="its script may write files or run programs"),)


def _only_prints(script: Word) -> bool:
    """Whether all commands of a script only print and replace: as one where it is one, else apart at semicolons and lines."""
    text = script.text.replace("*", "0") if script.number else script.text
    parts = [text] if _SED.fullmatch(text) else re.split(r"[;\n]", text)
    return all(_SED.fullmatch(part) for part in parts)


_JQ_LINE: Final = grammar(
    "-ceMnrsSCaj --compact-output --null-input --exit-status --raw-output --raw-output0 --join-output --slurp --sort-keys --monochrome-output --color-output"
    " --ascii-output --tab --indent= --raw-input -R --seq --stream PATTERN READ"
)
_JQ_TELLS: Final = re.compile(
    r"\$?\b(?:env|ENV|import|include|input_filename|get_search_list|modulemeta|debug|stderr|input_line_number|halt_error)\b"
)


def jq(words: Sequence[Word]) -> Effects:
    """`jq`: free when its program does not look at the environment or at other files."""
    left: list[Word] = []
    at = 0
    while at < len(words):
        if words[at].plain and words[at].text in ("--arg", "--argjson") and not any(word.loose for word in words[at : at + 3]):
            at += 3
        else:
            left.append(words[at])
            at += 1
    program = next(iter(CommandLine(_JQ_LINE, left).operands), None)
    if program is not None and (not program.plain or _JQ_TELLS.search(program.text)):
        return (Asks(reason="its program may look at the environment or at other files"),)
    return _JQ_LINE.effects("jq", left)


_AWK_LINE: Final = grammar("-F: -v: PATTERN READ")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t]+|\\\n|\#[^\n]*)"
    r'|(?P<value>"(?:[^"\\\n]|\\.)*"'
    r"|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<sign>\|\||&&|[<>=!+*/%^-]=|\+\+|--|\*\*|[-+*%^!~?:,;(){}\[\]<>=$\n])",
    re.ASCII,
)
_REGEX: Final = re.compile(r"/(?:[^/\\\n\[\]]|\\.|\[\^?\]?[^/\\\n\[\]]*\])*/")
_CALLS: Final = frozenset(
    "length substr index split match sub gsub sprintf tolower toupper int sqrt exp log sin cos atan2 rand srand gensub strftime systime mktime and or xor"
    " lshift rshift compl strtonum asort asorti toupper if while for print printf return exit in else do".split()
)
_NAMES: Final = frozenset(
    "BEGIN END NR NF FS OFS ORS RS FNR FILENAME RSTART RLENGTH SUBSEP CONVFMT OFMT RT IGNORECASE"
    " if else while for do in break continue next exit delete return print printf length".split()
)
_VARIABLE: Final = re.compile(r"[a-z_]\w*|[A-Z]", re.ASCII)
_NO_VARIABLE: Final = frozenset(
    "getline function func nextfile include load namespace switch case default system close fflush eval".split()
)
_BEFORE_REGEX: Final = frozenset("if else while do in return print printf exit".split())


def awk(words: Sequence[Word]) -> Effects:
    """`awk`: free when its program neither writes nor runs anything, and reads no files but those that are named."""
    line = CommandLine(_AWK_LINE, words)
    program = next(iter(line.operands), None)
    if line.unknown or program is None or not program.plain or not _only_looks(program.text):
        return (Asks(reason="its program may write files or run others"),)
    return tuple(
        effect
        for effect in _AWK_LINE.effects("awk", words)
        if not (isinstance(effect, Reads) and effect.target.plain and _ASSIGNMENT.match(effect.target.text))
    )


def _only_looks(program: str) -> bool:
    """Whether a program neither writes nor runs anything."""
    at, depth, prints = 0, 0, False
    last = "operator"  # the kind of what came before, to tell a division from a regular expression
    while at < len(program):
        if program[at] == "/":
            found = _REGEX.match(program, at) if last == "operator" else None
            if found is None and (last != "value" or program[at : at + 2] == "/="):
                return False
            at = found.end() if found else at + 1
            last = "value" if found else "operator"
            continue
        found = _TOKEN.match(program, at)
        if found is None:
            return False
        at = found.end()
        text = found[0]
        match found.lastgroup:
            case "blank":
                continue
            case "value":
                last = "value"
            case "name":
                is_variable = text in _NAMES or (text not in _NO_VARIABLE | _CALLS and _VARIABLE.fullmatch(text))
                if not (text in _CALLS if program[at : at + 1] == "(" else is_variable):
                    return False
                prints = prints or text in ("print", "printf")
                last = "operator" if text in _BEFORE_REGEX else "value"
            case _:
                if text == ">" and prints and not depth:
                    return False
                depth += (text == "(") - (text == ")")
                if text in ("{", "}") or (text in (";", "\n") and not depth):
                    prints, depth = False, 0
                if depth < 0:
                    return False
                last = "value" if text == "]" else "ambiguous" if text in (")", "++", "--") else "operator"
                if last == "ambiguous" and text == ")" and _divides(program, at):
                    last = "value"
    return True


def _divides(program: str, at: int) -> bool:
    """Whether a slash behind a bracket can only be a division: no regular expression could end behind it."""
    rest = program[at:].lstrip(" \t")
    return rest.startswith("/") and "/" not in rest[1:] and '"' not in rest
