"""What of an assistant's text is content that no model wrote there, or wrote by a file that the record does not hold.

Some logs of resumed sessions hold tool output and whole files as an assistant's text. aider sends the files of its chat with each request and logs
none of them, so what its edits must find was in view whatever had left.
"""

import re
from typing import Final

LISTING: Final = 12  # numbered lines in a row that a tool has numbered; a model quotes fewer
_NUMBERED = re.compile(r"[ \t]*(\d{1,6})(?:→|\t|[|:] ?)")
_CONTENT = re.compile(
    r"<(file_contents?|file|document|tool_result|function_results?|output|stdout|command-output|local-command-stdout|system-reminder)(?:[ \t][^>\n]*)?>"
)
_SEARCH: Final = "<<<<<<< SEARCH"
_DIVIDER: Final = "======="
_REPLACE: Final = ">>>>>>> REPLACE"
_WHOLE = re.compile(r"(?m)^\S*[\w-]\.\w{1,8}\n(`{3,})\w*\n")  # a file's name, then all of it in a fence


def authored(text: str) -> str:
    """`text` without such content; what is left keeps its lines. O(text)."""
    for found in reversed(list(_CONTENT.finditer(text))):
        end = text.find(f"</{found[1]}>", found.end())
        if end >= 0:
            text = text[: found.start()] + text[end:]
    if _SEARCH in text:
        text = _without_searches(text)
    if _WHOLE.search(text):
        text = _without_files(text)
    return _without_listings(text)


def _without_searches(text: str) -> str:
    kept: list[str] = []
    is_search = False
    for line in text.split("\n"):
        if line.startswith(_SEARCH):
            is_search = True
        elif is_search and (line.startswith((_DIVIDER, _REPLACE))):
            is_search = False
        elif not is_search:
            kept.append(line)
    return "\n".join(kept)


def _without_files(text: str) -> str:
    parts: list[str] = []
    place = 0
    while (found := _WHOLE.search(text, place)) is not None:
        parts.append(text[place : found.start()])
        end = text.find(f"\n{found[1]}", found.end() - 1)
        place = len(text) if end < 0 else end + 1
    return "".join([*parts, text[place:]])


def _without_listings(text: str) -> str:
    """Stretches of LISTING or more lines, each with a number that is one more than that of the line before."""
    kept: list[str] = []
    run: list[str] = []
    last = -2
    for line in text.split("\n"):
        found = _NUMBERED.match(line)
        number = int(found[1]) if found else -1
        if number < 0 or number != last + 1:
            kept += run if len(run) < LISTING else []
            run = []
        if number < 0:
            kept.append(line)
        else:
            run.append(line)
        last = number if number >= 0 else -2
    kept += run if len(run) < LISTING else []
    return "\n".join(kept)
