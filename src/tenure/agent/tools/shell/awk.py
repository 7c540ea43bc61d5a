"""Whether an awk program only looks: it is read word by word, and all that is not known to be harmless is not. Pure.

https://pubs.opengroup.org/onlinepubs/9799919799/utilities/awk.html, "Grammar". Left out is what opens files or runs programs: `>` and `|` behind print,
getline, system, close, the environment, the list of files, functions of one's own.
"""

import re
from typing import Final

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
