"""Which calls are recalls, and what their results stand for."""

from typing import TYPE_CHECKING

from msgspec import Struct

from tenure.engine.record.listener import Listener
from tenure.engine.record.query import asked
from tenure.engine.record.tools import is_recall

if TYPE_CHECKING:
    from tenure.engine.record.index import Index, Span


class RecallFacts(Struct, frozen=True, gc=False):
    """What a recall's result stands for. It is a copy: it may leave at no loss, and is named by what it is a copy of."""

    key: str  # the same for two recalls that ask the same
    sources: tuple[str, ...]  # objects; none of a search


class RecallIndex(dict[int, RecallFacts], Listener):
    """By ordinal of the span, ascending."""

    def called(self, index: "Index", span: "Span", arguments: str) -> None:
        """Tie a recall to its sources; one of a recall is tied to that one's. A call of a host's own that asks otherwise is none."""
        query = asked(arguments) if is_recall(span.tool) else None
        if query is None:
            return
        sources: dict[str, None] = {}
        for handle in query.named:
            object_ = handle.object
            named = index.span_of(object_)
            if named is not None and handle.hash and not index.is_hash(named.call[0], handle.hash):
                named, object_ = None, str(handle)  # of the conversation that this one was built from
            if object_.startswith("skill:") and (loads := index.skills.loads(object_.removeprefix("skill:"))):
                named = index.spans[loads[-1].span]
                object_ = named.object
            again = self.get(named.ordinal) if named is not None else None
            sources |= dict.fromkeys(again.sources if again is not None else (object_,))
        self[span.ordinal] = RecallFacts(query.key, tuple(sources))
