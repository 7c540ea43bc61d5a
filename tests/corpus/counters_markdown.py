"""The texts of the Markdown formats, from the raw file and without the readers' code: by lines, and what is left by words.

Such a file is a rendering, so no text of it equals one of a draft. What must hold is that every line that is not decoration is in
the drafts as often as in the file. Decoration is what `DECORATION` says, and is taken from both sides: a tool's output may
hold it too. Lines that differ (a call's arguments, say, are prose in the file and JSON in a draft) are compared by their words.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

DECORATION = {
    "specstory": re.compile(
        r"|_\*\*(User|Agent)\b.*\*\*_"  # a turn
        r"|---"
        r"|\\?[`~]{3,}[\w.+-]*"  # a fence, and one that was escaped inside another
        r"|<tool-use data-tool-type=.*>|</details></tool-use>|</details>"
        r"|<think><details><summary>Thought Process</summary>|</details></think>"
        r"|<!-- .* -->|# \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ"
    ),
    "aider": re.compile(r"|# aider chat started at .*|>"),
}
MARKS = {  # how a line begins or ends that is not its text
    "specstory": re.compile(r"^<summary>Tool use: \*\*\w+\*\*|^Tool use: \*\*\w+\*\*|</summary>$"),
    "aider": re.compile(r"^(#### |> )"),
}
LABELS = {"Answer", "Input", "Result"}  # of what stands below them in a rendered call
WORD = re.compile(r"\w+")
USER = re.compile(r"^_\*\*User \(.*\)\*\*_$", re.MULTILINE)
NOT_TYPED = re.compile(
    r"\s*(<(command-|local-command|task-notification|bash-)|\[Request interrupted|\[Image: source|This session is being continued)"
)
SUMMARY = "This session is being continued"
COMMIT = re.compile(r"> (Commit [0-9a-f]{7} .*)")  # aider tells the model of its commits too


def lines(name: str, texts: Iterable[str]) -> Counter[str]:
    """The lines that are not decoration, without their ends and marks."""
    every = (line.strip() for text in texts for line in text.split("\n"))
    kept = (MARKS[name].sub("", line).strip() for line in every if not DECORATION[name].fullmatch(line))
    return Counter(line for line in kept if not DECORATION[name].fullmatch(line))


def words(counted: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for line, count in counted.items():
        for word in WORD.findall(line):
            found[word] += count
    return found


def specstory(data: bytes) -> Iterator[str]:
    yield data.decode()


def aider(data: bytes) -> Iterator[str]:
    """What the user said and the model answered, and a command's output where it was added to the chat.

    Such an output is there twice, as it came and quoted below the question; the quote is what was sent. Other quoted lines are
    aider's own words to the user. A command is for aider; what `/ask` asks is there again below it.
    """
    live, added, command = False, False, ""
    for line in data.decode().split("\n"):
        if line.startswith("#### "):
            live, added, command = line.startswith("#### /run "), False, line
            if not line.startswith("#### /"):
                yield line
        elif line.startswith("> Add the output to the chat?"):
            live = False
        elif line.startswith("(y/n"):
            answer = line.partition(") ")[2].strip()
            added = answer != "n"
            yield from () if answer in ("y", "n") else (answer,)  # what is to be done with the output
            yield from (command,) if added else ()
        elif line == ">" or line.startswith("> "):
            if added:
                yield line
        elif not live:
            added = added and not line
            yield line


def values(arguments: str) -> Iterator[tuple[str, str]]:
    """Every text in a call's arguments, and what it is called there."""
    try:
        waiting: list[tuple[str, Any]] = [("", json.loads(arguments))]
    except ValueError:
        waiting = [("", arguments)]
    while waiting:
        match waiting.pop():
            case _, dict() as pairs:
                waiting.extend(pairs.items())
            case name, list() as items:
                waiting.extend((name, item) for item in items)
            case name, value:
                yield name, str(value)


def typed(data: bytes) -> int:
    """How many of a SpecStory file's user turns do not begin as a command, a notice or an image does."""
    return sum(not NOT_TYPED.match(turn) for turn in USER.split(data.decode())[1:])
