"""Which models could be used on this machine: those whose key is there, and those that a local server offers (an edge)."""

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from tenure.agent.keys import FILE, configuration_folder, kept_keys
from tenure.errors import InputError
from tenure.models.hosts import ANTHROPIC, OPENAI, SERVICES, Service

PROBE_S: Final = 0.5  # that a server of this machine may take to answer
LARGEST: Final = 1_000_000  # bytes of an answer
SHOWN: Final = 3  # models of one server
# A model of each provider, for a hint; elsewhere the name is the person's to fill in.
MODELS: Final[Mapping[str, str]] = {ANTHROPIC.name: "claude-opus-4-5", OPENAI.name: "gpt-5"}


class Available(Struct, frozen=True, kw_only=True):
    """A model that could be used, and why."""

    spec: str  # as `--model` takes it; NAME stands for one that is not known
    why: str
    service: str


class Unusable(InputError):
    """No model can be talked with: none was named, or its key is missing. As text, it ends with the models that could be used here."""

    def __init__(self, problem: str, *, available: Sequence[Available] | None = None) -> None:
        """`available`: what could be used instead; None where nobody has looked yet."""
        super().__init__("model", problem)
        self.problem = problem
        self.args = ("\n".join([problem, *(() if available is None else lines(available))]),)


def lines(available: Sequence[Available]) -> list[str]:
    """What could be used here, for people."""
    if not available:
        servers = ", ".join(f"{each.title} {urlsplit(each.url).port}" for each in SERVICES if each.is_local)
        return [
            f"Nothing was found here: no key in the environment or in {FILE}, no local server that answers ({servers}).",
            "Set ANTHROPIC_API_KEY or OPENAI_API_KEY, start a local server, or watch `tenure demo`, which needs neither.",
        ]
    width = max(len(each.spec) for each in available)
    return ["Found here:", *(f"  -m {each.spec:<{width}}  {each.why}" for each in available)]


async def available(
    environment: Mapping[str, str], home: Path, local: Iterable[Service], *, patience_s: float = PROBE_S
) -> tuple[Available, ...]:
    """Every provider whose key is there, then what each local server offers. All servers are asked at once; none is waited for longer."""
    answers = await asyncio.gather(*(_offered(each, patience_s) for each in local))
    return (*_keyed(environment, home), *(each for offered in answers for each in offered))


def _keyed(environment: Mapping[str, str], home: Path) -> Iterable[Available]:
    folder = configuration_folder(environment, home)
    kept: Mapping[str, str] = {}
    with suppress(InputError):  # said when the key is wanted
        kept = kept_keys(folder)
    for service in SERVICES:
        variable = next((name for name in (service.variable, *service.also) if environment.get(name)), "")
        why = f"{variable} is set" if variable else ""
        if not why and not service.is_local and (kept.get(service.name) or kept.get(service.host)):
            why = f"its key is in {folder / FILE}"
        if why:
            yield Available(spec=f"{service.name}:{MODELS.get(service.name, 'NAME')}", why=why, service=service.name)


async def _offered(service: Service, patience_s: float) -> Sequence[Available]:
    """The models of a local server; none when nothing answers there, or something else does."""
    try:
        names = await asyncio.wait_for(_listed(service.url), patience_s)
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError):
        return ()
    why = f"{service.title} answers at {service.host}"
    more = f", with {len(names) - SHOWN} more models" if len(names) > SHOWN else ""
    return [Available(spec=f"{service.name}:{name}", why=why + more, service=service.name) for name in names[:SHOWN]]


async def _listed(url: str) -> list[str]:
    """The ids that `GET /models` gives. HTTP/1.0, so that the answer comes in one piece; no client is loaded for it."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(f"GET {parts.path}/models HTTP/1.0\r\nHost: {parts.netloc}\r\nAccept: application/json\r\n\r\n".encode())
        await writer.drain()
        answer = await reader.read(LARGEST)
        while more := await reader.read(LARGEST - len(answer)):
            answer += more
    finally:
        writer.close()
    body = answer.partition(b"\r\n\r\n")[2]
    found: Any = json.loads(body[body.find(b"{") : body.rfind(b"}") + 1])
    models: Any = found.get("data") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    ids: list[Any] = [each.get("id") for each in models if isinstance(each, dict)] if isinstance(models, list) else []  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return [name for name in ids if isinstance(name, str) and name.isprintable()]
