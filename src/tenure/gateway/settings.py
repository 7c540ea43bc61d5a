"""What a gateway is told: how it manages, whom it relays to, who may use it, and its limits."""

import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from ipaddress import ip_address
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis.api import Api
from tenure.context.exchange import Management
from tenure.errors import InputError
from tenure.models.hosts import MAKERS, PROVIDERS, SERVICES, host_of

GatewayMode = Literal["pass", "shadow", "on"]
MODES: Final = ("pass", "shadow", "on")
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
OPERATOR: Final = "*"  # in place of a tenant: who sees everybody's conversations and metrics, and asks no model
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]*")


class Upstream(Struct, frozen=True, kw_only=True):
    """Where requests of one name go."""

    name: str
    url: str  # without a slash at its end

    @property
    def provider(self) -> str:
        """Whose prices and rules hold there; empty where nothing is known."""
        return PROVIDERS.get(host_of(self.url), "")

    def url_of(self, path: str, query: str) -> str:
        """Where a request of a client goes; what the path repeats of the base URL's end stands there once."""
        base = urlsplit(self.url).path.rpartition("/")[2]
        rest = path.removeprefix(f"/{base}") if base and path.startswith(f"/{base}/") else path
        return self.url + rest + (f"?{query}" if query else "")


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """Everything a gateway is told when it starts."""

    mode: GatewayMode = "shadow"
    management: Management = Management()
    upstreams: Mapping[str, str] = {}  # base URLs by name, beside those of the known providers, or instead of them
    tokens: Mapping[str, str] = {}  # sha256 of a client's token, in hex -> its tenant; none: everybody may use it, as one tenant
    body_bytes: int = 64 * 2**20  # of a request, unpacked; a larger one is refused
    exchange_s: float = 5.0  # that finding and changing a request may take; after that the client's own bytes go out
    connect_s: float = 10.0
    silence_s: float = 600.0  # of an upstream
    idle_s: float = 900.0  # after which a conversation is dropped from memory
    connections: int = 400  # of clients at once; each may take a second one, upstream, of what files a process may open
    body_s: float = 300.0  # that the body of a request may take to come
    names: tuple[str, ...] = ()  # of hosts that requests may name; none: any
    bridge: bool = False  # whether WebSockets of an API are answered, by requests over HTTP
    workers: int = 4  # threads that read and write conversations

    def upstream(self, name: str) -> Upstream | None:
        """One that requests may be sent to."""
        url = self.upstreams.get(name) or next((each.url for each in SERVICES if each.name == name), "")
        return Upstream(name=name, url=url.rstrip("/")) if url else None

    def maker_of(self, api: Api) -> Upstream:
        """The one that requests of an API go to where the client names none: its maker."""
        service = MAKERS[api.name]
        return Upstream(name=service.name, url=(self.upstreams.get(service.name) or service.url).rstrip("/"))

    def tenant_of(self, token: str) -> str | None:
        """The tenant of a client's token; None for one that is unknown."""
        if not self.tokens:
            return ""
        return self.tokens.get(sha256(token.encode()).hexdigest())


def upstreams_of(given: Sequence[str]) -> dict[str, str]:
    """Base URLs by name, from texts such as `name=https://host/v1`. Raises InputError."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, url = text.partition("=")
        parts = urlsplit(url)
        if not sign or not _NAME.fullmatch(name) or parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("upstream", repr(text), "NAME=URL, such as local=http://127.0.0.1:8000/v1")
        if parts.query or parts.username or parts.password:
            raise InputError(
                "upstream", f"{name}: a URL with a query, a name or a password", "a base URL alone: keys come with requests"
            )
        found[name] = url
    return found


def tokens_of(given: Sequence[str]) -> dict[str, str]:
    """Hashes of clients' tokens and their tenants, from texts such as `team=TOKEN`. Raises InputError; no token is named in it."""
    found: dict[str, str] = {}
    for n, text in enumerate(given, 1):
        tenant, sign, token = text.partition("=")
        if not sign or not tenant or len(token) < 16:
            raise InputError("client token", f"number {n}", "TENANT=TOKEN, with a token of at least 16 characters")
        found[sha256(token.encode()).hexdigest()] = tenant
    return found


def names_of(host: str, more: Sequence[str] = ()) -> tuple[str, ...]:
    """The hosts that requests may name where only this machine is listened to, so that no page can reach it by a name of its own (DNS rebinding)."""
    return (*_LOOPBACK, host, *more) if is_loopback(host) else ()


def check_address(host: str, settings: GatewaySettings, *, has_tls: bool, insecure: bool) -> None:
    """Refuse to listen where others can read or use what goes through. Raises InputError."""
    if is_loopback(host):
        return
    if not settings.tokens:
        raise InputError("address", f"{host!r} without client tokens", "tokens, by --tokens FILE; or the loopback address")
    if not has_tls and not insecure:
        raise InputError(
            "address", f"{host!r} without TLS", "--tls-cert and --tls-key; or --insecure behind a proxy that ends TLS"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False  # a name, which may mean anything


def with_mode(settings: GatewaySettings) -> GatewaySettings:
    """The settings, with the management in the gateway's mode."""
    if settings.mode == "pass":
        return settings
    return replace(settings, management=replace(settings.management, mode=settings.mode))
