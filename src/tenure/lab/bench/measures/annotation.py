"""What annotation costs, and how well it is done: delimiters, episodes of the wrong type (CWL paper, sections 5 and 7). Pure."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from tenure.agent.admission.prompt import EPISODES
from tenure.apis.json_text import dump
from tenure.engine.meter.ledger import Spent
from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.policies.cwl import Cwl
from tenure.engine.policies.offer import delimiter_offer
from tenure.engine.record.episodes import Episode, EpisodeType
from tenure.engine.record.index import Index
from tenure.engine.record.tools import is_delimiter
from tenure.lab.bench.measures.calls import Called, Calls, Read, replies, says_anything


class Overhead(Struct, frozen=True, kw_only=True):
    """What annotating took. o200k tokens, money as reported."""

    delimiters: int = 0  # calls of `delimiter`
    refused: int = 0  # of them
    tokens: int = 0  # of those calls and their results, once
    replies: int = 0  # of the model that did nothing else: each is a call of the model made for annotation alone
    replies_tokens: int = 0  # prompts and replies of those, in provider tokens, where reported
    replies_usd: float = 0.0
    standing_tokens: int = (
        0  # of the tool's declaration and the words on how to use it, which go with every request; 0 where they do not
    )

    @property
    def accepted(self) -> int:
        """Delimiters that began or ended something."""
        return self.delimiters - self.refused


class Mistyped(Struct, frozen=True, kw_only=True):
    """An episode of the wrong type: an `expl` that wrote, or an `act` that changed nothing."""

    episode: str
    type: EpisodeType
    why: str


class Typing(Struct, frozen=True, kw_only=True):
    """The types of the episodes that the agent declared in a stretch."""

    expl: int = 0
    act: int = 0
    open: int = 0  # that were not ended
    mistyped: tuple[Mistyped, ...] = ()

    @property
    def declared(self) -> int:
        """All of them."""
        return self.expl + self.act


def overhead(
    index: Index, read: Read, calls: Calls, spent: Mapping[int, Spent], count: Tokenizer, first: int = 0, last: int | None = None
) -> Overhead:
    """What annotating took between two entries. `spent` has what was reported, by the entry of the reply."""
    alone = [
        spent.get(entry)
        for entry, spans in replies(index, first, last)
        if spans and all(is_delimiter(span.tool) for span in spans) and not says_anything(read(entry))
    ]
    reported = [each for each in alone if each is not None]
    return Overhead(
        delimiters=len(calls.delimiters),
        refused=sum(_is_refused(index, call) for call in calls.delimiters),
        tokens=sum(call.tokens for call in calls.delimiters),
        replies=len(alone),
        replies_tokens=sum(each.usage.prompt + each.usage.output for each in reported),
        replies_usd=sum((each.usd or 0.0 for each in reported), 0.0),
        standing_tokens=_standing(index, read, calls, count),
    )


def typing(index: Index, calls: Calls, first: int = 0, last: int | None = None) -> Typing:
    """The declared episodes that began between two entries, and those of the wrong type.

    An `expl` is wrong when a call in it plainly changed a file. An `act` is wrong when it has ended and every call in it only looked; what a command
    may have done that its words do not tell counts for the act.
    """
    stop = len(index) if last is None else last
    declared = [episode for episode in index.episodes if episode.declared and first <= episode.start[0] < stop]
    inside: dict[int, list[Called]] = {episode.ordinal: [] for episode in declared}
    for call in calls.made:
        if call.span.episode in inside:
            inside[call.span.episode].append(call)
    found = [wrong for episode in declared if (wrong := _mistyped(episode, inside[episode.ordinal])) is not None]
    return Typing(
        expl=sum(episode.type is EpisodeType.EXPL for episode in declared),
        act=sum(episode.type is EpisodeType.ACT for episode in declared),
        open=sum(not episode.closed for episode in declared),
        mistyped=tuple(found),
    )


def _mistyped(episode: Episode, calls: Iterable[Called]) -> Mistyped | None:
    if episode.type is EpisodeType.EXPL:
        wrote = next((call for call in calls if call.changed == "yes"), None)
        why = f"{wrote.span.object} changed {wrote.deed.changes[0]}" if wrote is not None else ""
    else:
        looked = list(calls)
        changed = not episode.closed or any(call.changed != "no" for call in looked)
        why = "" if changed else f"none of its {len(looked)} calls changed anything" if looked else "it made no calls"
    return Mistyped(episode=episode.name, type=episode.type, why=why) if why else None


def _is_refused(index: Index, call: Called) -> bool:
    answer = index.answers.get(call.span.call)
    return answer is not None and answer.error


def _standing(index: Index, read: Read, calls: Calls, count: Tokenizer) -> int:
    """Tokens that go with every request so that the agent can annotate, as `cwl` declares the tool; 0 where it was not told how."""
    told = any(EPISODES in block.text for entry in sorted(index.system)[:1] for block in read(entry).blocks)
    if not told and not calls.delimiters:
        return 0
    offer = delimiter_offer(Cwl())
    assert offer is not None
    return count(dump(offer._asdict())) + (count(EPISODES) if told else 0)
