"""What happens in a session, as values.

    async for event in agent.run("mend the parser"):
        match event:
            case TextDelta(text=text): ...
            case ApprovalAsked(call=call): agent.approve(call, ApprovalAnswer.ONCE)
            case TurnDone(): ...

Every turn begins with `TurnStarted` and ends with exactly one `TurnDone`. Texts of models, files and tools are other people's: whoever shows them
makes them harmless to its screen first. As JSON (`as_json`) each is an object whose `event` says which it is.
"""

from typing import Literal

from msgspec import Struct

from tenure.agent.approval import Approval, ApprovalAnswer
from tenure.engine.meter.gauge import Severity
from tenure.engine.record.entry import Usage
from tenure.engine.record.episodes import EpisodeType
from tenure.engine.record.visible import json_of
from tenure.errors import Failure

# Why a turn ended. done: the model had no more to do. needs approval: nobody was there to give it. stuck: no progress for too long.
Reason = Literal[
    "done", "cancelled", "needs approval", "step limit", "money limit", "token limit", "stuck", "refused", "cut short", "failed"
]
Outcome = Literal["done", "error", "declined", "interrupted"]


class SessionOpened(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="session_opened"):
    """The session is there. `interrupted` calls of an earlier process were given a result that says so."""

    session: str
    folder: str
    model: str
    resumed: bool = False
    entries: int = 0  # in the record
    interrupted: int = 0


class TurnStarted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="turn_started"):
    """The turn begins; `text` is what the person said, empty when the session goes on by itself after an interruption."""

    text: str = ""
    entry: int = -1  # where it stands in the record; -1 when nothing was added


class Requested(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="requested"):
    """A request goes out: the `step`-th of the turn, from 1."""

    step: int
    tokens: int  # provider tokens, estimated: view, head and notes
    notes: str = ""  # what stands at its tail, for this request alone


class TextDelta(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="text"):
    """Words of the model, as they come."""

    text: str


class ThinkingDelta(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="thinking"):
    """Reasoning of the model, as it comes."""

    text: str


class CallDelta(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="call_delta"):
    """Arguments of a call, as the model writes them. `place` counts the calls of the reply, from 0."""

    place: int
    tool: str
    text: str = ""


class Replied(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="replied"):
    """The reply is complete and in the record. What it streamed before stands."""

    entry: int
    text: str = ""
    calls: int = 0
    stop: str = ""  # the provider's word
    usage: Usage | None = None
    usd: float | None = None  # None: usage or price is not known
    seconds: float = 0.0


class CallStarted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="call_started"):
    """A call's turn has come; it may still have to wait for a person. `summary` is one line for people."""

    call: str  # the call's id
    tool: str
    summary: str
    arguments: str = "{}"  # JSON as the model wrote it


class CallOutput(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="call_output"):
    """What a tool says while it works."""

    call: str
    text: str


class CallDone(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="call_done"):
    """A call has its result, which is in the record. `handle` names it, as in `read:12@3fa9`."""

    call: str
    tool: str
    text: str
    outcome: Outcome = "done"
    handle: str = ""
    tokens: int = 0  # o200k, in the record
    shown: int = 0  # o200k, in the view: fewer when it was clipped
    media: int = 0  # images and documents beside the text
    seconds: float = 0.0


class ApprovalAsked(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="approval_asked"):
    """A call waits for a person's word: `agent.approve(call, …)`."""

    call: str
    approval: Approval


class ApprovalGiven(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="approval_given"):
    """What the person said. A call for which nobody had to be asked again is not told of."""

    call: str
    answer: ApprovalAnswer
    words: str = ""


class EpisodeStarted(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="episode_started"):
    """The agent marked the beginning of a piece of work."""

    name: str
    type: EpisodeType
    dependencies: tuple[str, ...] = ()


class EpisodeEnded(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="episode_ended"):
    """A piece of work ended; `aborted`: not by the agent, but because its turn was cut off."""

    name: str
    type: EpisodeType
    description: str = ""
    aborted: bool = False


class ObjectLeft(Struct, frozen=True, kw_only=True):
    """An object that a commit took out or made smaller: `trim` of `read:12`, `strip` at level `reasoning` of `episode:locate-auth`."""

    action: str
    object: str
    level: str = ""


class Committed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="committed"):
    """Something left the window: what, why, and at which price. `n` is the commit's number, which `undo` takes."""

    n: int
    policy: str
    reason: str
    account: str  # the whole decision in one line, money included
    left: tuple[ObjectLeft, ...] = ()
    tokens_before: int = 0  # o200k, of the view
    tokens_after: int = 0
    forced: bool = False
    gain_usd: float | None = None


class LimitUnmet(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="limit_unmet"):
    """The limit cannot be kept without breaking a promise; what holds the space, in provider tokens. Said once while it lasts."""

    text: str
    tokens: int
    limit: int
    held_by: dict[str, int] = {}


class Recalled(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="recalled"):
    """Something came back. `objects` is empty for a search."""

    objects: tuple[str, ...] = ()
    tokens: int = 0  # o200k


class Gauged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="gauged"):
    """How full the window is, in provider tokens, and what the session has cost so far."""

    tokens: int
    limit: int  # the lowest level at which something may be evicted
    severity: Severity  # of the limit
    estimated: bool
    window: int = 0  # what the model can take; 0: the limit
    cached_share: float = 0.0  # of the newest prompt, 0 to 1
    usd: float = 0.0
    unpriced: int = 0  # calls whose money is not known, and not in the sum


class Retrying(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="retrying"):
    """The call is made again after `wait_s` seconds. With `discard` what its reply had streamed so far is void."""

    text: str
    kind: Failure
    attempt: int  # the one to come, from 2
    most: int
    wait_s: float = 0.0
    discard: bool = False


class Noticed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="noticed"):
    """Something that a person should know, and that stops nothing."""

    text: str


class TurnFailed(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="failed"):
    """The turn cannot go on. What is in the record stays, and the session can be gone on with."""

    text: str
    kind: Failure | None = None  # None: not a model's failure


class Delegated(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="delegated"):
    """Something that happened in a sub-agent: `call` is the call of `task` that it works for."""

    call: str
    folder: str
    of: "Event"


class TurnDone(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event", tag="turn_done"):
    """The turn is over. `text` is the model's last word; sums are of this turn, sub-agents included."""

    reason: Reason
    text: str = ""
    why: str = ""  # more than the reason, for people
    steps: int = 0
    usage: Usage = Usage()
    usd: float = 0.0
    unpriced: int = 0  # calls whose money is not known, and not in the sum
    seconds: float = 0.0


Event = (
    SessionOpened
    | TurnStarted
    | Requested
    | TextDelta
    | ThinkingDelta
    | CallDelta
    | Replied
    | CallStarted
    | CallOutput
    | CallDone
    | ApprovalAsked
    | ApprovalGiven
    | EpisodeStarted
    | EpisodeEnded
    | Committed
    | LimitUnmet
    | Recalled
    | Gauged
    | Retrying
    | Noticed
    | TurnFailed
    | Delegated
    | TurnDone
)


def as_json(event: Event) -> bytes:
    """The event as one line of JSON, without the newline."""
    return json_of(event)
