"""A conversation whose client keeps its own history and its own head: what of a request is to be changed, and nothing else (an edge: it reads the store)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis.rendering import light
from tenure.apis.request_builder import Builder
from tenure.context.context import Context
from tenure.engine.policies.policy import marks_of
from tenure.engine.record.entry import Draft, Role, Thinking, ToolCall, ToolResult
from tenure.engine.record.tools import DELIMITER, RECALL, name_of, offered_name
from tenure.engine.view.edit import Insert
from tenure.engine.view.piece import Piece, whole_piece
from tenure.engine.view.project import View
from tenure.engine.view.request import INTERRUPTED, Messages

OURS: Final = frozenset({DELIMITER, RECALL})  # tools that a client does not know


class Change(Struct, frozen=True, kw_only=True):
    """What goes upstream in place of a client's messages, and of members of its head."""

    messages: Sequence[bytes]
    head: Mapping[str, Any]  # members with other values than the client's
    hidden: frozenset[str] = frozenset()  # names of the tools that are offered and that the client does not know


class ClientContext(Context):
    """A conversation as a client tells it. Not for use by several threads at once."""

    _life: str | None = None  # that the client's markers asked for last; None: it placed none
    _client_requests: Builder | None = None
    _bound: frozenset[str] | None = None  # seals of reasoning that was made before our tools were offered
    _asides: tuple[tuple[str | None, bool], Messages, Builder] | None = None  # what made the newest aside, for the next one
    _bare: dict[int, tuple[Piece, Piece | None]] = {}  # noqa: RUF012 - replaced, never changed; pieces of the request before without it

    @property
    def is_spliced(self) -> bool:
        """Whether the record has calls of ours that the client does not know."""
        return any(span.tool in OURS for span in self.session.index.spans)

    def catch_up(self) -> None:
        """Take in what another process has stored since."""
        self._durable.catch_up()

    def next_request(
        self, fields: Mapping[str, Any], life: str | None, *, offer: bool, only_forced: bool = False
    ) -> Change | None:
        """What of the client's request is to be changed, once what leaves has been decided and stored; None: nothing.

        With `only_forced` nothing is decided but what a limit forces: the rest is for `decide`, when nobody waits.

        `fields` are those of its head, `life` how long its cache markers ask to keep a prefix, None where it places none. With `offer` tools of ours stand beside
        the client's; otherwise nothing of them goes out. Raises InputError for a history that no provider takes.
        """
        self._requests.refusals.dangling()
        ours, requests = self.decide(fields, offer=offer, only_forced=only_forced), self._requests
        change = None
        offered = self._offers(ours)
        if offered or (ours and len(self.session.commits)):
            change = self._change(self._builder(life), self._with(fields, offered), requests.pieces(), fields, ours)
            requests.tools.offered_before = True
        elif len(self.session.commits) or self.is_spliced:
            change = self.beside(fields, life, self.session.length, (), offer=False)
        requests.send()
        return change

    def decide(self, fields: Mapping[str, Any], *, offer: bool, only_forced: bool = False) -> list[dict[str, Any]]:
        """Decide what leaves before a request with this head, and store it; our tools as they can be offered in it."""
        ours, requests = self._ours(fields, offer=offer), self._requests
        requests.count_head(self._with(fields, ours))
        self._stake(ours)
        requests.settle(only_forced=only_forced)
        self._stake(ours)  # until the next request, for what is clipped as it comes
        return ours

    def _stake(self, ours: list[dict[str, Any]]) -> None:
        """Weigh what changes in front of the view with the commit from which on a tool is offered."""
        self.session.head_at_stake = self._durable.head[1] if ours and not self._offers(ours) else 0

    def beside(
        self, fields: Mapping[str, Any], life: str | None, until: int, drafts: Sequence[Draft], *, offer: bool
    ) -> Change | None:
        """The same for a request of the first `until` entries and `drafts` behind them, of which nothing is recorded or decided."""
        if not len(self.session.commits) and not self.is_spliced:
            return None
        ours = self._ours(fields, offer=offer)
        offered = self._offers(ours)
        lines = takewhile(
            lambda line: line.before_entry <= until if isinstance(line, Insert) else line.entry < until,
            self.session.freeze().lines,
        )
        messages, builder = self._aside_makers(life, is_offered=bool(offered))
        answered = {block.call_id for draft in drafts for block in draft.blocks if isinstance(block, ToolResult)}
        shown = [piece for piece in messages.of(View(tuple(lines), 0)) if not _is_interruption(piece, answered)]
        shown += [whole_piece(draft) for draft in drafts]
        names = {offered_name(tool, self.session.index.own) for tool in OURS}
        if not offered:
            shown = list(without_tools(shown, names))
        return self._change(builder, self._with(fields, offered), shown, fields, ours)

    def _aside_makers(self, life: str | None, *, is_offered: bool) -> tuple[Messages, Builder]:
        """What makes the messages of an aside; what the aside before it had, of the same kind, is not made again."""
        kind = life, is_offered
        if self._asides is None or self._asides[0] != kind:
            messages = Messages(self.session.index, self._durable.entry, partial(light, api=self._api))
            self._asides = kind, messages, Builder(self._api, ttl=life or "", markers=life is not None)
        return self._asides[1], self._asides[2]

    def answer(self, calls: Sequence[ToolCall]) -> None:
        """Answer calls of ours that the newest reply made, and take the answers in."""
        wanted = (replace(call, call_id="" if call.call_id == call.name else call.call_id) for call in calls)
        results = [answer for call in wanted if (answer := self._answers.of(call, notes=False)) is not None]
        self.extend(self._api.results(results))

    def _builder(self, life: str | None) -> Builder:
        """What builds requests with markers such as the client's."""
        if self._client_requests is None or life != self._life:
            self._life, self._client_requests = life, Builder(self._api, ttl=life or "", markers=life is not None)
        return self._client_requests

    def _ours(self, fields: Mapping[str, Any], *, offer: bool) -> list[dict[str, Any]]:
        """Our tools as they can be offered beside the client's."""
        ours = self._requests.tools.beside(fields.get("tools") or ())
        return ours if offer else []

    def _offers(self, ours: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Those that are declared now: the one that marks from the start, the one that brings back once a commit has paid for the changed head.

        Until then a call of it is answered all the same.
        """
        if marks_of(self.session.setup.policy):
            return ours
        return ours[-1:] if self.session.is_head_changed or self.is_spliced else []

    def _change(
        self,
        builder: Builder,
        head: Mapping[str, Any],
        shown: Sequence[Piece],
        fields: Mapping[str, Any],
        ours: list[dict[str, Any]],
    ) -> Change:
        """What is to be changed; calls of `ours` are for us."""
        rules = self._requests.rules(head)
        if rules.thinking == "prefix_bound":
            shown = list(self._unbound(shown, alone=not ours))
        request = builder.request(head, shown, rules, stem=self._requests.stem())
        changed = {key: value for key, value in request.head.items() if value is not fields.get(key)}
        return Change(messages=request.messages, head=changed, hidden=frozenset(map(name_of, ours)))

    def _unbound(self, shown: Sequence[Piece], *, alone: bool) -> Iterator[Piece]:
        """The pieces without reasoning that is valid only behind another head: all, or what was made before our tools were offered."""
        if self._bound is None and not marks_of(self.session.setup.policy) and self.session.is_head_changed:
            until = next(commit.entries for commit in self.session.commits if commit.head)
            entries = self.store.entries(self.conversation, 0, until)
            self._bound = frozenset(block.seal for entry in entries for block in entry.blocks if isinstance(block, Thinking))
        bound, made = self._bound or frozenset(), dict[int, tuple[Piece, Piece | None]]()
        for piece in shown:
            known = self._bare.get(id(piece))
            if known is None or known[0] is not piece or alone:
                left = [
                    not (isinstance(block, Thinking) and block.signed and (alone or block.seal in bound))
                    for block in piece.blocks
                ]
                known = piece, _kept(piece, left)
            made[id(piece)] = known
            if known[1] is not None:
                yield known[1]
        if not alone:
            self._bare = made

    def _with(self, fields: Mapping[str, Any], ours: list[dict[str, Any]]) -> dict[str, Any]:
        return {**fields, "tools": self._api.with_tools(fields, ours)} if ours else dict(fields)


def _is_interruption(piece: Piece, answered: set[str]) -> bool:
    """Whether a piece says of a call that it was interrupted whose result is still to come."""
    first = piece.blocks[0] if len(piece.blocks) == 1 else None
    return isinstance(first, ToolResult) and not piece.payload and first.text == INTERRUPTED and first.call_id in answered


def without_tools(pieces: Sequence[Piece], names: set[str]) -> Iterator[Piece]:
    """The pieces without calls of these tools and their results, and without reasoning that led to nothing else."""
    hidden = set[str]()
    for piece in pieces:
        if piece.role is Role.ASSISTANT:
            hidden = {block.call_id for block in piece.blocks if isinstance(block, ToolCall) and block.name in names}
        left = [
            not (isinstance(block, ToolCall) and block.name in names)
            and not (isinstance(block, ToolResult) and block.call_id in hidden)
            for block in piece.blocks
        ]
        if (kept := _kept(piece, left)) is not None:
            yield kept


def _kept(piece: Piece, left: Sequence[bool]) -> Piece | None:
    """What is left of a piece; None where that is nothing but reasoning."""
    if all(left):
        return piece
    places = [place for place, stays in enumerate(left) if stays]
    if all(isinstance(piece.blocks[place], Thinking) for place in places):
        return None
    kept = tuple(piece.kept[place] for place in places) if piece.payload else ()
    return replace(piece, blocks=tuple(piece.blocks[place] for place in places), kept=kept, edited=True)
