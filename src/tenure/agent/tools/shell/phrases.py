"""Words that destroy, found in a text of any language: a script in quotes, a program's code. Pure."""

import re
from collections.abc import Mapping
from typing import Final

# Words that are enough.
_ALONE: Final = re.compile(
    r"\brm\s+(?:-\S{1,20}\s+){0,5}(?:-\w{0,10}[rRf]|--recursive|--force)|\bmkfs|\bshred\s|\bwipefs\b"
    r"|\bch(?:mod|own|grp)\s+(?:-\S{1,20}\s+){0,5}(?:-\w{0,10}R|--recursive)"
    r"|\b(?:drop|truncate)\s+(?:table|database|schema|index|view|user)\b|\bdelete\s+from\b|\bdropDatabase\b|\bflush(?:all|db)\b"
    r"|\brmtree\b|\bremovedirs\b|\brm_rf?\b|\brmSync\b|\brimraf\b|\bremoveSync\b|\bunlink(?:Sync)?\b|\bos\.remove\b|\bfs\.rm\b|\bremove_dir_all\b"
    r"|:\(\)\s{0,5}\{|>\s{0,5}/dev/(?:sd|nvme|hd|vd|disk|mapper)",
    re.IGNORECASE,
)

# What a program must be told in the same line for it to destroy.
_TOLD: Final[Mapping[str, re.Pattern[str]]] = {
    "git": re.compile(
        r"push\b.*(?:\s-\w*f|--force|--delete|--mirror|\s\+)|reset\b.*--hard|clean\b.*\s-\w*[fxd]|branch\b.*\s-D\b|stash\s+(?:drop|clear)"
    ),
    "find": re.compile(r"\s-delete\b|-exec\s+rm\b"),
    "dd": re.compile(r"\bof="),
    "curl": re.compile(r"\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|perl|ruby|node)\b"),
}
_TOLD_TO: Final = re.compile(r"\b(git|find|dd|curl|wget)\s[^\n]{0,300}")


def destructive(text: str) -> str:
    """The first words of a text that speak of destroying; empty when none do."""
    if found := _ALONE.search(text):
        return found[0]
    for found in _TOLD_TO.finditer(text):
        if _TOLD["curl" if found[1] == "wget" else found[1]].search(found[0]):
            return found[0]
    return ""
