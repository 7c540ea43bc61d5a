"""A gateway with its page, its metrics and its health, over one store: what `tenure serve` and `tenure wrap` run."""

import asyncio
import sys
from base64 import b64decode
from binascii import Error
from functools import partial
from types import FrameType
from typing import Any, Final

import uvicorn
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tenure.errors import TenureError
from tenure.gateway.door import ALIVE, PatientProtocol
from tenure.gateway.metrics import Metrics
from tenure.gateway.server import Gateway
from tenure.gateway.settings import OPERATOR, GatewaySettings
from tenure.gateway.sheets import Sheets
from tenure.gateway.ui import pages
from tenure.store.records import Records

_SWITCH_S: Final = 0.001  # that a thread computes before another may; with 5 ms, the default, requests wait twice as long while conversations are decided on
_PROBE: Final = "readiness"  # of a conversation that there never is


class GatewayService(Gateway):
    """A gateway that people and machines can look into. Once `is_draining` it says that it is not ready, so that a balancer sends nothing more."""

    def __init__(self, store: Records, settings: GatewaySettings | None = None) -> None:
        self.is_draining = False
        self._store = store
        sheets = Sheets(store, changed=lambda conversation: self.histories.forget(conversation))
        routes = [
            *pages(sheets, self._viewer),
            Route(ALIVE, _alive),
            Route("/readyz", self._ready),
            Route("/metrics", self._read_metrics),
        ]
        super().__init__(store, settings, routes=routes)
        self.metrics = Metrics(self, sheets.missed)

    def _viewer(self, request: Request) -> str | None:
        """Whose conversations may be seen: everybody's where nobody has a token, else those of the tenant whose token is the password; the operator sees all."""
        if not self.settings.tokens:
            return None
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        try:
            token = b64decode(given).decode().partition(":")[2] if scheme.lower() == "basic" else ""
        except (Error, UnicodeDecodeError):
            token = ""
        tenant = self.settings.tenant_of(token)
        if tenant is None:
            raise PermissionError("Give a client token as the password; any name will do.")
        return None if tenant == OPERATOR else tenant

    async def _ready(self, _request: Request) -> Response:
        """Whether requests should come here: nothing drains, and the store answers. Without a store requests would still pass through."""
        if self.is_draining:
            return JSONResponse({"ready": False, "why": "draining"}, 503)
        try:
            await run_in_threadpool(self._store.links, [_PROBE])
        except TenureError:
            return JSONResponse({"ready": False, "why": "the store does not answer"}, 503)
        return JSONResponse({"ready": True})

    async def _read_metrics(self, request: Request) -> Response:
        """What was counted, for whoever may see everybody's."""
        try:
            if self._viewer(request) is not None:
                return PlainTextResponse("Metrics are of all tenants: give the operator's token as the password.", 403)
        except PermissionError as error:
            return PlainTextResponse(str(error), 401, headers={"www-authenticate": 'Basic realm="tenure"'})
        return Response(await run_in_threadpool(self.metrics.text), media_type=CONTENT_TYPE_LATEST)


def listening_options(gateway: Gateway) -> dict[str, Any]:
    """How a server listens for a gateway: patient with requests, but not for ever, nor with any number, and with WebSockets where they are bridged."""
    settings = gateway.settings
    protocol = partial(PatientProtocol, most=settings.connections, counts=gateway.counts)
    sockets = {"ws": "wsproto", "ws_max_size": settings.body_bytes, "ws_per_message_deflate": False}
    return {"http": protocol, **(sockets if settings.bridge else {"ws": "none"})}


def prepare(gateway: Gateway) -> None:
    """Make a process ready to serve: its event loop waits for no thread longer than it must, and what is loaded once is loaded now."""
    sys.setswitchinterval(_SWITCH_S)
    gateway.warm()


class DrainingServer(uvicorn.Server):
    """A server that, told to end, first says for `settle_s` that it is not ready, so that a balancer sends nothing more, and then lets requests end."""

    def __init__(self, config: uvicorn.Config, service: GatewayService, *, settle_s: float = 0.0) -> None:
        super().__init__(config)
        self._service, self._settle_s = service, settle_s

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signals are handled
        """Begin to drain; told a second time, end at once. The process ends with 0 then, as one that did what it was told."""
        if self._service.is_draining:
            self.force_exit = True
        self._service.is_draining = True
        asyncio.get_running_loop().call_later(0.0 if self.force_exit else self._settle_s, self._end)

    def _end(self) -> None:
        self.should_exit = True


async def _alive(_request: Request) -> Response:
    return JSONResponse({"alive": True})
