"""`tenure serve`: stand between agents and their providers."""

import asyncio
import gc
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from tenure.cli.options import Bridge, Target, flag, option
from tenure.context.exchange import Management
from tenure.engine.lifecycle.budget import USUAL, Budget
from tenure.engine.policies import PolicyName, policy_named
from tenure.errors import InputError
from tenure.logs.places.files import read_file

if TYPE_CHECKING:
    from tenure.gateway.service import GatewayService

PORT: Final = 8787
MEMORY: Final = "memory"
IN_MEMORY: Final = "sqlite://"
DRAIN_S: Final = 30.0
MOST_TOKENS: Final = 2**20  # bytes of a file of client tokens
_THRESHOLD: Final = 100_000  # objects made between two collections: a collection looks at every conversation in memory


def serve(
    host: Annotated[str, option("ADDRESS", "Where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535)] = PORT,
    mode: Annotated[
        str,
        option(
            "MODE",
            "pass: relay everything as it is. shadow: record as well. on: take out of requests what left, and offer recall.",
        ),
    ] = "shadow",
    store: Annotated[
        str, option("URL", "sqlite:///FILE, postgresql://… for any number of gateways, or memory: nothing on a disk.")
    ] = "sqlite:///gateway.db",
    target: Target = "",
    ceiling: Annotated[str, option("TOKENS", "Never send more than this.")] = "",
    window: Annotated[str, option("TOKENS", "What the models take, less their replies. Default: 180k.")] = "",
    policy: Annotated[str, option("NAME", "What may leave; several are joined by +.")] = "",
    upstream: Annotated[
        list[str] | None, option("NAME=URL", "Another provider: requests to /NAME/… go there. May be given again.")
    ] = None,
    tokens: Annotated[
        Path | None,
        option("FILE", "Clients' tokens, a line TENANT=TOKEN for each. Without one everybody may use it, as one tenant."),
    ] = None,
    tls_cert: Annotated[Path | None, option("FILE", "A certificate, with --tls-key.")] = None,
    tls_key: Annotated[Path | None, option("FILE", "Its key.")] = None,
    holdout: Annotated[
        float, option("SHARE", "Leave this share of sessions unmanaged, to compare with (tenure report).", min=0, max=1)
    ] = 0.0,
    bridge: Bridge = False,
    allow_host: Annotated[
        list[str] | None, option("NAME", "Another name by which this machine's programs ask, such as host.docker.internal.")
    ] = None,
    settle: Annotated[
        float, option("SECONDS", "Told to stop, say so at /readyz for this long before, for a balancer to notice.", min=0)
    ] = 0.0,
    connections: Annotated[int, option("NUMBER", "Of clients at once; any further one is answered with 503.", min=1)] = 400,
    insecure: Annotated[
        bool, flag("--insecure", "Listen beyond this machine without TLS: something before it ends TLS.")
    ] = False,
) -> None:
    """Serve agents: point their base URL here, and requests go on to their providers.

    Claude Code: ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude

    OpenAI's clients: OPENAI_BASE_URL=http://127.0.0.1:8787/v1. Gemini's: GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8787.

    Others by name: http://127.0.0.1:8787/openrouter. It stops when running replies have ended.
    """
    from tenure.gateway.service import GatewayService
    from tenure.gateway.settings import MODES, GatewaySettings, check_address, names_of, tokens_of, upstreams_of
    from tenure.gateway.spans import tracing
    from tenure.store.store import Store

    if mode not in MODES:
        raise InputError("mode", repr(mode), "one of " + ", ".join(MODES))
    if bool(tls_cert) != bool(tls_key):
        raise InputError("TLS", "a certificate without a key, or a key without a certificate", "both")
    if policy:
        policy_named(policy)
    if holdout and mode != "on":
        raise InputError("--holdout", f"with the mode {mode}, in which nothing is managed", "--mode on")
    text = read_file(tokens, MOST_TOKENS).decode("utf-8", "replace") if tokens else ""
    lines = [line.strip() for line in text.splitlines()]
    settings = GatewaySettings(
        mode=mode,
        management=Management(budget=_budget(target, ceiling, window), policy=cast(PolicyName, policy), holdout=holdout),
        upstreams=upstreams_of(upstream or ()),
        names=names_of(host, allow_host or ()),
        bridge=bridge,
        connections=connections,
        tokens=tokens_of([line for line in lines if line and not line.startswith("#")]),
    )
    check_address(host, settings, has_tls=tls_cert is not None, insecure=insecure)
    with Store(IN_MEMORY if store == MEMORY else store) as records:
        logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
        logging.getLogger("tenure").setLevel(logging.INFO)  # and no others: HTTP clients log URLs, in which keys may stand
        service = GatewayService(records, settings)
        with tracing(service, os.environ):
            asyncio.run(run(service, host, port, tls_cert, tls_key, settle_s=settle))


def _budget(target: str, ceiling: str, window: str) -> Budget | None:
    """The budget of every conversation; None for the usual one. Raises InputError."""
    if not (target or ceiling or window):
        return None
    return Budget.parse(target=target or (None if ceiling else USUAL.target), ceiling=ceiling or None, window=window or None)


async def run(
    gateway: "GatewayService",
    host: str,
    port: int,
    certificate: Path | None = None,
    key: Path | None = None,
    *,
    settle_s: float = 0.0,
) -> None:
    """Serve until the process is told to stop, and let running replies end then."""
    import uvicorn

    from tenure.gateway.service import DrainingServer, listening_options, prepare

    config = uvicorn.Config(
        gateway.app,
        host=host,
        port=port,
        lifespan="off",
        **listening_options(gateway),
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        timeout_graceful_shutdown=int(DRAIN_S),
    )
    gc.freeze()
    gc.set_threshold(_THRESHOLD, 20, 20)
    prepare(gateway)
    try:
        await DrainingServer(config, gateway, settle_s=settle_s).serve()
    finally:
        await gateway.aclose(drain_s=DRAIN_S)
