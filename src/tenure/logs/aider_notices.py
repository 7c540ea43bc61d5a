"""What aider prints, as tables: what is only for the user's eyes, what the model is told too, and what its commands do.

Wordings of all versions from 0.5 to 0.86. Of what aider prints, read as the model's are the output of a command that was added to the chat,
errors of a linter or of tests that the model shall fix, the reason why an edit was refused, a commit of its own, and what was pasted.
"""

import re
from enum import Enum
from typing import Final

from tenure.engine.record.entry import Usage


class CommandEffect(Enum):
    """What a command does to the model's window."""

    ASKS = "asks"  # what follows it is sent, and logged a second time
    RUNS = "runs"  # its output may be added to the chat
    PASTES = "pastes"  # the clipboard's text is sent
    CLEARS = "clears"  # the conversation so far leaves the window
    FILES = "files"  # changes which files are in the window; their text is not in the log
    NOTHING = "nothing"


COMMANDS: Final = {
    **dict.fromkeys(("ask", "code", "architect", "context", "help"), CommandEffect.ASKS),
    **dict.fromkeys(("run", "test"), CommandEffect.RUNS),
    **dict.fromkeys(("clear", "reset"), CommandEffect.CLEARS),
    **dict.fromkeys(("paste", "clipboard"), CommandEffect.PASTES),
    **dict.fromkeys(("add", "drop", "read-only", "web", "load"), CommandEffect.FILES),
    **dict.fromkeys(
        "chat-mode commit copy copy-context diff edit editor editor-model exit git lint ls map map-refresh model models"
        " multiline-mode ok quit reasoning-effort report save settings think-tokens tokens undo voice weak-model".split(),
        CommandEffect.NOTHING,
    ),
}

_NOTICES: Final = (
    # when it starts or changes its model
    r"\S*aider(?:\.exe|\.py)?(?: |$)",
    r"Aider v\d",
    r"(?:Main |Editor |Weak )?[Mm]odels?:? ",
    r"(?:Git repo|Repo-map|Repo map|VSCode terminal|cwd): ?",
    r"(?:Restored previous conversation|Multiline mode|Use /help|Use Ctrl|Using \S+ model|Cost estimates|Update git)",
    r"(?:Newer (?:version|aider)|Added \.aider|Loaded|Config|Tip:|Note:|Warning|https?://\S+$|Initial repo scan|Detected dumb)",
    r"(?:You can skip this check|Skipped adding|Creating (?:empty )?git|Git repository created|Re-run aider)",
    # files
    r"(?:Added|Removed|Moved|Converted|Dropping|Skipping|Replaced|Created?) .*(?:chat|read-only|files?|edits?|gitignore|spec)\b",
    r"(?:No files matched|Unable to (?:read|create)|Can(?:not| not|'t) add|No match|File not found|.* is already in the chat)",
    r"\.\.\. (?:added to chat|done)",
    r"Scraping ",
    # a turn
    r"Tokens: ",
    r"Cost: ",
    r"(?:Applied edit|Did not apply edit|Committing|Skipped commm?it|No changes made|You can use /undo)",
    r"(?:Diff since|Removed: |Now at: )",
    r"(?:Running |Added \d+ lines? of |Copied |Retrying in|The API provider|Only \d+ reflections|\^C )",
    r"(?:All (?:chat|files)|Invalid command|Ambiguous command|Error: Command|No (?:git|more|dirty|changes))",
    r"(?:Empty response|Your estimated chat|To reduce |- (?:Use|Break|Ask) |It's probably safe|Summarizing|Starting to summ)",
)
_SHOWN: Final = re.compile("|".join(_NOTICES))
_QUESTION: Final = re.compile(r"\(Y\)es/\(N\)o|\? (?:y|n|yes|no)$|\[(?:Yes|No)\]: ?\w*$")

AFTER_AN_ANSWER: Final = re.compile(
    r"Tokens: |litellm\.|Traceback |\w+Error\b|\w+Exception\b|Retrying in|\^C |Model \S+ has hit|Applied edit|Did not apply"
    r"|Malformed |Update exception|The LLM did not conform"
    r"|Exception while|Unexpected error|Commit|Edit the files|Empty response|Only \d+ reflections|Add "
)
SPANS_LINES: Final = re.compile(r"Tokens: |Malformed |Update exception|The chat session is larger")

RETRIED: Final = re.compile(r"Retrying in [\d.]+ seconds")
RESTORED: Final = re.compile(r"Restored previous conversation history")
REFUSED: Final = re.compile(r"Invalid command|Ambiguous command|Error: Command \S+ not found")
MODEL: Final = re.compile(r"(?:Main model|Models?): ([^\s,]+)")
ENDLESS: Final = re.compile("\u267e|infinite output")
EDITOR_MODEL: Final = re.compile(r"Editor model: ([^\s,]+)")
STOPPED: Final = re.compile(r"Only \d+ reflections allowed")
COMMITTED: Final = re.compile(r"Commit [0-9a-f]{7,40}\b")  # of an edit that was applied
SETTLED: Final = re.compile(r"Applied edit to |Did not apply edit|Tokens: ")  # what was printed before is no lint error
ADDED: Final = re.compile(r"Added \d+ lines? of output to the chat")
EDIT_FILES: Final = re.compile(r"Edit the files\?")
VERSION: Final = re.compile(r"Aider v\d")
NO_EDIT: Final = re.compile(
    r"The LLM did not conform to the edit format|Exception while updating files"
    r"|Malformed response #\d+, retrying|Update exception #\d+, retrying|Malformed ORIGINAL/UPDATED blocks, retrying"
)
ADD_OUTPUT: Final = re.compile(
    r"Add (?:the output|[\d.]+k tokens of command output) to the chat\?\s*"
    r"(?:\(y/n/instructions\)|\(Y\)es/\(n\)o/message with instructions:|\(Y\)es/\(N\)o[^:]*:)?\s*(.*)",
    re.DOTALL,
)
FIX_ERRORS: Final = re.compile(r"Attempt to fix (?:lint|test) errors\?")
FIX_ALONE: Final = re.compile(r"Fix lint errors in ")  # by a coder with a window of its own

YES: Final = frozenset({"", "y", "yes", "a", "all"})
NO: Final = frozenset({"n", "no", "s", "skip", "d", "don't"})

_LONGEST_QUESTION: Final = 1000  # characters
_COUNT: Final = r"([\d.,]{1,15})([kM]?)"
_USAGE: Final = re.compile(rf"Tokens: {_COUNT} sent(?:, {_COUNT} cache write)?(?:, {_COUNT} cache hit)?, {_COUNT} received")
_SCALE: Final = {"": 1, "k": 1_000, "M": 1_000_000}


def is_notice(text: str) -> bool:
    """Whether this is for the user's eyes only, whatever came before."""
    return not text or _SHOWN.match(text) is not None or is_question(text)


def is_question(text: str) -> bool:
    """Whether this is a question with the user's answer."""
    return len(text) < _LONGEST_QUESTION and _QUESTION.search(text) is not None


def agreed(text: str) -> bool:
    """Whether the answer at the end of a question is a yes."""
    return text.split()[-1].lower() in YES


def usage_in(text: str) -> Usage | None:
    """The tokens of a call, as rounded by aider; None where `text` is no such report.

    What was sent includes what was written to the cache, and what was read only where that is less (DeepSeek).
    """
    report = _USAGE.match(text)
    if report is None:
        return None
    sent, write, read, output = (_count(report, group) for group in (1, 3, 5, 7))
    apart = write or read > sent
    return Usage(uncached=max(0, sent - write - (0 if apart else read)), cache_write=write, cache_read=read, output=output)


def command(text: str) -> CommandEffect | None:
    """What the command at the start of `text` does; None where aider has no such command.

    Commands may be shortened. Which ones that is clear of differs from version to version; aider says where it is not.
    """
    if text.startswith("!"):
        return CommandEffect.RUNS
    name, *_ = text[1:].split(maxsplit=1) or [""]
    if name in COMMANDS:
        return COMMANDS[name]
    return next((does for known, does in COMMANDS.items() if name and known.startswith(name)), None)


def _count(found: re.Match[str], group: int) -> int:
    number, scale = found[group], found[group + 1]
    if number is None:
        return 0
    try:
        return round(float(number.replace(",", "")) * _SCALE[scale])
    except (ValueError, OverflowError):
        return 0
