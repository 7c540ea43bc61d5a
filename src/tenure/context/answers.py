"""Answering an agent's calls of `delimiter`, `recall` and `notes` in a live conversation (an edge: it reads the store)."""

from collections.abc import Callable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

from tenure.apis.api import Api
from tenure.apis.json_text import Message, load
from tenure.apis.media import MediaSource, source_in
from tenure.context.durable_session import DurableSession
from tenure.engine.meter.media import media_tokens
from tenure.engine.record.entry import Entry, ToolCall
from tenure.engine.record.episodes import ToolAnswer
from tenure.engine.record.fitting import Fit, fitting
from tenure.engine.record.index import NONE, Index, Span, index_of
from tenure.engine.record.query import Query
from tenure.engine.record.recall import Original, answer, described, media_of, respond
from tenure.engine.record.search import Nearest
from tenure.engine.record.tools import is_delimiter, is_notes, is_recall, is_virtual
from tenure.engine.view.guard import RECALL_SHARE
from tenure.errors import InputError

LEAST: Final = 1_000  # o200k tokens of an answer, however small the budget
CALL: Final = 60  # set aside for its call, which is kept with it
PAGE: Final = 32  # entries read at once from a store


class Answers:
    """What our tools answer. The session is only read."""

    def __init__(self, durable: DurableSession, api: Api, *, cap: int, nearest: Nearest | None = None) -> None:
        """`cap` is what one recall may weigh in o200k tokens, `nearest` a model of meaning."""
        self._nearest = nearest
        self._durable, self._session, self._store = durable, durable.session, durable.store
        self._api, self._count, self._cap = api, durable.session.count, cap
        self._sources: dict[str, Index] = {}

    def to(self, call: Message, *, notes: bool) -> dict[str, Any] | None:
        """The answer to a call as the dialect's result; None where it is of no tool of ours. `notes`: those are kept."""
        return self.of(self._api.call_of(call), notes=notes)

    def of(self, call: ToolCall, *, notes: bool) -> dict[str, Any] | None:
        """The same for a call as the record has it; one without an id is known by its name and arguments."""
        recorded = self._recorded(call)
        if recorded is None:
            return None
        at, tool_call = recorded
        index = self._session.index
        span = index.spans[index.block(at).span]
        if is_recall(span.tool):
            answer = self._recalled(span, tool_call.arguments)
            media, note = self._beside(answer, tool_call.arguments)
            return self._api.result(tool_call, answer.text + note, error=answer.error, media=media)
        if is_delimiter(span.tool):  # a host's own has another name
            answer = index.answers[at]
        elif notes and is_notes(span.tool):
            answer = index.notes.answer(span.ordinal)
        else:
            return None
        return self._api.result(tool_call, answer.text, error=answer.error)

    def recall(self, query: Query, cap: int) -> str:
        """What a host asks for, at most `cap` tokens of it; 0 is no cap."""
        return answer(
            self._session.index,
            self.history(),
            query,
            count=self._count,
            cap=cap,
            now=monotonic,
            opened=self._store.spills.open,
            sources=self.sources,
            nearest=self._nearest,
        )

    def fitting(self, words: str) -> tuple[Fit, ...]:
        """Results that left the view, whole or in part, and fit some words."""
        spans = self._session.index.spans
        gone = [span for span in spans if span.result is not None and not is_virtual(span.tool) and not self._stands(span.result)]
        return fitting(self._session.index, self.history(), words, gone, self._nearest)

    def _recorded(self, wanted: ToolCall) -> tuple[tuple[int, int], ToolCall] | None:
        """The newest recorded call that is `wanted`."""
        for step in reversed(self._session.index.steps):
            entry = self._durable.entry(step.entry)
            for number, block in enumerate(entry.blocks):
                if not isinstance(block, ToolCall):
                    continue
                if block.call_id == wanted.call_id if wanted.call_id else _is_call(block, wanted):
                    return (entry.n, number), block
        return None

    def _recalled(self, span: Span, arguments: str) -> ToolAnswer:
        return respond(
            self._session.index,
            self.history(),
            span,
            arguments,
            stands=self._stands,
            count=self._count,
            cap=self._room(),
            now=monotonic,
            opened=self._store.spills.open,
            sources=self.sources,
            nearest=self._nearest,
        )

    def _room(self) -> int:
        limit = self._session.setup.budget.limit / self._session.ratio
        return max(LEAST, min(self._cap, int(limit * RECALL_SHARE) - CALL))

    def _beside(self, answer: ToolAnswer, arguments: str) -> tuple[tuple[MediaSource, ...], str]:
        """The images and documents that an answer brings back as such, and what is said of the others."""
        found = media_of(self._session.index, self.history(), arguments, answer)
        if not found:
            return (), ""
        named = [
            (described(media), source_in(entry, media), media_tokens(media, self._session.setup.rules.media))
            for entry, media in found
        ]
        return _beside(self._api, named, self._room() - self._count(answer.text))

    def _stands(self, at: tuple[int, int]) -> bool:
        """Whether a block is shown as the record has it."""
        row = self._session.view.row(at[0])
        return row is not None and row.shows(at[1]) and row.instead(at[1]) is None

    def sources(self) -> Iterator[Original]:
        """The records of the conversations that this one was built from, nearest first. Each is read once: O(its length)."""
        sheet = self._store.conversation(self._durable.id)
        while sheet.parent:
            is_built = not sheet.forked_at
            sheet = self._store.conversation(sheet.parent)
            if is_built:
                yield self._source(sheet.id)

    def _source(self, conversation: str) -> Original:
        if conversation not in self._sources:
            self._sources[conversation] = index_of(self._store.entries(conversation))
        return Original(self._sources[conversation], self.history(conversation), is_own=False)

    def history(self, conversation: str = "") -> Callable[[int], Entry]:
        """Entries by number, for reading many in a row: from the store by the page, of which two are kept."""
        pages: dict[int, tuple[Entry, ...]] = {}
        of = conversation or self._durable.id

        def read(n: int) -> Entry:
            page = n // PAGE
            if page not in pages:
                pages.pop(next(iter(pages)) if len(pages) > 1 else NONE, None)
                pages[page] = tuple(self._store.entries(of, page * PAGE, (page + 1) * PAGE))
            return pages[page][n % PAGE]

        return read


def _is_call(block: ToolCall, wanted: ToolCall) -> bool:
    """Whether a recorded call is one that is known by its name and arguments."""
    try:
        return block.name == wanted.name and load(block.arguments) == load(wanted.arguments)
    except InputError:  # arguments that are no JSON, of a host that keeps them so
        return False


def _beside(api: Api, named: Sequence[tuple[str, MediaSource | None, int]], room: int) -> tuple[tuple[MediaSource, ...], str]:
    """Which media come beside the text of an answer, and what to say of those that do not.

    `named`: each medium's name for a reader, its source if the record holds it, and its tokens; `room` tokens are left.
    """
    brought: list[MediaSource] = []
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
