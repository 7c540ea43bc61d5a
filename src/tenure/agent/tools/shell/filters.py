"""What find, fd, sed and awk do, which look or change or run others as their arguments say. Pure."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.effects import (
    FREE,
    OPAQUE,
    Asks,
    Destroys,
    Effect,
    Effects,
    Runs,
    Writes,
    has_option,
    may_be_option,
    positional,
)
from tenure.agent.tools.shell.script import Word

_RUNNING: Final = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_WRITING: Final = frozenset({"-fprint", "-fprint0", "-fprintf", "-fls"})

_LINE: Final = r"(?:\d+(?:~\d+)?|\$|/(?:[^/\\\n]|\\.)*/I?)"
_SUBSTITUTE: Final = (
    r"s(?P<mark>[/|,#@:!])(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)(?:(?!(?P=mark))[^\\\n]|\\.)*(?P=mark)[gpiIM0-9]*"
)
_SED: Final = re.compile(rf"\s*(?:{_LINE}(?:,(?:{_LINE}|\+\d+))?)?\s*!?\s*(?:[pdqDPNnGgHhxl=]|[qQ]\d*|{_SUBSTITUTE})\s*|\s*")
_SED_OPTION: Final = re.compile(r"-[nErsuz]*e?")
_SED_SCRIPT: Final = re.compile(r"-[nErsuz]*e")
_AWK_ACTS: Final = re.compile(r"[>|@]|system|getline|close|fflush|ENVIRON|extension")


def find(words: Sequence[Word]) -> Effects:
    """`find`: it may delete, write lists, and run a command on what it finds."""
    unknown = may_be_option(words) or any(not word.plain and not word.glob for word in words)
    found: list[Effect] = [Asks(reason="what find does can only be told when it runs")] if unknown else []
    at = 0
    while at < len(words):
        text = words[at].text
        at += 1
        if text == "-delete":
            found.append(Destroys(reason="it deletes what it finds"))
        elif text in _WRITING:
            found += [Asks(reason="it writes what it finds"), *(Writes(target=word) for word in words[at : at + 1])]
        elif text in _RUNNING:
            end = next((n for n in range(at, len(words)) if words[n].text in (";", "+")), len(words))
            found.append(Runs(words=tuple(map(_filled, words[at:end]))) if end > at else OPAQUE)
            at = end + 1
    return tuple(found)


def fd(words: Sequence[Word]) -> Effects:
    """`fd`: it may run a command on what it finds."""
    for n, word in enumerate(words):
        text = word.text
        if text in ("-x", "-X", "--exec", "--exec-batch"):
            inner = tuple(map(_filled, words[n + 1 :]))
            return (
                (Runs(words=inner if "*" in "".join(each.text for each in inner[1:]) else (*inner, _UNKNOWN)),)
                if inner
                else (OPAQUE,)
            )
        if has_option([word], "xX", ("exec", "exec-batch")) or (not word.plain and not word.glob):
            return (Asks(reason="it may run a command on what it finds"),)
    return FREE


_UNKNOWN: Final = Word(text="*", plain=False)


def _filled(word: Word) -> Word:
    """A word of a command in which a found path takes the place of `{}`; such a path begins with its folder."""
    if "{}" not in word.text and "{/" not in word.text:
        return word
    return structs.replace(word, text=re.sub(r"\{[/.]*\}", "./*", word.text), plain=False, glob=True)


def sed(words: Sequence[Word]) -> Effects:
    """`sed`: free when its script only prints and replaces, and it does not edit in place."""
    if has_option(words, "i", ("in-place",)):
        files = positional([word for word in words if not word.text.startswith("-i")], "el")
        targets = files if has_option(words, "e", ("expression",)) else files[1:]
        return (Asks(reason="it edits files in place", key="sed -i"), *(Writes(target=word) for word in targets))
    options = [word.text for word in words if word.text.startswith("-") and word.text not in ("-", "--")]
    if may_be_option(words) or not all(_SED_OPTION.fullmatch(option) for option in options):
        return (Asks(reason="its script may write files or run programs"),)
    scripts = [words[n + 1] for n, word in enumerate(words[:-1]) if _SED_SCRIPT.fullmatch(word.text)] or positional(words)[:1]
    if all(script.plain and all(_SED.fullmatch(part) for part in _parts(script.text)) for script in scripts):
        return FREE
    return (Asks(reason="its script may write files or run programs"),)


def _parts(script: str) -> list[str]:
    """The commands of a script: as one where it is one, else apart at semicolons and lines."""
    return [script] if _SED.fullmatch(script) else re.split(r"[;\n]", script)


def awk(words: Sequence[Word]) -> Effects:
    """`awk`: free when its program neither writes nor runs anything."""
    at = 0
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        if not re.fullmatch(r"-[Fv].*", text, re.DOTALL):
            return (Asks(reason="its program may write files or run others"),)
        at += 2 if text in ("-F", "-v") else 1
    if at >= len(words) or not words[at].plain or _AWK_ACTS.search(words[at].text):
        return (Asks(reason="its program may write files or run others"),)
    return FREE
