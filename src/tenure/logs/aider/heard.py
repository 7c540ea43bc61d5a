"""What of aider's output the model is told, by the tables in `aider_notices`, and why it is not told the rest."""

from collections.abc import Iterable

from msgspec.structs import replace

from tenure.engine.record.entry import Block, Origin, Text
from tenure.logs.aider.markdown import Part
from tenure.logs.aider.notices import (
    ADD_OUTPUT,
    ADDED,
    BESIDE_REFUSAL,
    COMMITTED,
    FIX_ERRORS,
    NO,
    NO_EDIT,
    SETTLED,
    STOPPED,
    YES,
    agreed,
    is_notice,
    is_question,
)


class Heard:
    """What of aider's output the model is told: mutable while it is gone through."""

    def __init__(self, run: list[Block]) -> None:
        self.blocks: list[Block] = []
        self.shown: list[tuple[Part, str]] = []
        self.line = 0
        self._run = run
        self._held: list[Part] = []  # what the next question may be about
        self._refused: list[Part] | None = None  # why an edit was refused, once that was announced
        self._errors: list[Block] = []  # sent unless aider stops first
        self._applied = False  # whether an edit was, so that the next commit is of it
        self._echo: list[str] = []  # what added output is repeated as, last line first

    def take(self, part: Part) -> None:
        """Hear the next that was printed."""
        text = part.text
        if self._echo and text == self._echo[-1]:
            self._echo.pop()
        elif added := ADD_OUTPUT.match(text):
            self._output(added[1].strip())
        elif self._run and ADDED.match(text):
            self._output("y")
        elif FIX_ERRORS.match(text):
            self._fix(agreed(text))
        elif STOPPED.match(text):
            self._stop(part)
        elif NO_EDIT.match(text):
            self._refused = _rest(part)
        elif COMMITTED.match(text):
            if self._applied:
                self._applied = False
                self._tell(part, Origin.HARNESS)
        elif self._refused is not None:
            self._refused += [] if BESIDE_REFUSAL.match(text) or is_question(text) else [part]
        elif self._run:
            self._held.append(part)
        elif SETTLED.match(text) or is_question(text):
            self._applied = self._applied or text.startswith("Applied")
            self._only_shown(self._held)
        elif self._held or not is_notice(text):
            self._held.append(part)

    def close(self) -> None:
        """Nothing more was printed before the next is typed or answered."""
        if self._run and _is_doubled(self._held):  # what a failing test printed is added without a question
            self._output("y")
        self._only_shown(self._held)
        if self._refused:
            self._tell(_joined(self._refused), Origin.HARNESS)
        self.blocks += self._errors

    def _output(self, reply: str) -> None:
        """The human's word on a command's output, which is held."""
        if reply.lower() in NO:
            self._only_shown(self._held, "command output that was not added to the chat")
            return
        self.blocks += [Text(text=reply, origin=Origin.HUMAN)] if reply.lower() not in YES else []
        self.blocks += self._run
        output = _joined(_undoubled(self._held)) if self._held else None
        self._run, self._held = [], []
        if output and output.text:
            self._echo = [line for line in map(str.strip, output.text.splitlines()) if line][::-1]
            self._tell(output, Origin.TOOL)

    def _fix(self, wanted: bool) -> None:
        """The human's word on errors, which are held."""
        if wanted and self._held:
            errors = _joined(_undoubled(self._held))
            self.line = self.line or errors.line
            self._errors.append(Text(text=errors.text, origin=Origin.TOOL))
            self._held = []
        self._only_shown(self._held)

    def _stop(self, part: Part) -> None:
        """Give up before errors or a refusal are sent, as aider does."""
        unsent = [replace(part, text=error.text) for error in self._errors] + (self._refused or [])
        self._only_shown(unsent)
        self._errors, self._refused = [], None

    def _tell(self, part: Part, origin: Origin) -> None:
        self.line = self.line or part.line
        self.blocks.append(Text(text=part.text, origin=origin))

    def _only_shown(self, parts: list[Part], reason: str = "output of aider: shown to the user, not to the model") -> None:
        self.shown += [(part, reason) for part in parts]
        parts.clear()


def _lines(parts: Iterable[Part]) -> list[str]:
    return [line for part in parts for line in map(str.strip, part.text.splitlines()) if line]


def _is_doubled(parts: list[Part]) -> bool:
    """Whether the parts after the first repeat it line by line: that is how older versions logged what they added."""
    first = _lines(parts[:1])
    return bool(first) and first == _lines(parts[1:])


def _undoubled(parts: list[Part]) -> list[Part]:
    return parts[:1] if _is_doubled(parts) else parts


def _joined(parts: list[Part]) -> Part:
    return replace(parts[0], text="\n".join(part.text for part in parts).strip())


def _rest(part: Part) -> list[Part]:
    """What stands below an announcement, when it was printed in one go with it."""
    rest = part.text.partition("\n")[2].strip()
    return [replace(part, text=rest)] if rest else []
