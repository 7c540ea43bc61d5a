"""`tenure judge`: whether what a policy takes at a cut is missed, by a model that reads what really came; and how good a judge that model is."""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Annotated, Final

import msgspec
import typer
from msgspec import Struct

from tenure.cli import words
from tenure.cli.judge_screen import JudgeScope, forecast, report
from tenure.cli.named_models import BATCH, KINDS, STAND_IN, answering, model_for
from tenure.cli.options import SESSION_HELP, STDOUT, Quiet, argument, flag, option, output
from tenure.engine.lifecycle.budget import parse_tokens
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import DEFAULT, PEERS, POLICIES, policy_named
from tenure.engine.policies.policy import Policy
from tenure.errors import InputError
from tenure.lab.cuts import LEAST_CALLS, LEAST_TOKENS, POINTS, PRUNE
from tenure.lab.events import spelled
from tenure.lab.judges.cases import Case, cases
from tenure.lab.judges.contracts import AB, NO_IMPACT
from tenure.lab.judges.figures import figures
from tenure.lab.judges.request import LEAST_ROOM, ROOM
from tenure.lab.judges.running import Book, Judge, JudgeCost, Outcome, foreseen, run
from tenure.lab.judges.stand_in import NAME as STAND_IN_NAME
from tenure.lab.judges.stand_in import DetectorJudge
from tenure.lab.loading import source
from tenure.lab.planner import SELFGC, PlannerPolicy
from tenure.models.batch import BatchModel

PAIRS: Final = 1  # of controls, in each session
VERSION: Final = 1  # of the lines that --json writes
_DECIDES: Final = f"The policy to judge: {', '.join(POLICIES)}; for comparison {', '.join(PEERS)}."


class JudgeLine(Struct, frozen=True, kw_only=True, tag="judge", tag_field="type"):
    """The first line of what --json writes; then a line for each outcome, and last the summary."""

    version: int = VERSION
    model: str
    contracts: tuple[str, ...]
    policies: tuple[str, ...]
    sessions: tuple[str, ...]
    cuts: int
    prune: float
    controls: int
    room: int


def judge(
    sessions: Annotated[list[str], argument("SESSION...", SESSION_HELP)],
    model: Annotated[str, option("MODEL", f"The judge: {KINDS}.", "--model", "-m")],
    policy: Annotated[str, option("NAME", _DECIDES)] = DEFAULT,
    against: Annotated[str, option("NAME", "A second policy; where verdicts differ, both are compared (A/B).")] = "",
    cuts: Annotated[int, option("N", "Cuts of each session, evenly spread over its calls.", min=1, max=100)] = POINTS,
    prune: Annotated[str, option("SHARE", "The share of the view that leaves at each cut.")] = str(PRUNE),
    planner: Annotated[str, option("MODEL", f"Judge plans of this model (Self-GC) as the policy {SELFGC}: {KINDS}.")] = "",
    controls: Annotated[
        int, option("N", "Pairs of controls in each session, which measure the judge; 0: none.", min=0, max=100)
    ] = PAIRS,
    room: Annotated[str, option("TOKENS", "The largest question, such as 100k.")] = f"{ROOM // 1000}k",
    verdicts: Annotated[str, option("FILE", "Keep verdicts in this file; those it holds are not asked again.")] = "",
    json: Annotated[str, option("FILE", "Write every outcome as JSON lines (- for standard output).")] = "",
    dry_run: Annotated[bool, flag("--dry-run", "Print what would be asked, and ask nothing.")] = False,
    quiet: Quiet = False,
) -> None:
    """Ask a model whether recorded sessions could have gone on as they did after a policy's eviction.

    The no-impact and A/B judges of the Self-GC paper, held against the mechanical detector and against controls whose answer is known.

    Exit codes: 0 done, 1 some case has no verdict or a file could not be written, 2 bad input.
    """
    plans = _planner(planner)
    policies = _policies(policy, against, plans)
    size = parse_tokens("--room", room, of=None)
    if size < LEAST_ROOM:
        raise InputError("--room", repr(room), f"at least {LEAST_ROOM:,} tokens")
    share = _share(prune)
    sources = [source(name) for name in sessions]
    # Of a dry run nobody is asked, so no key is wanted.
    chosen = (
        DetectorJudge()
        if dry_run and ":" in model and not model.startswith(BATCH)
        else model_for("--model", model, DetectorJudge())
    )
    name = STAND_IN_NAME if model == STAND_IN else chosen.name if isinstance(chosen, BatchModel) else model
    console = words.screen(stderr=json == STDOUT, quiet=quiet)
    count = o200k()
    asked = JudgeScope(model=name, sessions=tuple(map(spelled, sessions)), cuts=cuts, prune=share, room=size)
    pair = (policy, against) if against else None
    unread: list[str] = []

    def every_case() -> Iterator[Case]:
        """A session that cannot be read is noted, and does not cost the others their verdicts."""
        for one in sources:
            try:
                yield from cases(one, policies, count, points=cuts, prune=share, pairs=controls)
            except InputError as error:
                unread.append(spelled(str(error)))

    with (
        answering(console, chosen, plans.model if plans is not None else None),
        Book(verdicts) as book,
        output(json) as out,
    ):
        judging = Judge(model=chosen, name=name, count=count, room=size)
        if dry_run:
            console.print(forecast(asked, foreseen(every_case(), judging, book), unread))
            return

        def write(line: Struct) -> None:
            if out is not None:
                out.write(msgspec.json.encode(line) + b"\n")

        write(
            JudgeLine(
                model=name,
                contracts=(NO_IMPACT.version, *((AB.version,) if against else ())),
                policies=tuple(policies),
                sessions=asked.sessions,
                cuts=cuts,
                prune=share,
                controls=controls,
                room=size,
            )
        )
        outcomes: list[Outcome] = []
        spent = JudgeCost()
        with console.status("") if console.is_terminal and not quiet else nullcontext() as status:
            for outcome in run(every_case(), judging, book, against=pair):
                outcomes.append(outcome)
                spent += outcome.spent
                write(outcome)
                if status is not None:
                    status.update(f"{len(outcomes)} judged, {words.spent(spent.usd, spent.unpriced)} so far")
        if not outcomes and not unread:
            raise InputError(
                "judge", "no session long enough to be cut", f"{LEAST_CALLS} calls, and {LEAST_TOKENS:,} tokens at a cut"
            )
        found = figures(outcomes, pair)
        write(found)
        console.print(report(found, asked, unread, book))
    if unread:
        for each in unread if quiet else ():  # else the report has them
            words.complain(f"tenure: {each}")
        raise typer.Exit(2)
    if any(outcome.failure is not None for outcome in outcomes):
        raise typer.Exit(1)


def _planner(name: str) -> PlannerPolicy | None:
    from tenure.lab.planner import PLANNER

    return PlannerPolicy(model=model_for("--planner", name, PLANNER)) if name else None


def _policies(first: str, second: str, planner: PlannerPolicy | None) -> dict[str, Policy]:
    """The policies by name. Raises InputError for one that takes nothing, or twice the same."""
    found: dict[str, Policy] = {}
    for place, name in (("--policy", first), ("--against", second)):
        if not name and place == "--against":
            continue
        policy = planner if planner is not None and name == SELFGC else policy_named(name)
        if policy is None:
            raise InputError(place, repr(name), "a policy that takes something")
        if name in found:
            raise InputError(place, f"{name!r} again", "another policy than --policy")
        found[name] = policy
    return found


def _share(text: str) -> float:
    """A share such as 0.45 or 45%. Raises InputError for anything else."""
    plain = text.strip()
    try:
        share = float(plain.removesuffix("%")) / (100 if plain.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise InputError("--prune", repr(text), "a share above 0 and below 1, such as 0.45 or 45%")
    return share
