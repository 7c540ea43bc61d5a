"""`tenure wrap`: an agent of somebody else's behind a gateway of its own."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer
from rich.console import Console

from tenure.cli import words
from tenure.cli.options import Bridge, LimitOptions, argument, flag, option
from tenure.engine.policies import DEFAULT, PolicyName, policy_named
from tenure.errors import InputError

if TYPE_CHECKING:
    from tenure.engine.lifecycle.budget import Budget
    from tenure.gateway.settings import GatewayMode
    from tenure.gateway.wrapping import Outcome, Wrapped

CLOSE: Final = 0.5  # of a ceiling: an agent whose first request takes more has too little room left


def wrap(
    command: Annotated[
        list[str], argument("PROGRAM [ARGUMENTS]...", "claude, codex, opencode, pi, gemini, mini, aider, or any command.")
    ],
    *,
    on: Annotated[bool, flag("--on", "Let what is no longer needed leave. Without it nothing is changed.")] = False,
    through: Annotated[bool, flag("--pass", "Relay only: record nothing either.")] = False,
    limits: LimitOptions,
    policy: Annotated[str, option("NAME", "What decides what leaves.")] = DEFAULT,
    upstream: Annotated[list[str] | None, option("NAME=URL", "Where a provider's requests go instead; may be repeated.")] = None,
    bridge: Bridge = False,
    store: Annotated[Path | None, option("FOLDER", "Where conversations are kept.")] = None,
    quiet: Annotated[bool, flag("--quiet", "Print nothing at the end.", "-q")] = False,
) -> None:
    """Start an agent behind a gateway on this machine, and say at the end what that did.

    Only its environment and arguments point it there; nothing of its configuration is changed. By default it runs in shadow: not a byte of its
    requests is changed, and the report says what would have left, when, at what price, and what of it was needed later. The exit code is the
    agent's own.
    """
    from tenure.context.exchange import Management
    from tenure.gateway.home import default_folder
    from tenure.gateway.settings import GatewaySettings, upstreams_of
    from tenure.gateway.wrapping import run_wrapped

    policy_named(policy)  # which says so where there is none
    if on and through:
        raise InputError("--on", "together with --pass", "one of them")
    mode: GatewayMode = "on" if on else "pass" if through else "shadow"
    folder = store or default_folder(os.environ)
    settings = GatewaySettings(
        mode=mode,
        management=Management(budget=limits.budget(usual="target"), policy=cast(PolicyName, policy)),
        upstreams=upstreams_of(upstream or ()),
        bridge=bridge,
    )
    done = run_wrapped(command, settings, folder, os.environ)
    if not quiet:
        console = words.screen(stderr=True)
        _tell(done, mode, folder, limits, policy, console)
    raise typer.Exit(done.code)


def _tell(done: "Wrapped", mode: "GatewayMode", folder: Path, limits: LimitOptions, policy: str, console: Console) -> None:
    """What the gateway did, in one line; in shadow also what it would have done."""
    from tenure.gateway.home import STORE
    from tenure.gateway.wrapping import outcome_of
    from tenure.store.store import Store

    requests, failed = done.counts.get("requests", 0), _passed(done)
    if done.untraced:
        console.print(f"tenure: no spans were sent: {done.untraced}", style="yellow", soft_wrap=True)
    if not requests:
        console.print("tenure: the agent sent no request to the gateway; tenure doctor looks for the reason", style="yellow")
        return
    if mode == "pass" or not done.conversations:
        console.print(f"tenure: {words.several(requests, 'request')} relayed, nothing recorded{failed}", style="dim")
        return
    path = folder / STORE
    held = Store(f"sqlite:///{path}", read_only=True)
    try:
        found = outcome_of(held, done.conversations)
    finally:
        held.close()
    used = found.account.usage
    cached = f" ({words.share(used.cache_read / used.prompt)} from the cache)" if used.prompt else ""
    bill = f"{words.several(found.account.calls, 'call')}, {words.short(used.prompt)} tokens in{cached}, {words.short(used.output)} out, {words.spent(found.account.usd, found.account.unpriced)}"
    if mode == "shadow":
        console.print(f"tenure: {bill}; in shadow, nothing was changed{failed}", soft_wrap=True, highlight=False)
        _warn(found.begun, limits.budget(usual="target"), console)
        _shadow(path, done.conversations, limits, policy, console)
        return
    console.print(f"tenure: {bill}; {_effect(found)}{failed}", soft_wrap=True, highlight=False)
    _warn(found.begun, limits.budget(usual="target"), console)
    console.print(f"tenure show {path}#{done.conversations[0][:8]} has more", style="dim", soft_wrap=True)


def _warn(begun: int, budget: "Budget", console: Console) -> None:
    """Say of a ceiling that the agent's own instructions and tools nearly fill that nothing is to be won under it."""
    if budget.ceiling is not None and begun > budget.ceiling * CLOSE:
        text = f"the agent's first request has {words.short(begun)} tokens, its own instructions and tools mostly: a ceiling of {words.short(budget.ceiling)} leaves so little room that it is passed again and again, at a cost each time"
        console.print(f"{text}; --ceiling {words.short(3 * begun)}, or --target, does better", style="yellow", soft_wrap=True)


def _effect(found: "Outcome") -> str:
    """What eviction did: the bill as it was reported, beside a simulation in which nothing left."""
    if not found.savings:
        return "nothing left: no prompt passed the limit, or what could leave would not have paid"
    assumed = any(not each.is_priced for each in found.savings)
    without = words.money(found.without_usd, assumed=assumed)
    forced = f", {found.forced:,} of them forced by a ceiling or the window whatever the price" if found.forced else ""
    text = f"{words.several(found.commits, 'commit')}{forced}, {words.short(abs(found.spared))} tokens {'fewer' if found.spared >= 0 else 'more'} in prompts"
    text += f"; had nothing left, a simulated {without} against {words.money(found.sent_usd, assumed=assumed)}"
    text += f"; missed {found.missed:,}" + (f", to {found.routed:,} of which a pointer led" if found.routed else "")
    return text + (
        f", recalled {found.recalls:,} ({words.short(found.recalled)} tokens)" if found.recalls else ", nothing was recalled"
    )


def _shadow(path: Path, conversations: Sequence[str], limits: LimitOptions, policy: str, console: Console) -> None:
    """What would have left each conversation that passed its limit: a replay of what was recorded."""
    from tenure.cli.replay import play, report
    from tenure.engine.lifecycle.budget import GateRule
    from tenure.lab.loading import source
    from tenure.lab.replay import Options

    options = Options(budget=limits.budget(usual="target"), policy=policy_named(policy), gate=GateRule.BOUNDED, head=None)
    silent = Console(quiet=True)
    for conversation in conversations:
        name = f"{path}#{conversation}"
        run = play([source(name)], (f"conversation {conversation[:8]}",), options, silent)
        if run.commits:
            console.print(report(run))
        else:
            console.print(
                f"conversation {conversation[:8]}: nothing would have left; its largest request has {words.short(max(run.windows, default=0))} tokens",
                style="dim",
            )
    console.print("tenure wrap --on does it", style="dim")


def _passed(done: "Wrapped") -> str:
    """Requests that could not be managed, as far as there were any."""
    counts = {
        what: done.counts[what]
        for what in ("took too long to find", "could not be managed", "could not be recorded", "upstream failures")
        if done.counts.get(what)
    }
    return "".join(f"; {count:,} {what}" for what, count in counts.items())
