"""A model that says what a test wants it to.

    model = ScriptedModel("first", Line(text="second", usage=Usage(output=2)), then="down")
    model.questions  # what it was asked so far

It follows the same rules as the real ones: an answer that was to be JSON is checked, and a cancelled one never comes.
"""

import time
from collections.abc import Callable
from threading import Event, Lock
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.record.entry import Usage
from tenure.errors import Failure, ModelError
from tenure.models.failures import Trouble, sentence
from tenure.models.question import Answer, Cancel, Question, answer_in

# well: the text. down: no answer. slow: the text, after `delay_s`, or a minute. rubbish: text that is no answer to anything.
# cut short: half of the text.
Play = Literal["well", "down", "slow", "rubbish", "cut short"]

RUBBISH: Final = '}} \x00 as an unto the {"plan": [1, 2,, ``` <delete_all>'
SLOW_S: Final = 60.0
STEP_S: Final = 0.05  # how often a waiting model looks whether it was cancelled


class Line(Struct, frozen=True, kw_only=True):
    """One answer in a script."""

    text: str = "ok"
    usage: Usage | None = None
    cost_usd: float | None = None
    delay_s: float = 0.0
    play: Play = "well"


class ScriptedModel:
    """A `Model` that gives the lines of a script in turn: texts, answers, errors to raise. Safe in several threads.

    When they have all been said it goes on with `then`, for ever; without it one more question is a defect of the test, an
    AssertionError. `wait` passes time, in seconds, and is handed in where no time is to pass.
    """

    def __init__(
        self,
        *lines: str | Line | Answer | Exception,
        then: Play | Line | None = None,
        name: str = "scripted",
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.questions: list[Question] = []
        self.name = name
        self._lines, self._then, self._wait = lines, Line(play=then) if isinstance(then, str) else then, wait
        self._lock = Lock()

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """The next line of the script. Raises ModelError as a real model would, or the error that stands in the script."""
        line = self._next(question)
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Answer):
            self._pass_time(Line(), cancel)
            return line
        self._pass_time(line, cancel)
        match line.play:
            case "down":
                raise self._error(Failure.UNAVAILABLE, "the script says so")
            case "cut short":
                raise self._error(Failure.CUT_SHORT, "the stream broke off", line, line.text[: len(line.text) // 2])
            case "rubbish" | "slow" | "well":
                text = RUBBISH if line.play == "rubbish" else line.text
        wanted = answer_in(text, question)
        if not wanted:
            detail = "the answer is empty" if wanted is not None else "no JSON, where JSON was asked for"
            raise self._error(Failure.BAD_REPLY, detail, line, text)
        return Answer(text=wanted, model=self.name, stop="stop", usage=line.usage, cost_usd=line.cost_usd)

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name})"

    def _next(self, question: Question) -> Line | Answer | Exception:
        with self._lock:
            n = len(self.questions)
            self.questions.append(question)
        if n < len(self._lines):
            line = self._lines[n]
            return Line(text=line) if isinstance(line, str) else line
        assert self._then is not None, f"the script of {self.name} has {len(self._lines)} lines and was asked for one more"
        return self._then

    def _pass_time(self, line: Line, cancel: Cancel | None) -> None:
        cancelled = cancel.is_set if isinstance(cancel, Event) else cancel
        left_s = line.delay_s or (SLOW_S if line.play == "slow" else 0.0)
        while True:
            if cancelled is not None and cancelled():
                raise self._error(Failure.CANCELLED, "", line)
            if left_s <= 0:
                return
            self._wait(min(STEP_S, left_s))
            left_s -= STEP_S

    def _error(self, kind: Failure, detail: str, line: Line | None = None, said: str = "") -> ModelError:
        usage, cost_usd = (line.usage, line.cost_usd) if line else (None, None)
        return ModelError(kind, sentence(self.name, Trouble(kind=kind, detail=detail)), said=said, usage=usage, cost_usd=cost_usd)
