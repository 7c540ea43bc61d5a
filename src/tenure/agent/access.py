"""Access to models: keys, the models that can be used on this machine, and the speaker of a chosen model (an edge).

A key comes from the environment or from a file that only its owner can read, and is never shown:

    # ~/.config/tenure/keys.toml, mode 0600
    anthropic = "sk-ant-…"
    openai = "sk-…"
    "llm.example.org:8000" = "…"       # a server of one's own, by host

The environment counts before the file. A provider that is known gets its own key only (`GROQ_API_KEY`), a server that is not known that of the API it
speaks (`OPENAI_API_KEY`). A file that others can read is not read at all.
"""

import asyncio
import os
import stat
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.agent.catalogue import ModelChoice, chosen, is_scripted, script_path, url_elsewhere
from tenure.apis import APIS
from tenure.errors import InputError
from tenure.extras import NotInstalled, is_installed
from tenure.models.hosts import ANTHROPIC, KEY_VARIABLES, MAKERS, NAMED, OPENAI, SERVICES, Service, is_loopback
from tenure.models.speaker import SdkSpeaker, Speaker

if TYPE_CHECKING:
    from tenure.agent.settings import World
    from tenure.models.embedding import Embedding, Nearness
    from tenure.store.vectors import Vectors

FILE: Final = "keys.toml"
_EMBEDDINGS: Final = "off, minilm, or a model behind an API that is compatible with OpenAI's, such as openai:text-embedding-3-small or ollama:nomic-embed-text"
_LARGEST_FILE: Final = 65_536  # bytes
# Besides a key, what the SDK of Anthropic finds credentials by: a token, a profile, a workload's identity.
_OTHER_WAYS: Final = tuple(f"ANTHROPIC_{each}" for each in ("AUTH_TOKEN", "PROFILE", "CONFIG_DIR", "FEDERATION_RULE_ID"))


def key_for(choice: ModelChoice, environment: Mapping[str, str], configuration: Path) -> str | None:
    """The key for a model; None to leave it to the SDK, which has ways of its own. Raises InputError for a key file that cannot be trusted.

    A server on this machine that nobody has a key for gets "-".
    """
    service = _service(choice)
    found = next((environment[name] for name in (service.variable, *service.also) if environment.get(name)), None)
    if choice.provider and found:
        return found
    kept = kept_keys(configuration)
    for name in (choice.host, choice.provider):
        if name and kept.get(name):
            return kept[name]
    return found or ("-" if is_loopback(choice.host) else None)


def has_other_way(choice: ModelChoice, environment: Mapping[str, str], home: Path) -> bool:
    """Whether the SDK may find credentials that are no key."""
    if MAKERS.get(choice.api) is not ANTHROPIC:
        return False
    return any(environment.get(name) for name in _OTHER_WAYS) or (home / ".config" / ANTHROPIC.name).is_dir()


def sought(choice: ModelChoice, configuration: Path) -> str:
    """Where a key for a model is looked for, for people who have given none."""
    name = choice.provider or f'"{choice.host}"'
    return f'set {_service(choice).variable}, or write {name} = "…" into {configuration / FILE} (chmod 600)'


def _service(choice: ModelChoice) -> Service:
    """Whose key a model takes: its provider's, else that of the API's maker."""
    return NAMED.get(choice.provider) or MAKERS.get(choice.api) or OPENAI


def configuration_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where settings of this program lie."""
    return _based(environment, "XDG_CONFIG_HOME", home / ".config")


def state_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Where sessions lie."""
    return _based(environment, "XDG_STATE_HOME", home / ".local" / "state")


def _based(environment: Mapping[str, str], variable: str, usual: Path) -> Path:
    """Ours in a folder that a variable names; one that is not absolute does not count, says the standard."""
    base = Path(environment.get(variable, ""))
    return (base if base.is_absolute() else usual) / "tenure"


def kept_keys(configuration: Path) -> Mapping[str, str]:
    """The keys of the file in a configuration folder, by provider or host. Raises InputError for a file that cannot be trusted."""
    path = configuration / FILE
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(str(path), f"cannot be read ({error.strerror or error})", "a file of keys") from error
    try:
        _require_own(path, os.fstat(opened))
        data = os.read(opened, _LARGEST_FILE)
    finally:
        os.close(opened)
    try:
        held = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError):
        raise InputError(str(path), "no TOML", 'lines such as anthropic = "…"') from None  # its words may hold a key
    # A key may stand in a table of its own: `[openai]`, `api_key = "…"`.
    tables: dict[str, dict[str, Any]] = {name: value for name, value in held.items() if isinstance(value, dict)}
    keys: dict[str, Any] = held | {name: table.get("api_key") for name, table in tables.items()}
    return {name: key for name, key in keys.items() if isinstance(key, str)}


def _require_own(path: Path, facts: os.stat_result) -> None:
    """Raise InputError unless it is a file that nobody but its owner, who is the user, can read."""
    mode = stat.S_IMODE(facts.st_mode)
    if not stat.S_ISREG(facts.st_mode):
        raise InputError(str(path), "not a file", "a file of keys")
    if not hasattr(os, "geteuid"):
        return
    if mode & 0o077:
        raise InputError(str(path), f"mode {mode:04o}, so others can read it", f"0600: chmod 600 {path}")
    if facts.st_uid not in (os.geteuid(), 0):
        raise InputError(str(path), "a file of another user", "one of your own")


PROBE_S: Final = 0.5  # that a server of this machine may take to answer
_LARGEST_ANSWER: Final = 1_000_000  # bytes
SHOWN: Final = 3  # models of one server
# A model of each provider, for a hint; elsewhere the name is the person's to fill in.
MODELS: Final[Mapping[str, str]] = {ANTHROPIC.name: "claude-opus-4-5", OPENAI.name: "gpt-5"}


class Available(Struct, frozen=True, kw_only=True):
    """A model that could be used, and why."""

    spec: str  # as `--model` takes it; NAME stands for one that is not known
    why: str
    service: str


class UnusableModel(InputError):
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
            f"Set {KEY_VARIABLES}, start a local server, or watch `tenure demo`, which needs neither.",
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


class _Listing(Struct):
    """What `GET /models` answers."""

    data: list[dict[str, Any]] = []


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
        answer = await reader.read(_LARGEST_ANSWER)
        while more := await reader.read(_LARGEST_ANSWER - len(answer)):
            answer += more
    finally:
        writer.close()
    body = answer.partition(b"\r\n\r\n")[2]
    try:
        listed = msgspec.json.decode(body[body.find(b"{") : body.rfind(b"}") + 1], type=_Listing)
    except msgspec.DecodeError:
        return []
    return [name for each in listed.data if isinstance(name := each.get("id"), str) and name.isprintable()]


def speaker_of(choice: ModelChoice, world: "World", folder: Path, *, done: int = 0) -> tuple[ModelChoice, Speaker]:
    """Who speaks for a model, and the model with what only that one knows. `done` replies of a script were heard before.

    Raises UnusableModel without a key, NotInstalled without the SDK, InputError for a script or a key file that cannot be read.
    """
    if world.speaker is not None:
        speaker = world.speaker(choice)
        return replace(choice, name=speaker.name, api=choice.api or speaker.dialect), speaker
    if is_scripted(choice.spec):
        from tenure.models.scripted import ScriptedSpeaker, read_script

        speaker = ScriptedSpeaker(read_script(script_path(choice, folder)), done=done, now=world.seconds, wait=world.wait)
        return replace(choice, name=speaker.name, api=speaker.dialect), speaker
    configuration = configuration_folder(world.environment, world.home)
    sdk = APIS[choice.api].speech.sdk
    if not is_installed(sdk):
        raise NotInstalled(sdk)
    key, keys = key_for(choice, world.environment, configuration), sought(choice, configuration)
    if key is None and not has_other_way(choice, world.environment, world.home):
        raise UnusableModel(f"there is no key for {choice.spec}: {keys}")
    return choice, SdkSpeaker(choice.name, choice.api, base_url=choice.base_url or None, api_key=key, keys=keys)


MINILM: Final = "minilm"  # the model of the extra `embeddings`, on this machine


def check_embedding(spec: str) -> None:
    """Raises InputError for what names no model that embeds texts."""
    try:
        is_one = spec in ("", "off", MINILM) or chosen(spec).api in OPENAI.apis
    except InputError:
        is_one = False
    if not is_one:
        raise InputError("embeddings", repr(spec), _EMBEDDINGS)


def nearness(spec: str, world: "World", vectors: "Vectors", *, patience_s: float = 0.0) -> "Nearness | None":
    """What ranks texts by meaning, with the model of that name, which is opened when it is first asked; None for an empty name. Raises InputError."""
    check_embedding(spec)
    if spec in ("", "off"):
        return None
    from tenure.models.embedding import EndpointEmbedding, Nearness

    def opened() -> "Embedding":
        if spec == MINILM:
            from tenure.models.minilm import MiniLm

            return MiniLm()
        choice = chosen(spec, base_url=url_elsewhere(spec, world.environment))
        key = key_for(choice, world.environment, configuration_folder(world.environment, world.home))
        url = choice.base_url or OPENAI.url
        return EndpointEmbedding(spec, choice.name, base_url=url, api_key=key)

    return Nearness(opened, vectors, now=world.seconds, patience_s=patience_s)
