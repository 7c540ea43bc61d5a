"""`tenure mcp`: serve recorded sessions to an agent over the Model Context Protocol."""

from pathlib import Path
from time import monotonic
from typing import Annotated

from tenure.adapters.shelf import Shelf
from tenure.cli.options import EmbeddingsOption, argument, nearness
from tenure.engine.meter.tokens import o200k
from tenure.logs.places.here import here


def mcp(
    places: Annotated[
        list[Path] | None,
        argument("PLACE...", "Stores, session files or folders of them, beside the places of the tools on this machine."),
    ] = None,
    embeddings: EmbeddingsOption = "",
) -> None:
    """Serve the sessions on this machine to an agent: recall, search, audit, why, forget. Speaks MCP on standard input and output.

    Claude Code: claude mcp add --scope user tenure -- tenure mcp

    Codex: codex mcp add tenure -- tenure mcp

    OpenCode, in opencode.json: {"mcp": {"tenure": {"type": "local", "command": ["tenure", "mcp"]}}}
    """
    from tenure.adapters.mcp_server import mcp_server

    mcp_server(Shelf(here(), places or (), o200k(), monotonic, nearness(embeddings))).run("stdio")
