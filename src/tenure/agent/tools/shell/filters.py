"""What find, fd, sed, awk and jq do, which look or change or run others as their arguments say. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.effects import (
    OPAQUE,
    Asks,
    Destroys,
    Effect,
    Effects,
    Expects,
    Prints,
    Reads,
    Runs,
    Writes,
    has_option,
    positional,
)
from tenure.agent.tools.shell.grammar import Grammar, grammar, read
from tenure.agent.tools.shell.looks import LOOKS
from tenure.agent.tools.shell.script import CLOSE, OPEN, OUTPUT, Word

_TOKEN: Final = re.compile(
    r"(?P<blank>[ \t]+|\\\n|\#[^\n]*)"
    r'|(?P<string>"(?:[^"\\\n]|\\.)*")'
    r"|(?P<number>\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+)"
    r"|(?P<call>[A-Za-z_]\w*)(?=\()"
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


def only_looks(program: str) -> bool:
    """Whether a program neither writes nor runs anything."""
    at, depth, prints = 0, 0, False
    last = "\n"  # the kind of what came before, to tell a division from a regular expression
    while at < len(program):
        if program[at] == "/":
            found = _REGEX.match(program, at) if last == "operator" or last == "\n" else None
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
            case "string" | "number":
                last = "value"
            case "call" | "name":
                if not _is_known(text, called=found.lastgroup == "call"):
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


def _is_known(name: str, *, called: bool) -> bool:
    if called:
        return name in _CALLS
    return name in _NAMES or (name not in _NO_VARIABLE and name not in _CALLS and _VARIABLE.fullmatch(name) is not None)


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
_AWK_LINE: Final = grammar("-F: -v: PATTERN READ")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
_JQ_LINE: Final = grammar(
    "-ceMnrsSCaj --compact-output --null-input --exit-status --raw-output --raw-output0 --join-output --slurp --sort-keys --monochrome-output --color-output"
    " --ascii-output --tab --indent= --raw-input -R --seq --stream PATTERN READ"
)
_JQ_TELLS: Final = re.compile(
    r"\$?\b(?:env|ENV|import|include|input_filename|get_search_list|modulemeta|debug|stderr|input_line_number|halt_error)\b"
)
_JQ_NAMED: Final = ("--arg", "--argjson")


def find(words: Sequence[Word]) -> Effects:
    """`find`: it may delete, write lists, and run a command on what it finds."""
    found: list[Effect] = []
    folders: list[Word] = []
    names = True
    at = 0
    while at < len(words):
        word = words[at]
        text = word.text
        at += 1
        if not word.plain and (word.loose or text[:1] in "*?["):
            found.append(Expects(word=word))
        if text == "-delete":
            found.append(Destroys(reason="it deletes what it finds"))
        elif text in _WRITING:
            found += [Asks(reason="it writes what it finds"), *(Writes(target=word) for word in words[at : at + 1])]
        elif text in _RUNNING:
            end = next((n for n in range(at, len(words)) if words[n].text in (";", "+")), len(words))
            found.append(Runs(words=tuple(map(_filled, words[at:end]))) if end > at else OPAQUE)
            at, names = end + 1, False
        elif text in _TESTS or text in _TELLING or re.fullmatch(r"-O[0-3]", text):
            names = names and text not in _TELLING
            values = words[at : at + _TESTS.get(text, _TELLING.get(text, 0))]
            found += [Expects(word=value) for value in values if value.loose or value.glob]
            found += [Reads(target=value, shows=False) for value in values if "newer" in text or text == "-samefile"]
            at += len(values)
        elif text.startswith("-") and not word.number:
            found.append(Asks(reason=f"find is not known to only look with {text[:40]}"))
        else:
            folders.append(word)
    found += [Reads(target=word, shows=False) for word in folders]
    return (*found, *([Prints(names=True)] if names else []))


def fd(words: Sequence[Word]) -> Effects:
    """`fd`: it may run a command on what it finds."""
    for n, word in enumerate(words):
        if word.text in ("-x", "-X", "--exec", "--exec-batch"):
            inner = tuple(map(_filled, words[n + 1 :]))
            if not inner:
                return (OPAQUE,)
            named = any(each.template for each in inner[1:])
            return (*LOOKS["fd"].effects("fd", words[:n]), Runs(words=inner if named else (*inner, _FOUND)))
    return LOOKS["fd"].effects("fd", words)


_FOUND: Final = Word(text="./*", plain=False, template=f"{OPEN}{OUTPUT}{CLOSE}")


def _filled(word: Word) -> Word:
    """A word of a command in which a found path takes the place of `{}`; such a path begins with its folder."""
    if "{}" not in word.text and "{/" not in word.text:
        return word
    if word.text == "{}":
        return _FOUND
    mark = f"{OPEN}{OUTPUT}{CLOSE}"
    filled = re.sub(r"\{[/.]*\}", "./*", word.text)
    return structs.replace(word, text=filled, plain=False, glob=True, template=re.sub(r"\{[/.]*\}", mark, word.text))


def sed(words: Sequence[Word]) -> Effects:
    """`sed`: free when its script only prints and replaces, and it does not edit in place."""
    if has_option(words, "i", ("in-place",)):
        files = positional([word for word in words if not word.text.startswith("-i")], "el")
        targets = files if has_option(words, "e", ("expression",)) else files[1:]
        return (Asks(reason="it edits files in place", key="sed -i"), *(Writes(target=word) for word in targets))
    line = read(_SED_LINE, words)
    given = [*line.given.get("-e", ()), *line.given.get("--expression", ())]
    scripts = given or line.operands[:1]
    known = all(word.plain or word.number for word in scripts) and not line.unknown
    if not known or not all(_is_look(word.text.replace("*", "0") if word.number else word.text) for word in scripts):
        return (Asks(reason="its script may write files or run programs"),)
    return _SED_LINE.effects("sed", words)


def _is_look(script: str) -> bool:
    """Whether all commands of a script only print and replace: as one where it is one, else apart at semicolons and lines."""
    parts = [script] if _SED.fullmatch(script) else re.split(r"[;\n]", script)
    return all(_SED.fullmatch(part) for part in parts)


def awk(words: Sequence[Word]) -> Effects:
    """`awk`: free when its program neither writes nor runs anything, and reads no files but those that are named."""
    line = read(_AWK_LINE, words)
    program = line.operands[0] if line.operands else None
    if line.unknown or program is None or not program.plain or not only_looks(program.text):
        return (Asks(reason="its program may write files or run others"),)
    return _but(_AWK_LINE, "awk", words, _ASSIGNMENT)


def jq(words: Sequence[Word]) -> Effects:
    """`jq`: free when its program does not look at the environment or at other files."""
    left: list[Word] = []
    at = 0
    while at < len(words):
        if words[at].plain and words[at].text in _JQ_NAMED and all(not word.loose for word in words[at : at + 3]):
            at += 3
            continue
        left.append(words[at])
        at += 1
    line = read(_JQ_LINE, left)
    program = line.operands[0] if line.operands else None
    if program is not None and (not program.plain or _JQ_TELLS.search(program.text)):
        return (Asks(reason="its program may look at the environment or at other files"),)
    return _JQ_LINE.effects("jq", left)


def _but(known: Grammar, program: str, words: Sequence[Word], apart: re.Pattern[str]) -> Effects:
    """The effects of a command line but for reading what is no file."""
    return tuple(
        effect
        for effect in known.effects(program, words)
        if not (isinstance(effect, Reads) and effect.target.plain and apart.match(effect.target.text))
    )
