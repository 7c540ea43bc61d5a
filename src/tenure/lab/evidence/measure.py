"""What is measured of a corpus: jobs that name their sessions and policies, what each does, and all events that come of them (an edge).

The default policy is judged by weights that were learned without the source at hand. `held_out.json` is written by `python bench/learn.py FOLDER
--out FILE`: of each source, a folder of the corpus that the published weights were learned from, the weights learned on all the others.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import Tokenizer, o200k
from tenure.engine.policies import COMPAT, DEFAULT, PEERS, POLICIES
from tenure.engine.policies.graph import GraphPolicy
from tenure.engine.policies.graph.keeping import ModelWeights
from tenure.engine.policies.policy import Policy
from tenure.engine.record.entry import Draft, ToolCall, ToolResult
from tenure.errors import InputError
from tenure.lab.cuts import cuts
from tenure.lab.events import fields_in
from tenure.lab.evidence.corpus import Corpus, Member, address_of, owner_of, sample_of, source_of, without_folder
from tenure.lab.marks import Mark, MarkBook, is_mark, marked
from tenure.lab.measured import AccumulatingRun, Annotation, Billed, CutLine, IsolatedRun, MarkedRun, Needed, Profile
from tenure.lab.protocols.accumulating import ConversationTask, accumulating, layout_of
from tenure.lab.protocols.compaction import EARLY, LATE, Compacting, compacted
from tenure.lab.protocols.curves import curves
from tenure.lab.protocols.runs import UNBOUNDED, WINDOW, budget_of, isolated, limits
from tenure.lab.protocols.workload import hard_set, profile
from tenure.lab.source import SessionSource
from tenure.lab.spread import Engine, FailedJob, ResultFolder, code_of, spread
from tenure.lab.validation import compare

# Every policy there is, by the name that its rows carry.
ALL: Final[Mapping[str, Policy]] = MappingProxyType(
    {policy.name: policy for policy in (*POLICIES.values(), *COMPAT.values(), *PEERS.values())}
)

SUBJECT: Final = DEFAULT  # the policy that the goals are for
PRUNES: Final = (0.45,)  # of the tokens of a view
PRUNE: Final = 0.45
POINTS: Final = 3  # cuts of a session
BESIDE: Final = (SUBJECT,)  # what takes, beside every other policy, just what that one took
CEILING: Final = 80_000  # under which every policy is run: where the cost fell and accuracy did not (CWL paper, section 5)
SWEPT: Final = ("cwl", SUBJECT)  # under these ceilings; others would double the time
SWEEP: Final = (50_000, CEILING, 120_000, WINDOW)
TARGETED: Final = ("cwl", SUBJECT)  # with a target and no ceiling, where the gate decides
# With marks and without: ours and the paper's that read them, and a few that do not. Ceiling and floor leave 40,000 and 24,000 tokens beside the head.
MARKED: Final = ("none", "cwl-paper", "pi-cwl", "cwl", "cwl-inferred", SUBJECT, "sliding-window")
MARKED_BUDGET: Final = budget_of(60_000, floor=44_000)
MARKS: Final = "marks"
TARGETS: Final = (40_000, 80_000)
COMPACTIONS: Final = tuple(
    replace(when, says=says) for when, says in ((LATE, "brief"), (EARLY, "nothing"), (EARLY, "brief"), (EARLY, "names"))
)
TOGETHER: Final = "together"  # beside the keys of OF_SESSION
EVERYTHING: Final = ("alone", "cuts", "needs", "billed", MARKS, TOGETHER)

NO_CAPS: Final[Mapping[str, int]] = MappingProxyType({})

Progress = Callable[[str, int, int], None]  # what is done, how many of how many
Line = Profile | CutLine | IsolatedRun | AccumulatingRun | MarkedRun | ConversationTask | Needed | Billed


class CorpusJob(Struct, frozen=True, kw_only=True):
    """Something to be done with the members of a corpus that it names."""

    what: str  # a key of OF_SESSION, "layout", MARKS or TOGETHER
    folder: str
    members: tuple[Member, ...]
    tasks: tuple[ConversationTask, ...] = ()  # of a conversation, in the order of its members, sources as members are named
    policy: str = ""  # of a conversation; "none": nothing leaves
    ceiling: int | None = None
    compacting: Compacting | None = None  # instead of a policy
    marks: tuple[Mark, ...] = ()  # of the session

    @property
    def name(self) -> str:
        """As errors call it."""
        if self.what == TOGETHER:
            how = f"compaction at {self.compacting.trigger}, {self.compacting.says}" if self.compacting else self.policy
            return f"conversation {self.tasks[0].conversation}: {how} under {self.ceiling}"
        return "layout of all sessions" if self.what == "layout" else f"{self.what}: {self.members[0].name}"

    @property
    def identity(self) -> str:
        """All but where the corpus lies."""
        return msgspec.json.encode(replace(self, folder="")).decode()


class EvidenceLines(Struct, frozen=True):
    """What came of a job."""

    lines: tuple[Line, ...] = ()


Read = Literal["needed", "not"]
Pair = tuple[Read, Read]


class Label(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What readers said of one need, of one step or of a string of one; `bench/label_harm.py` draws them. No text of a session is in it."""

    round: int  # 1: the extractor as first written; later ones measure what was changed since, on other sessions
    policy: str = ""
    session: str = ""  # start of the sha256 of the unpacked file
    owner: str = ""
    call: int = 0
    entry: int = 0
    need: str = ""  # start of the sha256 of the need's text; empty for a step
    kind: str = ""
    form: str = ""
    part: str = ""
    label: Literal[
        "needed", "not", "step", "pair", "string"
    ]  # pair: of a finding, by two readers; string: of any string of a step, by two
    pair: Pair | None = None
    why: str = ""
    seen: int = 0  # of a step: needs that the reader saw
    found: int = 0  # and those of them that the detector had found; of a string whether it had
    weight: float = 1.0  # strings of its step that a string stands for


class CorpusEvents(Struct, frozen=True, kw_only=True):
    """What came of everything that was run."""

    corpus: Corpus
    code: str  # hash of the code that measured
    profiles: tuple[Profile, ...] = ()
    lines: tuple[Line, ...] = ()  # in an order that does not depend on who measured them when
    labels: tuple[Label, ...] = ()
    failed: tuple[FailedJob, ...] = ()
    marks: str = ""  # hash of the marks that were read; empty for none

    @property
    def events(self) -> tuple[Line, ...]:
        """All that was measured."""
        return (*self.profiles, *self.lines)

    @property
    def tools(self) -> dict[str, str]:
        """The agent of each session."""
        return {member.name: member.tool for member in self.corpus.members}


def labels_of(lines: bytes, where: str) -> tuple[Label, ...]:
    """The labels of a file. Raises InputError with the line that is none."""
    labels: list[Label] = []
    for number, line in enumerate(lines.splitlines(), 1):
        try:
            labels.append(msgspec.json.decode(line, type=Label))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{where}:{number}", f"no label ({error})", "a line of bench/label_harm.py") from error
    return tuple(labels)


def gathered(
    corpus: Corpus,
    whats: Sequence[str],
    engine: Engine,
    *,
    caps: Mapping[str, int] = NO_CAPS,
    marks: MarkBook | None = None,
    keep: ResultFolder | None = None,
    labels: tuple[Label, ...] = (),
    progress: Progress = lambda _what, _done, _of: None,
) -> CorpusEvents:
    """Run what is asked for: first what every section needs, then the rest, longest first.

    `caps`: of each owner at most so many sessions, chosen by hash, for what is to be run; by "" for all that is not named. `marks` are read for all sessions that have some, be they in the sample or not.
    Raises StoreError when `keep` cannot be written.
    """
    failed: list[FailedJob] = []
    every, corpus = (
        corpus,
        replace(sample_of(corpus, 0 if 0 in caps.values() else max(caps.values(), default=0)), cap=caps_text(caps)),
    )

    def run(what: str, jobs: Sequence[CorpusJob]) -> list[tuple[CorpusJob, EvidenceLines]]:
        results = spread(work, jobs, EvidenceLines, engine=engine, keep=keep, progress=lambda done, of: progress(what, done, of))
        pairs = list(zip(jobs, results, strict=True))
        failed.extend(
            replace(each, reason=without_folder(each.reason, corpus.folder)) for _, each in pairs if isinstance(each, FailedJob)
        )
        return [(job, each) for job, each in pairs if isinstance(each, EvidenceLines)]

    seen = run("reading", of_sessions(corpus, ("profile",)))
    profiles = hard_set(line for _, each in seen for line in each.lines if isinstance(line, Profile))
    readable = frozenset(each.source for each in profiles)
    sound = replace(corpus, members=tuple(member for member in corpus.members if member.name in readable))
    tasks: list[ConversationTask] = []
    if TOGETHER in whats and sound.members:
        tasks += laid_out(each for _, each in run("laying out", layouts(sample_of(sound, cap_of(caps, TOGETHER)))))
    annotated = of_marks(every, marks) if marks is not None and MARKS in whats else []
    apart = [job for what in whats if what in OF_SESSION for job in of_sessions(sample_of(sound, cap_of(caps, what)), (what,))]
    done = run("running", [*together(sound, tasks), *annotated, *apart])
    alone = (line for job, each in done if job.what != TOGETHER for line in each.lines)
    return CorpusEvents(
        corpus=corpus,
        code=code_of(work),
        profiles=profiles,
        lines=(*alone, *_conversations(done, len({task.conversation for task in tasks}))),
        labels=labels,
        failed=tuple(failed),
        marks=marks.sha256 if marks is not None else "",
    )


def cap_of(caps: Mapping[str, int], what: str) -> int:
    """How many sessions of an owner something is run for; 0: all."""
    return caps.get(what, caps.get("", 0))


def caps_text(caps: Mapping[str, int]) -> str:
    """Caps as the command line has them."""
    return " ".join(f"--cap {f'{what}={cap}' if what else cap}" for what, cap in caps.items())


def layouts(corpus: Corpus) -> list[CorpusJob]:
    """A layout for each owner: in a conversation of several owners a learned policy would be judged by what it was learned from."""
    owners: dict[str, list[Member]] = {}
    for member in corpus.members:
        owners.setdefault(owner_of(member.name), []).append(member)
    return [CorpusJob(what="layout", folder=corpus.folder, members=tuple(each)) for each in owners.values()]


def laid_out(layouts: Iterable[EvidenceLines]) -> Iterator[ConversationTask]:
    """The tasks of all owners, their conversations numbered on."""
    before = 0
    for each in layouts:
        tasks = [line for line in each.lines if isinstance(line, ConversationTask)]
        yield from (replace(task, conversation=task.conversation + before) for task in tasks)
        before += 1 + max((task.conversation for task in tasks), default=-1)


def of_marks(corpus: Corpus, marks: MarkBook) -> list[CorpusJob]:
    """Each session that has marks. Raises InputError for marks of another version of a session."""
    found = [(member, marks.of(source_of(corpus.folder, member.name))) for member in corpus.members]
    return [CorpusJob(what=MARKS, folder=corpus.folder, members=(member,), marks=each) for member, each in found if each]


def _conversations(done: Iterable[tuple[CorpusJob, EvidenceLines]], count: int) -> Iterator[Line]:
    """By policy and budget, where no conversation is missing: sums over fewer could not be compared."""
    ways: dict[str, dict[int, Line]] = {}
    for job, each in done:
        if job.what == TOGETHER:
            way = f"{job.policy} {job.ceiling} {job.compacting}"
            ways.setdefault(way, {})[job.tasks[0].conversation] = each.lines[0]
    for runs in ways.values():
        if len(runs) == count:
            yield from (runs[number] for number in sorted(runs))


def of_sessions(corpus: Corpus, whats: Sequence[str]) -> list[CorpusJob]:
    """Each of these things with each session."""
    return [CorpusJob(what=what, folder=corpus.folder, members=(member,)) for what in whats for member in corpus.members]


def together(corpus: Corpus, tasks: Sequence[ConversationTask]) -> list[CorpusJob]:
    """Every conversation under every policy and compaction, longest first: what takes longest should not start last."""
    members = {member.name: member for member in corpus.members}
    conversations: dict[int, list[ConversationTask]] = {}
    for task in tasks:
        conversations.setdefault(task.conversation, []).append(task)
    longest = sorted(conversations.values(), key=lambda each: (-sum(task.tokens for task in each), each[0].conversation))
    return [
        CorpusJob(
            what=TOGETHER,
            folder=corpus.folder,
            members=tuple(members[task.source] for task in each),
            tasks=tuple(each),
            policy=policy,
            ceiling=ceiling,
            compacting=compacting,
        )
        for each in longest
        for policy, ceiling, compacting in _ways()
    ]


def _ways() -> Iterator[tuple[str, int | None, Compacting | None]]:
    yield "none", None, None
    yield from (("compaction", compacting.trigger, compacting) for compacting in COMPACTIONS)
    yield from ((policy, ceiling, None) for policy in ALL for ceiling in ceilings_of(policy))


def ceilings_of(policy: str) -> tuple[int, ...]:
    """Under which a policy is run."""
    return SWEEP if policy in SWEPT else (CEILING,)


def work(job: CorpusJob) -> EvidenceLines:
    """A job done. What comes back are numbers under the names of members. Raises InputError when a session of the job cannot be read."""
    tokenizer = o200k()
    if job.what == "layout":
        return EvidenceLines(tuple(_laid_out(job, tokenizer)))
    if job.what == TOGETHER:
        return EvidenceLines((_together(job, tokenizer),))
    if job.what == MARKS:
        return EvidenceLines(tuple(_marked(job, tokenizer)))
    return EvidenceLines(tuple(OF_SESSION[job.what](_read_once(source_of(job.folder, job.members[0].name)), tokenizer)))


def _read_once(one: SessionSource) -> SessionSource:
    """The session, parsed once however often it is replayed."""
    name, events = one.events()
    held = tuple(events)
    return replace(one, events=lambda: (name, iter(held)))


def _profile(one: SessionSource, tokenizer: Tokenizer) -> Iterator[Line]:
    yield profile(one, tokenizer)


def _cuts(one: SessionSource, tokenizer: Tokenizer) -> Iterator[Line]:
    """At each share; at the one of the goals also what takes just as much as each other policy took."""
    policies = {name: policy for name in ALL if (policy := judged(ALL[name], one.path)) is not None}
    for prune in PRUNES:
        beside = {name: policies[name] for name in BESIDE} if prune == PRUNE else {}
        yield from cuts(one, policies, tokenizer, points=POINTS, prune=prune, beside=beside, oracles=True)


def _alone(one: SessionSource, tokenizer: Tokenizer) -> Iterator[Line]:
    """Without eviction, under ceilings, and with targets. Below its limit nothing happens in a session, so it is not run again."""
    free = isolated(one, None, budget_of(None), tokenizer)
    yield free
    targeted = [(name, Budget(target=target, window=UNBOUNDED)) for name in TARGETED for target in TARGETS]
    ceiled = [(name, budget_of(ceiling)) for name in ALL for ceiling in ceilings_of(name)]
    for name, budget in (*ceiled, *targeted):
        if free.measured.peak_view_tokens <= budget.limit:
            yield replace(free, policy=name, budget=limits(budget))
        else:
            yield isolated(one, judged(ALL[name], one.path), budget, tokenizer)


def _needed(one: SessionSource, tokenizer: Tokenizer) -> Iterator[Line]:
    yield Needed(source=one.path, curves=curves(one, tokenizer))


def _billed(one: SessionSource, tokenizer: Tokenizer) -> Iterator[Line]:
    if (compared := compare(one, tokenizer)) is not None:
        yield Billed(compared=compared)


def _laid_out(job: CorpusJob, tokenizer: Tokenizer) -> Iterator[Line]:
    names = {address_of(job.folder, member.name): member.name for member in job.members}
    for tasks in layout_of(names, tokenizer):
        for task in tasks:
            name = names[task.source]
            yield replace(task, source=name, project=name.rpartition("/")[0])


def _together(job: CorpusJob, tokenizer: Tokenizer) -> Line:
    tasks = tuple(replace(task, source=address_of(job.folder, task.source)) for task in job.tasks)
    if job.compacting is not None:
        run = compacted(tasks, job.compacting, tokenizer)
    else:
        run = accumulating(tasks, judged(ALL.get(job.policy), job.members[0].name), budget_of(job.ceiling), tokenizer)
    named = tuple(replace(each, source=task.source) for each, task in zip(run.tasks, job.tasks, strict=True))
    return replace(run, tasks=named)


def _marked(job: CorpusJob, tokenizer: Tokenizer) -> Iterator[Line]:
    """A session with its marks and without, under each policy."""
    plain = _read_once(source_of(job.folder, job.members[0].name))
    variants: tuple[tuple[Literal["plain", "marked"], SessionSource, Annotation], ...] = (
        ("plain", plain, Annotation()),
        ("marked", with_marks := marked(plain, job.marks, tokenizer), _annotation(with_marks, tokenizer)),
    )
    for name in MARKED:
        policy = judged(ALL.get(name), plain.path)
        for variant, one, annotation in variants:
            run = isolated(one, policy, MARKED_BUDGET if policy is not None else budget_of(None), tokenizer)
            yield MarkedRun(**fields_in(run, MarkedRun, policy=name), variant=variant, annotation=annotation)


def _annotation(session: SessionSource, tokenizer: Tokenizer) -> Annotation:
    """What the marks of a marked session weigh."""
    blocks = [block for event in session.events()[1] if isinstance(event, Draft) for block in event.blocks if is_mark(block)]
    return Annotation(
        calls=sum(isinstance(block, ToolCall) for block in blocks),
        refused=sum(isinstance(block, ToolResult) and block.error for block in blocks),
        tokens=sum(tokenizer(block.text) for block in blocks),
    )


# What is done with each session, by name.
OF_SESSION: Final[Mapping[str, Callable[[SessionSource, Tokenizer], Iterator[Line]]]] = MappingProxyType(
    {"profile": _profile, "alone": _alone, "cuts": _cuts, "needs": _needed, "billed": _billed}
)


def judged(policy: Policy | None, member: str) -> Policy | None:
    """The policy for a member of a corpus, whose first folder is its source: see the module's docstring."""
    if not isinstance(policy, GraphPolicy):
        return policy
    weights = _weights().get(owner_of(member))
    return policy if weights is None else replace(policy, weights=weights)


@cache
def _weights() -> dict[str, ModelWeights]:
    held_out = json.loads(files("tenure.lab.evidence").joinpath("held_out.json").read_text(encoding="utf-8"))
    return msgspec.convert(held_out, dict[str, ModelWeights])
