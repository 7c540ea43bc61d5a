"""`tenure` without a command: the terminal interface, where there is a terminal; else what commands there are."""

from pathlib import Path
from typing import Annotated

import typer

import tenure
from tenure.cli.asked import (
    AllowOutside,
    Approve,
    BaseUrl,
    Continue,
    FollowLinks,
    Light,
    Limit,
    Mcp,
    Model,
    ModelWindow,
    NoSnapshots,
    PolicyName,
    Resume,
    SandboxOn,
    StoreAt,
    Target,
    model_of,
)
from tenure.cli.talking import is_interactive, talk
from tenure.errors import InputError


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tenure {tenure.__version__}")
        raise typer.Exit


def _require_bare(context: typer.Context) -> None:
    """Raise InputError for options in front of a command, which would have no effect there."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            command = context.invoked_subcommand
            raise InputError(
                parameter.opts[0], f"before the command {command!r}", f"it behind: tenure {command} {parameter.opts[0]} …"
            )


def interactive(
    context: typer.Context,
    model: Model = "",
    base_url: BaseUrl = "",
    go_on: Continue = False,
    resume: Resume = "",
    store: StoreAt = "",
    approve: Approve = "ask",
    sandbox: SandboxOn = False,
    network: Annotated[bool, typer.Option("--network", help="Allow the network in the sandbox.")] = False,
    allow_outside: AllowOutside = False,
    no_snapshots: NoSnapshots = False,
    follow_links: FollowLinks = False,
    mcp: Mcp = None,
    helper: Annotated[
        str,
        typer.Option(metavar="MODEL", envvar="TENURE_HELPER", help="The model that writes session titles. Default: --model."),
    ] = "",
    policy: PolicyName = "",
    target: Target = "",
    ceiling: Limit = "",
    window: ModelWindow = "",
    light: Light = False,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """A terminal agent and tools that manage an LLM agent's context window.

    `tenure` alone opens the agent. `tenure run "TASK"` does one task without a screen.
    """
    if context.invoked_subcommand is not None:
        _require_bare(context)
        return
    if not is_interactive():
        typer.echo(context.get_help())
        raise typer.Exit(2)  # wrong usage, as it is for any command that lacks something
    from tenure.agent.approval import Mode
    from tenure.agent.settings import Settings
    from tenure.cli.run import budget_of

    if approve not in tuple(Mode):
        raise InputError("--approve", repr(approve), ", ".join(Mode))
    model = model_of(context, model, going_on=bool(go_on or resume))
    settings = Settings(
        folder=Path.cwd(),
        model=model,
        base_url=base_url,
        resume=resume,
        newest=go_on,
        store=store,
        budget=budget_of(model, base_url, target, ceiling, window),
        policy=policy,
        helper=helper,
        mode=Mode(approve),
        sandbox=sandbox,
        network=network,
        allow_outside=allow_outside,
        snapshots=not no_snapshots,
        follow_links=follow_links,
        servers=mcp,
    )
    if code := talk(settings, light=light):
        raise typer.Exit(code)
