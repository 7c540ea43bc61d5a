"""A model whose answers come in a file: what has none there goes out in a file of questions, in the form of a provider's batches (an edge).

A question is known by its hash, so the same one is asked once, today and in a year. An answer is never invented: a question without one fails with
`Failure.WAITING`, and is listed. Of the plain form are JSON lines: questions `{"id", "system", "user", "max_output"}`, answers `{"id", "answer"}`,
perhaps with the `model` that gave it.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import TracebackType
from typing import Final

from msgspec import Struct

from tenure.apis import APIS
from tenure.apis.batch import BatchReply, file_of, lines_of, reply_of
from tenure.apis.json_text import Json, dump
from tenure.apis.reply import ENDS
from tenure.engine.record.entry import Text, Usage
from tenure.errors import Failure, InputError, ModelError, StoreError
from tenure.models.failures import Trouble, sentence
from tenure.models.hosts import MAKERS, NAMED
from tenure.models.question import Answer, Cancel, Question, answer_in
from tenure.models.request import in_words, question_body

BATCH: Final = "batch:"  # before the file in a model's name
LONGEST: Final = 1 << 30  # bytes of a file of answers
ID_CHARS: Final = 32
_SETTINGS: Final = 'an answer to a question, such as {"id": "…", "answer": "…"}, or a line of a provider\'s batch'


class BatchAnswer(Struct, frozen=True, kw_only=True):
    """One answer of a file, or why there is none."""

    text: str = ""
    model: str = ""
    usage: Usage | None = None
    stop: str = ""
    failure: str = ""


def question_id(question: Question) -> str:
    """What a question is known by: the same words, system prompt, limit and schema give the same id, on any machine."""
    said = in_words(question)
    return sha256(f"{question.max_output}\0{said}".encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARS]


class BatchModel:
    """Answers from a file; what it cannot answer is written to another when the model is closed. Mutable; use it as a context."""

    def __init__(self, answers: Path, *, model: str = "") -> None:
        """`model`, such as "anthropic:claude-haiku-4-5", says for whom the questions are written; empty: in the plain form.

        Raises InputError for a file that holds something else, or that cannot be read; one that does not exist holds no answers.
        """
        self.name = model or "batch"
        self.path = answers
        self.unknown = 0  # lines of the file that are no answers
        self._api, self._model = _api_of(model)
        self._answers = dict(self._read())
        self._waiting: dict[str, Question] = {}
        self._used: set[str] = set()

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:  # noqa: ARG002 - it answers at once
        """The answer of the file. Raises ModelError: WAITING where it has none; InputError for a question with a prefix."""
        if question.prefix:
            raise InputError("question", "a prefix", "none: a batch reads no cache")
        key = question_id(question)
        held = self._answers.get(key)
        if held is None:
            self._waiting[key] = question
            raise self._failed(Failure.WAITING, f"question {key}")
        self._used.add(key)
        if held.failure:
            raise self._failed(Failure.UNAVAILABLE, held.failure)
        end, why = ENDS.get(held.stop.lower(), ("done", "")) if held.stop else ("done", "")
        if end != "done":
            kind = Failure.REFUSED if end == "refused" else Failure.CUT_SHORT
            raise self._failed(kind, why, said=held.text, usage=held.usage)
        wanted = answer_in(held.text, question)
        if not wanted:
            raise self._failed(Failure.BAD_REPLY, "the answer is empty, or no JSON", said=held.text, usage=held.usage)
        return Answer(text=wanted, model=held.model or self._model or self.name, stop=held.stop or "stop", usage=held.usage)

    def __enter__(self) -> "BatchModel":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"BatchModel({str(self.path)!r}, {self.name})"

    def continues(self, prefix: bytes) -> bool:  # noqa: ARG002 - none
        """Never: nothing of a batch is cached."""
        return False

    @property
    def waiting(self) -> Mapping[str, Question]:
        """The questions without an answer, by id, in the order in which they were asked."""
        return self._waiting

    @property
    def answered(self) -> int:
        """How many of the file's answers were asked for."""
        return len(self._used)

    @property
    def questions(self) -> Path:
        """Where the questions without an answer are written."""
        is_one = self._api is not None and bool(APIS[self._api].speech.batch.under)
        return self.path.with_name(f"{self.path.stem}.questions{'.json' if is_one else '.jsonl'}")

    def file(self) -> bytes:
        """The questions without an answer as the file of a batch."""
        if self._api is None:
            return b"".join(map(_plain_line, self._waiting.items()))
        bodies = ((key, question_body(each, self._model, self._api)) for key, each in self._waiting.items())
        return file_of(APIS[self._api].speech.batch, bodies)

    def close(self) -> None:
        """Write the questions without an answer, whole or not at all; nothing where there are none. Raises StoreError when it cannot be written."""
        if not self._waiting:
            return
        place = self.questions
        try:
            with NamedTemporaryFile(dir=place.parent, prefix=f".{place.name}.", delete=False) as file:
                file.write(self.file())
            Path(file.name).replace(place)
        except OSError as error:
            raise StoreError(f"{place}: cannot be written ({error.strerror or error})") from error

    def _failed(self, kind: Failure, detail: str, *, said: str = "", usage: Usage | None = None) -> ModelError:
        return ModelError(kind, sentence(self.name, Trouble(kind=kind, detail=detail)), said=said, usage=usage)

    def _read(self) -> Iterator[tuple[str, BatchAnswer]]:
        try:
            if not self.path.exists():
                return
            if not self.path.is_file() or self.path.stat().st_size > LONGEST:
                raise InputError(str(self.path), "no file, or a vast one", _SETTINGS)
            raw = self.path.read_bytes()
        except (OSError, ValueError) as error:
            raise InputError(str(self.path), str(getattr(error, "strerror", "") or error), _SETTINGS) from error
        for line in lines_of(raw):
            held = None if line is None else _answer_of(line)
            if held is None:
                self.unknown += 1
            else:
                yield held


def batch_named(name: str) -> BatchModel:
    """The model of a name like `batch:answers.jsonl` or `batch:openai:gpt-5-mini@answers.jsonl`. Raises InputError for another, and as `BatchModel` does."""
    model, at, file = name.removeprefix(BATCH).rpartition("@")
    if not file:
        raise InputError("model", repr(name), f"{BATCH}FILE or {BATCH}PROVIDER:NAME@FILE")
    return BatchModel(Path(file), model=model if at else "")


def _api_of(model: str) -> tuple[str | None, str]:
    """The API in which questions are written for a model, and its name there; None for the plain form."""
    if not model:
        return None, ""
    kind, _, name = model.partition(":")
    apis = NAMED[kind].apis if kind in NAMED else (kind,) if kind in MAKERS else ()
    if not name or not apis:
        raise InputError("model", repr(model), " or ".join(f"{each}:NAME" for each in dict.fromkeys((*NAMED, *MAKERS))))
    return apis[0], name


def _plain_line(item: tuple[str, Question]) -> bytes:
    key, question = item
    user = in_words(question).removeprefix(question.system).lstrip("\n")
    return (dump({"id": key, "system": question.system, "user": user, "max_output": question.max_output}) + "\n").encode()


def _answer_of(line: Mapping[str, Json]) -> tuple[str, BatchAnswer] | None:
    """An answer in the plain form or in that of any API; None for what is none."""
    key, text, model = line.get("id"), line.get("answer"), line.get("model")
    if isinstance(key, str) and isinstance(text, str):
        return key, BatchAnswer(text=text, model=model if isinstance(model, str) else "")
    for api in APIS.values():
        reply = reply_of(api.speech.batch, line, api.shape.reply)
        if reply is not None:
            return reply.id, _whole(api.name, reply)
    return None


def _whole(api: str, reply: BatchReply) -> BatchAnswer:
    if reply.failure:
        return BatchAnswer(failure=reply.failure)
    try:
        draft = APIS[api].parse_reply(reply.reply)
    except InputError as error:
        return BatchAnswer(failure=str(error))
    text = "\n".join(block.text for block in draft.blocks if isinstance(block, Text))
    return BatchAnswer(text=text, model=draft.model, usage=draft.usage, stop=reply.stop)
