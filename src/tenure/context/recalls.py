"""Answering an agent's calls of `recall` in a live conversation (an edge: it reads the store)."""

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

from tenure.apis.api import Api
from tenure.apis.media import Source, source_in
from tenure.engine.lifecycle.session import Session
from tenure.engine.meter.media import MediaKind, media_tokens
from tenure.engine.record.entry import Count, Entry, ToolCall
from tenure.engine.record.episodes import Answer
from tenure.engine.record.index import NONE, Index
from tenure.engine.record.recall import Original, described, media_of, respond
from tenure.engine.record.spill import Open
from tenure.engine.view.guard import RECALL_SHARE
from tenure.store.records import Records

LEAST: Final = 1_000  # o200k tokens of an answer, however small the budget
CALL: Final = 60  # set aside for its call, which is kept with it
PAGE: Final = 32  # entries read at once from a store


class Recalls:
    """What the record has, as an agent asks for it. The session is only read."""

    def __init__(
        self, session: Session, store: Records, conversation: str, *, api: Api, media: MediaKind, count: Count, cap: int
    ) -> None:
        self._session, self._store, self._conversation = session, store, conversation
        self._api, self._count, self._cap = api, count, cap
        self._media: MediaKind = media
        self._sources: dict[str, Index] = {}

    def answered(self, at: tuple[int, int], made: ToolCall) -> dict[str, Any]:
        """The answer to the call at that place, as the dialect's result: text, and media where it can carry them."""
        told = self._told(at, made.arguments)
        media, said = self._beside(told, made.arguments)
        return self._api.result(made, told.text + said, error=told.error, media=media)

    def _told(self, at: tuple[int, int], arguments: str) -> Answer:
        index = self._session.index
        ordinal = index.block(at).span
        assert ordinal != NONE
        return respond(
            index,
            self.history(),
            index.spans[ordinal],
            arguments,
            stands=self._stands,
            count=self._count,
            cap=self._room(),
            now=monotonic,
            opened=self.opened,
            sources=self.sources,
        )

    def _room(self) -> int:
        limit = self._session.setup.budget.limit / self._session.ratio
        return max(LEAST, min(self._cap, int(limit * RECALL_SHARE) - CALL))

    def _beside(self, told: Answer, arguments: str) -> tuple[tuple[Source, ...], str]:
        """The images and documents that an answer brings back as such, and what is said of the others."""
        found = media_of(self._session.index, self.history(), arguments, told)
        if not found:
            return (), ""
        named = [(described(media), source_in(entry, media), media_tokens(media, self._media)) for entry, media in found]
        return _beside(self._api, named, self._room() - self._count(told.text))

    def _stands(self, at: tuple[int, int]) -> bool:
        """Whether a block is shown as the record has it."""
        row = self._session.view.row(at[0])
        return row is not None and row.shows(at[1]) and row.instead(at[1]) is None

    @property
    def opened(self) -> Open:
        """The bytes of outputs that are kept in files."""
        return self._store.spills.open

    def sources(self) -> Iterator[Original]:
        """The records of the conversations that this one was built from, nearest first. Each is read once: O(its length)."""
        sheet = self._store.conversation(self._conversation)
        while sheet.parent:
            is_built = not sheet.forked_at
            sheet = self._store.conversation(sheet.parent)
            if is_built:
                yield self._source(sheet.id)

    def _source(self, conversation: str) -> Original:
        if conversation not in self._sources:
            self._sources[conversation] = indexed(self._store, conversation)
        return Original(self._sources[conversation], self.history(conversation), is_own=False)

    def history(self, conversation: str = "") -> Callable[[int], Entry]:
        """Entries by number, for reading many in a row: from the store by the page, of which two are kept."""
        pages: dict[int, tuple[Entry, ...]] = {}
        of = conversation or self._conversation

        def read(n: int) -> Entry:
            page = n // PAGE
            if page not in pages:
                pages.pop(next(iter(pages)) if len(pages) > 1 else NONE, None)
                pages[page] = tuple(self._store.entries(of, page * PAGE, (page + 1) * PAGE))
            return pages[page][n % PAGE]

        return read


def indexed(store: Records, conversation: str) -> Index:
    """The index of a stored conversation."""
    index = Index()
    for entry in store.entries(conversation):
        index.grow(entry)
    return index


def _beside(api: Api, named: Sequence[tuple[str, Source | None, int]], room: int) -> tuple[tuple[Source, ...], str]:
    """Which media come beside the text of an answer, and what to say of those that do not.

    `named`: each medium's name for a reader, its source if the record holds it, and its tokens; `room` tokens are left.
    """
    brought: list[Source] = []
    notes: list[str] = []
    for name, found, tokens in named:
        if found is None or not api.carries(found):
            notes.append(f"{name} is not shown: a tool's result of this API cannot hold it. The user can restore it in place")
        elif tokens > room:
            notes.append(
                f"{name} is not shown: its {tokens:,} tokens are more than there is room for. The user can restore it in place"
            )
        else:
            brought.append(found)
            room -= tokens
    return tuple(brought), "".join(f"\n[{each}.]" for each in notes)
