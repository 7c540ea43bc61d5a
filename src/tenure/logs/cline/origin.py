"""Who wrote a text that Cline or one of its forks sent in the user's role: tables, since all comes under that role.

A block may mix them. It is the human's as soon as anything of theirs stands in it, since human text is what must not be lost.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from tenure.engine.record.entry import Block, Media, Origin, Text

# Elements that Cline puts around what a human typed. The task comes first in a block, the others may follow Cline's words.
HUMAN_ELEMENTS: Final = ("task", "feedback", "answer", "user_message", "user_input", "user_command")

# Elements that only the harness writes.
HARNESS_ELEMENTS: Final = (
    "environment_details",
    "explicit_instructions",
    "mode_notice",
    "hook_context",
    "system-reminder",
    "workspace_diagnostics",
    "git_working_state",
    "file_content",
    "folder_content",
    "url_content",
)

HARNESS_OPENINGS: Final = (
    "[TASK RESUMPTION]",
    "[ERROR] You did not",
    "[NOTE] Some previous conversation history",
    "[Sliding window truncation",
    "If you have completed the user's task, use the attempt_completion tool",
    "(The user did not provide a new message",
    "This session is being continued from a previous conversation",
    "Please continue from the following summary",
    "# task_progress",
    "# TODO LIST",
    "# Todo List",
    "Files attached by the user:",
    "You seem to be having trouble proceeding.",  # what the human says to it stands in an element
)

TOOL_OPENINGS: Final = (
    "The tool execution failed with the following error",
    "The user denied this operation.",
    "Tool [",
    "(tool did not return anything)",
    "Missing value for required parameter",
)

# How a result is headed: what was called, which may be a command of many lines, and this. In old versions the result is a block
# of its own.
RESULT: Final = re.compile(r"\[[a-zA-Z_]\w*\b")
HEADED: Final = "] Result:"

_HUMAN: Final = tuple(f"<{name}{end}" for name in HUMAN_ELEMENTS for end in (">", " "))
_HUMAN_LATER: Final = tuple(f"\n<{name}>" for name in ("feedback", "answer", "user_message"))
_OWN: Final = re.compile(rf"\s*<({'|'.join(HARNESS_ELEMENTS)})\b")


def attributed(blocks: Iterable[Block]) -> Iterator[Block]:
    """The blocks of one message in the user's role, with who wrote each.

    A heading speaks for the next text, a tool's text for the images after it.
    """
    under_heading, last = False, Origin.HUMAN
    for block in blocks:
        match block:
            case Text(text=text):
                last = written_by(text)
                if under_heading and last is Origin.HUMAN and not _says_human(text.lstrip()):
                    last = Origin.TOOL
                under_heading = is_heading(text)
                yield replace(block, origin=last)
            case Media() if last is Origin.TOOL:
                yield replace(block, origin=last)
            case _:
                yield block


def is_result(block: Block) -> bool:
    """Whether a block is a tool's answer under its heading."""
    return (
        isinstance(block, Text) and block.origin is Origin.TOOL and RESULT.match(block.text) is not None and HEADED in block.text
    )


def written_by(text: str) -> Origin:
    """Who wrote a text that stands alone."""
    rest = _without_own(text)
    if not rest:
        return Origin.HARNESS if text.strip() else Origin.HUMAN
    if _says_human(rest):
        return Origin.HUMAN
    if rest.startswith(TOOL_OPENINGS) or (rest.startswith("[") and RESULT.match(rest) and HEADED in rest):
        return Origin.TOOL
    return Origin.HARNESS if rest.startswith(HARNESS_OPENINGS) else Origin.HUMAN


def is_heading(text: str) -> bool:
    """Whether a text only says what was called, the result being the next."""
    return text.startswith("[") and text.rstrip().endswith(HEADED)


def _says_human(text: str) -> bool:
    return text.startswith(_HUMAN) or any(element in text for element in _HUMAN_LATER)


def _without_own(text: str) -> str:
    """What is left when the harness's elements at the start are gone."""
    at = 0
    while found := _OWN.match(text, at):
        closing = f"</{found[1]}>"
        end = text.find(closing, found.end())
        if end < 0:
            return ""
        at = end + len(closing)
    return text[at:].strip()
