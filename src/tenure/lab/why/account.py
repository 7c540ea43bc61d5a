"""What `tenure why` answers, as values. Tokens are o200k where nothing else is said."""

from typing import Literal

from msgspec import Struct

from tenure.engine.policies.graph.why import Reason
from tenure.lab.events import Verdict

State = Literal["whole", "restored", "shortened", "in part", "gone"]
Coming = Literal["stays as it is", "is shortened", "leaves in part", "leaves", "comes back"]


class Thing(Struct, frozen=True, kw_only=True):
    """What an object is, and how old."""

    handle: str
    kind: str  # call, message, turn, step, episode, skill
    tool: str = ""
    about: str = ""
    failed: bool = False
    tokens: int  # in the record
    blocks: int
    lines: int  # of a call's result
    turn: int
    step: int
    age: int  # steps since
    call: int  # that made it, or before which it came


class Now(Struct, frozen=True, kw_only=True):
    """The moment that is asked about."""

    call: int  # the call that comes next, from 0
    calls: int
    is_end: bool
    view: int  # tokens
    head: int = 0  # tokens of system prompt and tools before it, as far as they are known
    ratio: float  # provider tokens to one of them
    limit: int  # provider tokens
    policy: str
    simulated: bool


class ResidueText(Struct, frozen=True, kw_only=True):
    """What stands in the view for something that left."""

    key: str
    text: str
    names_it: bool  # or a stretch in which it lies


class Appearance(Struct, frozen=True, kw_only=True):
    """How an object stands in the view."""

    state: State
    tokens: int
    shown: int  # blocks
    instead: str = ""  # the text in place of a result
    kept: tuple[str, ...] = ()  # lines of the result that it still shows
    names: tuple[str, ...] = ()  # that it lists beside them
    residues: tuple[ResidueText, ...] = ()


class Touch(Struct, frozen=True, kw_only=True):
    """A commit that changed an object."""

    commit: int
    before_call: int
    policy: str
    moment: str
    reason: str
    deed: str  # dropped, shortened, restored
    before: int  # tokens of the object
    after: int
    gain_usd: float | None = None  # of the whole commit, as the gate expected it; None where none was asked
    assumed: bool = False  # the money is by another model's price
    removed: int = 0  # provider tokens of the whole commit
    resent: int = 0  # provider tokens after the earliest change, of which the cache was broken


class Protection(Struct, frozen=True, kw_only=True):
    """Why no policy may touch something of an object."""

    reason: str
    text: str
    blocks: int
    every: bool  # all that is shown of it


class ExpectedNeed(Struct, frozen=True, kw_only=True):
    """What `graph` expects to be asked of an object, for each 1,000 tokens."""

    need: float
    median: float  # of the view's results
    rank: int  # 1: the first to go
    of: int
    results: int  # of which it is made up
    reasons: tuple[Reason, ...] = ()  # that count most
    least: str = ""  # of several, the handles of the ends
    most: str = ""


class Order(Struct, frozen=True, kw_only=True):
    """The object in a policy's order of actions, were a batch due now."""

    goal: int  # tokens that the view would come down to
    place: int  # of the first action that is about it; 0: none is
    of: int
    action: str = ""  # its name
    coming: Coming
    tokens: int  # of the object after it
    kept: tuple[str, ...] = ()  # lines of the result that would stay
    names: tuple[str, ...] = ()  # that would be listed beside them
    next_goal: int = 0
    next_coming: Coming = "stays as it is"
    next_to_go: tuple[str, ...] = ()  # lines that would leave with a quarter less room
    next_names: tuple[str, ...] = ()  # and names


class Within(Struct, frozen=True, kw_only=True):
    """The episode that an object lies in."""

    handle: str
    type: str
    is_declared: bool
    is_open: bool
    level: str  # of eviction that takes the object
    dependents: tuple[str, ...] = ()  # episodes still shown that build on it
    dependencies: tuple[str, ...] = ()


class Later(Struct, frozen=True, kw_only=True):
    """A later step that needed it once it had left."""

    call: int
    verdict: Verdict
    text: str
    more: int
    route: str
    commit: int


class ObjectAccount(Struct, frozen=True, kw_only=True):
    """All that is known about one object at one moment."""

    thing: Thing
    now: Now
    standing: Appearance
    touched: tuple[Touch, ...]
    protected: tuple[Protection, ...]
    need: ExpectedNeed | None
    order: Order | None
    within: Within | None
    later: tuple[Later, ...]
    recall: str  # the call
    command: str
