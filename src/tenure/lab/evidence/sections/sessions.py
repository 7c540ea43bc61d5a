"""The corpus: what kind of work its sessions are, by rules that count, and which of them are the hard ones."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from tenure.lab.events import Profile
from tenure.lab.evidence.page import Section, Table, count, percent, several
from tenure.lab.protocols.workload import RULES

NAME: Final = "sessions"
SHOWS: Final = (
    "Every figure is of these sessions. A session's class is told by the first rule that holds; *hard* are the tenth (at least ten) with "
    "the most tool results in the window. What it does not show: a sample of all agents' work. Most of the sessions are software work in English, "
    "and some agents are missing."
)


def groups_of(profiles: Sequence[Profile]) -> dict[str, frozenset[str]]:
    """Names of sessions by class, in the order of the rules, then the hard ones."""
    groups = {str(rule.workload): frozenset(each.source for each in profiles if each.workload is rule.workload) for rule in RULES}
    groups["hard"] = frozenset(each.source for each in profiles if each.is_hard)
    return {name: found for name, found in groups.items() if found}


def section(profiles: Sequence[Profile], tools: Mapping[str, str]) -> Section:
    """The section; `tools` names the agent of each session."""
    tokens = sum(each.tokens for each in profiles)
    lead = f"{several(len(profiles), 'session')} of {several(len(set(tools.values())), 'agent')}, {count(tokens)} tokens."
    classes = _table(
        "By kind of work", ":class", profiles, lambda each: str(each.workload), [str(rule.workload) for rule in RULES]
    )
    hard = _table("The hard set", ":class", [each for each in profiles if each.is_hard], lambda _: "hard", ["hard"])
    agents = sorted(set(tools.values()))
    rules = Table(
        title="The rules",
        head=(":class", ":when"),
        rows=tuple((str(rule.workload), rule.says) for rule in RULES),
        note="In this order; the first that holds decides.",
    )
    return Section(
        name=NAME,
        title="The sessions",
        lead=lead,
        shows=SHOWS,
        parts=(classes, hard, _table("By agent", ":agent", profiles, lambda each: tools[each.source], agents), rules),
        rows=b"".join(msgspec.json.encode(each) + b"\n" for each in profiles),
    )


def _table(title: str, head: str, profiles: Sequence[Profile], name: Callable[[Profile], str], order: Sequence[str]) -> Table:
    by_name = {each: [found for found in profiles if name(found) == each] for each in order}
    return Table(
        title=title,
        head=(head, "sessions", "tokens", "of it tool results", "replies", "human turns", "largest window"),
        rows=tuple(
            (
                each,
                count(len(found)),
                count(sum(one.tokens for one in found)),
                percent(sum(one.result_tokens for one in found) / max(1, sum(one.tokens for one in found))),
                count(sum(one.replies for one in found)),
                count(sum(one.human_turns for one in found)),
                count(max(one.peak_tokens for one in found)),
            )
            for each, found in by_name.items()
            if found
        ),
    )
