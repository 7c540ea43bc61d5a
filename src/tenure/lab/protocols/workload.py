"""What kind of work a session is, by rules that count, and which sessions are hard.

A session's tool uses are counted by what they are for, by the tool's name; where a log has no calls, by the reply and what came back for it.
The first rule of a table that holds gives the class.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.meter.tokens import Tokenizer
from tenure.engine.record.objects import tool_key, tool_name
from tenure.engine.record.tools import ACTS, Act
from tenure.engine.view.edit import Drop, Replace
from tenure.lab.events import BlockLine, CallLine, CommitLine, EntryLine, ReplayLine, SummaryLine
from tenure.lab.measured import Profile, Workload
from tenure.lab.protocols.runs import unbounded
from tenure.lab.source import SessionSource

HARD_SHARE: Final = 0.1  # of a corpus, as 33 of 332 sessions in the Self-GC paper (table 1)
LEAST_HARD: Final = 10  # sessions
HARD_RESULTS: Final = 0.5  # of a hard session's tokens, at least, are tool results


class UseKind(StrEnum):
    """What a tool use is for."""

    EDIT = "edit"
    WRITE = "write"
    READ = "read"
    SEARCH = "search"
    COMMAND = "command"
    WEB = "web"
    PLAN = "plan"  # task lists, thinking aloud, questions to the user
    AGENT = "agent"  # other agents
    OTHER = "other"


_USE_OF: Final = {
    **dict.fromkeys((Act.EDIT, Act.PATCH, Act.EDITOR, Act.DELETE), UseKind.EDIT),
    **dict.fromkeys((Act.WRITE, Act.CREATE), UseKind.WRITE),
    Act.READ: UseKind.READ,
    **dict.fromkeys((Act.SEARCH, Act.LIST, Act.LOOK_UP), UseKind.SEARCH),
    **dict.fromkeys((Act.RUN, Act.PROCESS), UseKind.COMMAND),
    **dict.fromkeys((Act.FETCH, Act.SEARCH_WEB), UseKind.WEB),
    **dict.fromkeys((Act.PLAN, Act.TODO), UseKind.PLAN),
    Act.AGENT: UseKind.AGENT,
}
USES: Final[Mapping[str, UseKind]] = {
    **{name: _USE_OF[act] for name, act in ACTS.items()},
    **dict.fromkeys(("taskoutput", "taskstop"), UseKind.AGENT),
}
_BROWSERS: Final = ("browser", "playwright", "web_browser", "chrome", "puppeteer")  # in a tool's name or its server's
_LOOKS: Final = re.compile(r'"command"\s*:\s*"view"')  # of an editor of several commands
_CHANGES: Final = re.compile(
    r"\bsed -i\b|\bcat\s*(?:<<|>)|\bgit apply\b|\bapply_patch\b|\btee\b|\*\*\* Begin Patch|<{5,9} SEARCH|^edit \d+:\d+|^create \S",
    re.MULTILINE,
)
_LOOKED_AT: Final = 20_000  # characters of a text that are searched for these
_ADDRESS_WITHIN: Final = 2_000  # characters of what came back, in which a web address says that it came from the web


class WorkloadRule(Struct, frozen=True):
    """A rule of the table: the class, and what must be so."""

    workload: Workload
    says: str
    holds: Callable[["Counted"], bool]


class Counted(Struct, frozen=True, kw_only=True):
    """What rules look at: uses by purpose, and how often a person spoke."""

    uses: Mapping[UseKind, int]
    human_turns: int

    def share(self, *uses: UseKind) -> float:
        """Of the uses that touch the world; planning and other agents do not count."""
        work = sum(count for use, count in self.uses.items() if use not in (UseKind.PLAN, UseKind.AGENT))
        return sum(self.uses.get(use, 0) for use in uses) / work if work else 0.0

    def count(self, *uses: UseKind) -> int:
        """How many there are."""
        return sum(self.uses.get(use, 0) for use in uses)


# The first that holds decides; the last holds always.
RULES: Final = (
    WorkloadRule(Workload.TALK, "fewer than 4 tool uses", lambda seen: seen.count(*UseKind) < 4),
    WorkloadRule(Workload.WEB, "a quarter of the uses are of the web or a browser", lambda seen: seen.share(UseKind.WEB) >= 0.25),
    WorkloadRule(
        Workload.DIALOGUE,
        "half of the uses are of tools of a domain, and a person spoke 3 times or more",
        lambda seen: seen.share(UseKind.OTHER) >= 0.5 and seen.human_turns >= 3,
    ),
    WorkloadRule(
        Workload.CODING,
        "3 uses or more, and a tenth, change files",
        lambda seen: seen.count(UseKind.EDIT, UseKind.WRITE) >= 3 and seen.share(UseKind.EDIT, UseKind.WRITE) >= 0.1,
    ),
    WorkloadRule(Workload.COMMANDS, "half of the uses are commands", lambda seen: seen.share(UseKind.COMMAND) >= 0.5),
    WorkloadRule(
        Workload.READING, "half of the uses read or search", lambda seen: seen.share(UseKind.READ, UseKind.SEARCH) >= 0.5
    ),
    WorkloadRule(Workload.MIXED, "none of the others", lambda _: True),
)


def profile(source: SessionSource, tokenizer: Tokenizer) -> Profile:
    """A session counted and classed; `is_hard` is for `hard_set` to say. One pass. Raises InputError when it cannot be read."""
    counting = _Counting()
    for line in unbounded(source, tokenizer):
        counting.take(line)
    return counting.profile(source.path)


def hard_set(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """The same profiles with the hard ones marked.

    Hard are the tenth, but at least LEAST_HARD, with the most tool results in the window on average, of those that are mostly tool results.
    """
    every = tuple(profiles)
    ranked = sorted(
        (each for each in every if each.result_share >= HARD_RESULTS), key=lambda each: (-each.pressure_tokens, each.source)
    )
    hard = {each.source for each in ranked[: max(LEAST_HARD, round(len(every) * HARD_SHARE))]}
    return tuple(replace(each, is_hard=each.source in hard) for each in every)


def use_of(tool: str, arguments: str = "") -> UseKind:
    """What a call of a tool is for. A command that changes files counts as an edit."""
    name = tool_name(tool)
    use = USES.get(name)
    if use is None:
        return UseKind.WEB if any(browser in tool_key(tool) for browser in _BROWSERS) else UseKind.OTHER
    if use is UseKind.EDIT and _LOOKS.search(arguments[:_LOOKED_AT]):
        return UseKind.READ
    if use is UseKind.COMMAND and _CHANGES.search(arguments[:_LOOKED_AT]):
        return UseKind.EDIT
    return use


class _Counting:
    """A session counted as its lines come. Mutable."""

    def __init__(self) -> None:
        self._format = ""
        self._uses: Counter[UseKind] = Counter()
        self._entries = self._replies = self._turns = self._tokens = self._results = self._peak = 0
        self._shown = 0  # tokens of tool results in the window
        self._pressure = 0
        self._weights: dict[tuple[int, int], int] = {}  # of tool results in the window
        self._said = ""  # by the newest reply, if it made no calls

    def take(self, line: object) -> None:
        """The next line."""
        match line:
            case ReplayLine():
                self._format = line.sources[0].format
            case EntryLine():
                self._entry(line)
            case CommitLine():
                for edit in line.edits:
                    if isinstance(edit, Drop | Replace):
                        self._shown -= self._weights.pop((edit.entry, edit.block), 0)
            case CallLine():
                self._replies += 1
                self._pressure += self._shown
            case SummaryLine():
                self._peak = line.peak_view_tokens
            case _:
                pass

    def profile(self, source: str) -> Profile:
        """What was counted, and the class."""
        counted = Counted(uses=self._uses, human_turns=self._turns)
        rule = next(rule for rule in RULES if rule.holds(counted))
        return Profile(
            source=source,
            format=self._format,
            workload=rule.workload,
            rule=rule.says,
            entries=self._entries,
            replies=self._replies,
            human_turns=self._turns,
            tokens=self._tokens,
            result_tokens=self._results,
            result_share=self._results / self._tokens if self._tokens else 0.0,
            peak_tokens=self._peak,
            pressure_tokens=self._pressure / self._replies if self._replies else 0.0,
            uses={str(use): count for use, count in sorted(self._uses.items(), key=lambda item: (-item[1], item[0]))},
        )

    def _entry(self, line: EntryLine) -> None:
        self._entries += 1
        self._turns = max(self._turns, line.turn)
        for number, block in enumerate(line.blocks):
            tokens = block.tokens or 0
            self._tokens += tokens
            if block.kind == "tool_result" or (block.kind == "text" and block.origin == "tool"):
                self._results += tokens
                self._shown += tokens
                self._weights[line.entry, number] = tokens
            self._used(block)
        if line.role == "assistant":
            calls = any(block.kind == "tool_call" for block in line.blocks)
            self._said = "" if calls else "\n".join(block.text or "" for block in line.blocks if block.kind == "text")

    def _used(self, block: BlockLine) -> None:
        """A call, or in a log without calls what came back for a reply; a reply that edits by itself counts too."""
        text = block.text or ""
        if block.kind == "tool_call":
            self._uses[use_of(block.name or "", text)] += 1
        elif block.kind == "text" and block.origin == "tool":
            self._uses[_use_in_words(self._said, text)] += 1
            self._said = ""


def _use_in_words(said: str, came_back: str) -> UseKind:
    if _CHANGES.search(said[:_LOOKED_AT]):
        return UseKind.EDIT
    return UseKind.WEB if "://" in came_back[:_ADDRESS_WITHIN] else UseKind.COMMAND
