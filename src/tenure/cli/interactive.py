"""`tenure` without a command: the terminal interface, where there is a terminal; else what commands there are."""

from pathlib import Path
from typing import Annotated

import typer

from tenure.cli.talking import is_interactive, talk
from tenure.errors import InputError


def interactive(
    context: typer.Context,
    model: Annotated[
        str, typer.Option("--model", "-m", envvar="TENURE_MODEL", help="openai:NAME, anthropic:NAME or scripted:FILE.")
    ] = "",
    base_url: Annotated[str, typer.Option(help="Where the API is, if not at its owner's.")] = "",
    go_on: Annotated[bool, typer.Option("--continue", "-c", help="Go on with the newest session of this folder.")] = False,
    resume: Annotated[str, typer.Option(metavar="ID", help="Go on with this session.")] = "",
    store: Annotated[str, typer.Option(help="Where sessions are kept: a file, or a database's URL.")] = "",
    approve: Annotated[str, typer.Option(help="What may be done unasked: ask, edits, all or read-only.")] = "ask",
    sandbox: Annotated[bool, typer.Option("--sandbox", help="Shut commands in (bubblewrap).")] = False,
    mcp: Annotated[Path | None, typer.Option(help="A file of MCP servers.", metavar="FILE")] = None,
    helper: Annotated[
        str, typer.Option(envvar="TENURE_HELPER", help="The model that finds titles; by default the one you talk with.")
    ] = "",
    policy: Annotated[str, typer.Option(help="What leaves the window: provenance, cwl, tiered, none.")] = "",
    target: Annotated[str, typer.Option(help="Act above this when it pays, such as 80k or 50%.")] = "",
    ceiling: Annotated[str, typer.Option(help="Never send more than this.")] = "",
    light: Annotated[bool, typer.Option("--light", help="Dark letters on a light ground.")] = False,
) -> None:
    """Manage the life of everything in an LLM agent's context window. Without a command: talk with the agent."""
    if context.invoked_subcommand is not None:
        return
    if not is_interactive():
        typer.echo(context.get_help())
        raise typer.Exit(2)  # wrong usage, as it is for any command that lacks something
    from tenure.agent.approval import Mode
    from tenure.agent.settings import Settings
    from tenure.cli.run import budget_of
    from tenure.policies import DEFAULT

    if approve not in tuple(Mode):
        raise InputError("--approve", repr(approve), ", ".join(Mode))
    settings = Settings(
        folder=Path.cwd(),
        model=model,
        base_url=base_url,
        resume=resume,
        newest=go_on,
        store=store,
        budget=budget_of(model, base_url, target, ceiling, ""),
        policy=policy or DEFAULT,
        helper=helper,
        mode=Mode(approve),
        sandbox=sandbox,
        servers=mcp,
    )
    if code := talk(settings, light=light):
        raise typer.Exit(code)
