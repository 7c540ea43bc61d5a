"""Finding texts by meaning: models that turn texts into vectors, and what of a record is nearest to some words (an edge).

A text is cut into passages, and counts as near as its nearest one. Vectors are kept (`Vectors`), since a text is embedded once and searched often.
"""

from collections.abc import Callable, Iterable, Sequence
from heapq import nsmallest
from itertools import islice
from math import hypot
from operator import mul
from typing import Any, Final, Protocol

from tenure.engine.record.entry import At
from tenure.engine.record.search import Near, NearText
from tenure.errors import Failure, ModelError, TenureError
from tenure.extras import NotInstalled
from tenure.store.vectors import Vectors

PASSAGE: Final = 500  # characters: about as many tokens as a small model reads
PASSAGES: Final = 6  # of one text, spread over it
BATCH: Final = 16  # texts that are embedded at once
NEAREST: Final = 50
TIMEOUT_S: Final = 30.0


class Embedding(Protocol):
    """A model that turns texts into vectors."""

    @property
    def name(self) -> str:
        """As it was asked for; vectors of another name are not comparable."""
        ...

    def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """A vector for each text. Raises ModelError and InputError."""
        ...


class EndpointEmbedding:
    """A model behind an API compatible with OpenAI's `/embeddings`, asked through the official SDK."""

    def __init__(self, spec: str, name: str, *, base_url: str, api_key: str | None) -> None:
        self.name = spec
        self._model, self._base_url, self._key = name, base_url, api_key
        self._client: Any = None

    def __call__(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """Asked in one request. Raises ModelError."""
        try:
            import openai
        except ImportError as error:
            raise NotInstalled("openai") from error
        try:
            self._client = self._client or openai.OpenAI(
                base_url=self._base_url, api_key=self._key, timeout=TIMEOUT_S, max_retries=1
            )
            reply = self._client.embeddings.create(model=self._model, input=list(texts), encoding_format="float")
            vectors = [_of_length_1(each.embedding) for each in sorted(reply.data, key=lambda each: each.index)]
        except (openai.OpenAIError, TypeError, ValueError, AttributeError) as error:
            raise ModelError(Failure.UNAVAILABLE, f"{self.name} gave no embeddings ({error})") from error
        if len(vectors) != len(texts):
            raise ModelError(Failure.BAD_REPLY, f"{self.name} gave {len(vectors)} embeddings for {len(texts)} texts")
        return vectors


class Nearness:
    """What texts are nearest to some words; as a value it is what `recall` takes. Mutable: it opens its model when it is first asked."""

    def __init__(
        self, model: Callable[[], Embedding], vectors: Vectors, *, now: Callable[[], float], patience_s: float = 0.0
    ) -> None:
        """`patience_s`: after so long no more texts are embedded in one search, the newest having come first; 0: all are."""
        self._open, self._vectors, self._now, self._patience = model, vectors, now, patience_s
        self._model: Embedding | None = None
        self._held: dict[str, Sequence[float]] = {}

    def __call__(self, words: str, texts: Iterable[tuple[At, str]]) -> Near:
        """The nearest texts, nearest first; `texts` come newest first. Where the model fails there are none, and the note says why."""
        places = [(at, start, passage) for at, text in texts for start, passage in passages(text)]
        until = self._now() + self._patience if self._patience else None
        try:
            wanted = self._embedded([words], until=None)[words]
            vectors = self._embedded([passage for _, _, passage in places], until=until)
        except TenureError as error:
            return Near(note=f"not ranked by meaning: {error}")
        best: dict[At, NearText] = {}
        left = set[At]()
        for at, start, passage in places:
            if (vector := vectors.get(passage)) is None:
                left.add(at)
            elif len(vector) == len(wanted):
                likeness = sum(map(mul, wanted, vector))
                if at not in best or likeness > best[at].likeness:
                    best[at] = NearText(at=at, place=start, likeness=likeness)
        note = f"ranked by words, and by meaning but for {len(left):,} texts: the next search goes on with them" if left else ""
        return Near(texts=tuple(nsmallest(NEAREST, best.values(), key=lambda each: (-each.likeness, each.at))), note=note)

    def _embedded(self, texts: Sequence[str], until: float | None) -> dict[str, Sequence[float]]:
        """The vectors of texts, as far as the time allows; what is new is kept."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._held]
        self._held |= self._vectors.known(self._name, missing) if missing else {}
        new = iter([text for text in missing if text not in self._held])
        while (part := list(islice(new, BATCH))) and (until is None or self._now() < until):
            self._model = self._model or self._open()
            made = dict(zip(part, self._model(part), strict=True))
            self._vectors.keep(self._model.name, made)
            self._held |= made
        return {text: self._held[text] for text in texts if text in self._held}

    @property
    def _name(self) -> str:
        self._model = self._model or self._open()
        return self._model.name


def passages(text: str) -> list[tuple[int, str]]:
    """Parts of a text that are embedded, each with the character it starts at: all of a short one, else some spread over it."""
    starts = range(0, len(text), PASSAGE)
    if len(starts) > PASSAGES:
        starts = [starts[n * (len(starts) - 1) // (PASSAGES - 1)] for n in range(PASSAGES)]
    return [(start, passage) for start in starts if (passage := text[start : start + PASSAGE]).strip()]


def _of_length_1(vector: Sequence[float]) -> Sequence[float]:
    length = hypot(*vector) or 1.0
    return [each / length for each in vector]
