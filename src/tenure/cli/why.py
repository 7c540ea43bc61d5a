"""`tenure why`: why something stands in the window as it does."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text

from tenure.cli import words
from tenure.cli.options import SESSION_HELP, LimitOptions, PricedAs, argument, flag, option
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import DEFAULT, UNBOUNDED, policy_named
from tenure.engine.policies.policy import Policy
from tenure.engine.record.visible import json_of, visible_json
from tenure.engine.view.edit import Commit
from tenure.errors import InputError
from tenure.lab.loading import own_address, own_store, source
from tenure.lab.replay import Options
from tenure.lab.why.explain import ObjectAccount, explain
from tenure.lab.why.past import Past, kept, moment, replayed
from tenure.lab.why.telling import facts, rows, title


def why(
    *,
    sessions: Annotated[list[str], argument("SESSION...", SESSION_HELP)],
    object_: Annotated[
        str,
        argument(
            "OBJECT",
            "A handle: read:12, read:12@3fa9, user:3, step:17, episode:locate-auth, skill:release, entry:40 or entry:40/1.",
        ),
    ],
    policy: Annotated[
        str, option("NAME", f"The policy to ask. Default: {DEFAULT}, or the one that the store's commits name.")
    ] = "",
    limits: LimitOptions,
    model: PricedAs = "",
    at_call: Annotated[int | None, option("N", "Before call N, counted from 0. Default: at the end.")] = None,
    json: Annotated[bool, flag("--json", "Print JSON.")] = False,
) -> None:
    """Explain why an object is shown, shortened or gone: its commits, what protects it, what the policy would do next.

    A Tenure store is explained as it is; any other session as a replay under the given policy and budget.

    Exit codes: 0 done, 2 bad input.
    """
    if ":" in sessions[0] and not _is_file(sessions[0]) and _is_file(object_.partition("#")[0]):
        right = shlex.join([*sessions[1:], object_, sessions[0]])
        raise InputError("why", "an object before the session", f"tenure why {right}")
    past = _past(sessions, policy, limits, model)
    answer = explain(moment(past, o200k(), at_call), object_, shlex.join(sessions))
    if json:
        sys.stdout.buffer.write(visible_json(msgspec.json.format(json_of(answer), indent=2)) + b"\n")
        sys.stdout.buffer.flush()
        return
    console = words.screen()
    console.print(screen(answer, console.width))


def screen(answer: ObjectAccount, width: int) -> RenderableType:
    """The whole answer."""
    lines = ((row.label, Text(words.plain(row.text), style="dim" if row.quoted else "")) for row in rows(answer, width))
    head = Text.assemble(
        (words.plain(answer.thing.handle), "bold"), "  ", title(answer, width), no_wrap=True, overflow="ellipsis"
    )
    return Group("", head, Text(facts(answer), style="dim"), "", words.facts(lines, fold=True))


def _past(sessions: list[str], policy: str, limits: LimitOptions, model: str) -> Past:
    if len(sessions) == 1 and (address := own_address(sessions[0])) is not None:
        with own_store(*address) as (store, held):
            budget = limits.budget() if limits != LimitOptions() else None
            return kept(store, held, _policy(policy, held.terms, store.commits(held.id)), budget)
    options = Options(
        budget=limits.budget(usual="" if policy == UNBOUNDED else "ceiling"),
        policy=policy_named(policy or DEFAULT),
        model=model,
        head=None,
    )
    return replayed([source(name) for name in sessions], options, o200k())


def _policy(name: str, terms: str, commits: tuple[Commit, ...]) -> Policy | None:
    """The policy that is asked: the one named, else the conversation's own, else that of the newest commit that a policy of ours made."""
    if terms and not name:
        with suppress(InputError):  # an object of a host's
            return Terms.stored(terms).policy_object("")
    for commit in () if name else reversed(commits):
        with suppress(InputError):  # by hand, a plan, an admission
            return policy_named(commit.policy)
    return policy_named(name or DEFAULT)


def _is_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except (OSError, ValueError):
        return False
