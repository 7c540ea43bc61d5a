"""A model behind a function of text: another library's client, a local one, a person. Edge."""

from collections.abc import Callable
from threading import Event

from tenure.errors import Failure, InputError, ModelError
from tenure.models.failures import Trouble, redacted, sentence
from tenure.models.listen import Cancel
from tenure.models.question import Answer, Question
from tenure.models.replies import answered
from tenure.models.requests import in_words


class TextModel:
    """Asks `function` in one text and takes its text as the answer. It cannot be cancelled while it runs, only before and after."""

    def __init__(self, function: Callable[[str], str], name: str = "function") -> None:
        self.name = name
        self._function = function

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """Ask. Whatever the function raises is a ModelError; InputError for a question with a prefix, which only a provider can take."""
        if question.prefix:
            raise InputError("question", "a prefix", f"none: {self.name} takes text")
        self._stop_if(cancel)
        try:
            said = self._function(in_words(question))
        except Exception as error:
            detail = redacted(f"{type(error).__name__}: {error}", ())
            raise self._error(Failure.UNAVAILABLE, detail) from error
        self._stop_if(cancel, said)
        text = answered(said, question)
        if not text:
            raise self._error(Failure.BAD_REPLY, "the answer is empty" if text is not None else "no JSON", said)
        return Answer(text=text, model=self.name, stop="stop")

    def __repr__(self) -> str:
        return f"TextModel({self.name})"

    def _stop_if(self, cancel: Cancel | None, said: str = "") -> None:
        if cancel is not None and (cancel.is_set() if isinstance(cancel, Event) else cancel()):
            raise self._error(Failure.CANCELLED, "", said)

    def _error(self, kind: Failure, detail: str, said: str = "") -> ModelError:
        return ModelError(kind, sentence(self.name, Trouble(kind=kind, detail=detail)), said=said)
