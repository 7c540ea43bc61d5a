"""Fences in what SpecStory shows of a tool: sized by their content in newer versions, in older ones always of three backticks."""

import re
from typing import Final

# Lines after which the rest of a block is the tool's output, and whether it is an error.
OUTPUT_LINES: Final = {
    "**Result:**": False,
    "**Error:**": True,
    "Result:": False,
    "Error:": True,
    "Output:": False,
    "Output (error):": True,
    "Answers:": False,
    "Lint results": False,
}
OUTPUT_OPENINGS: Final = {
    "Output (error): ": True,
    "Output: ": False,
    "Result: ": False,
    "**Error:** ": True,
    "**Answer:** ": False,
    "Answer: ": False,
}

FENCE: Final = re.compile(r"(?:Input(?: \(truncated\))?: )?(`{3,})([^`]*)")  # its backticks and what follows them
LABEL: Final = re.compile(r"\*\*([A-Z][^*:]*):\*\*|- ([\w.-]+):|(Prompt|Parameters|Additional data|Arguments[^:`]*|\w+):")
LABELLED: Final = re.compile(r"- ([\w.-]+): `(.*)`|([A-Z][\w ]{0,30}): `(.*)`")

LOOKAHEAD: Final = 64  # lines that are tried as the end of one fence

_SHORTEST: Final = 3
_ESCAPED: Final = "\\```"  # how some versions kept a fence inside a call from ending it


def output_opening(line: str) -> str | None:
    """The words that a line of output opens with, where it does."""
    return next((opening for opening in OUTPUT_OPENINGS if line.startswith(opening)), None)


def ends_fence(line: str) -> bool:
    """Whether the line is backticks and nothing else."""
    return line.startswith("```") and set(line.strip()) == {"`"}


def close(lines: list[str], at: int, length: int) -> int:
    """The line that closes the fence opened at line `at`: of short ones the first after which something stands that can follow."""
    first, tried = -1, 0
    for n in range(at + 1, len(lines)):
        if ends_fence(lines[n]) and len(lines[n].strip()) >= length:
            if length > _SHORTEST or _can_follow(lines, n + 1):
                return n
            first, tried = n if first < 0 else first, tried + 1
            if tried == LOOKAHEAD:
                break
    return first if first >= 0 else len(lines) - 1


def above(lines: list[str], at: int) -> str:
    """What stands in the line above, or above one blank line."""
    return next((lines[n].strip() for n in range(at - 1, max(-1, at - 3), -1) if lines[n].strip()), "")


def below(lines: list[str], at: int) -> str:
    """What stands in the line below, or below one blank line."""
    return next((line.strip() for line in lines[at + 1 : at + 3] if line.strip()), "")


def unfenced(lines: list[str]) -> str:
    """The text without the one fence around it, where there is one."""
    start, end = 0, len(lines)
    while start < end and not lines[start].strip():
        start += 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    fence = FENCE.fullmatch(lines[start]) if start < end else None
    if fence is None:
        return "\n".join(lines[start:end])
    if end - start > 1 and ends_fence(lines[end - 1]) and len(lines[end - 1].strip()) >= len(fence[1]):
        return "\n".join(lines[start + 1 : end - 1])
    cut_off = not any(ends_fence(line) for line in lines[start + 1 : end])
    return "\n".join(lines[start + cut_off : end])


def unescaped(text: str) -> str:
    """What a call holds, without the backslashes that some versions put before each fence in it."""
    return text.replace(_ESCAPED, "```") if text.count(_ESCAPED) == text.count("```") else text


def _can_follow(lines: list[str], at: int) -> bool:
    while at < len(lines) and not lines[at].strip():
        at += 1
    if at == len(lines):
        return True
    line = lines[at].strip()
    if line in OUTPUT_LINES or output_opening(line) is not None or FENCE.fullmatch(lines[at]) is not None:
        return True
    return lines[at].startswith("**") or LABEL.fullmatch(line) is not None or LABELLED.fullmatch(line) is not None
