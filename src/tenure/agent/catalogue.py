"""Which models there are to talk with: their API, window, output and prices.

Windows and prices come from the data of `genai-prices`, what is legal from `rules`; what neither knows is assumed small rather than large. A model is
named `openai:gpt-5-mini` or `ollama:qwen3`: who serves it, and what it is called there.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

from tenure.apis import APIS, COMMON
from tenure.errors import InputError
from tenure.models.hosts import ANTHROPIC, MAKERS, NAMED, OPENAI, PROVIDERS, SERVICES, Service, host_of

UNKNOWN_WINDOW: Final = 128_000  # provider tokens; most models of the last years take as much
OUTPUT: Final = 16_384  # tokens of one reply, where the model allows as many
MARGIN: Final = 2_000  # tokens of the window that stay free: counts are estimates until a provider has reported

# The most that one reply may have, where that is less than OUTPUT; a larger limit is refused by the provider. The first match counts.
# platform.claude.com/docs/en/about-claude/models/overview, platform.openai.com/docs/models
_OUTPUTS: Final = (
    (re.compile(r"claude-3-(opus|sonnet|haiku)"), 4_096),
    (re.compile(r"claude-3[-.]5"), 8_192),
    (re.compile(r"gpt-4-turbo|gpt-4-\d"), 4_096),
    (re.compile(r"gpt-4$"), 2_048),
    (re.compile(r"gpt-3\.5"), 4_096),
    (re.compile(r"deepseek-chat"), 8_192),
)
# A version in a name, such as 4-5 or 5.2; no date, no number of tokens or of parameters.
_VERSION: Final = re.compile(r"(?:^|[-a-z])(\d{1,2})(?:[.-](\d)(?![\da-z]))?(?![\db])")
_SCRIPTED: Final = "scripted"
_KINDS: Final = tuple(dict.fromkeys((OPENAI.name, ANTHROPIC.name, *APIS, _SCRIPTED, *NAMED)))  # what may stand before the colon
_FILE: Final = "file://"
EXAMPLES: Final = ("anthropic:claude-opus-4-5", "openai:gpt-5", "ollama:qwen3", "scripted:FILE")


class ModelChoice(Struct, frozen=True, kw_only=True):
    """A model as it was asked for, and what is known of it. `window` and `output` in provider tokens."""

    spec: str  # as `--model` takes it
    kind: str  # what stands before the colon: a service, an API of OpenAI's, or "scripted"
    name: str  # as the provider calls it; of a script the file
    api: str  # its name; empty for a script, which says so itself
    base_url: str = ""  # empty: the provider's own
    provider: str = ""  # whose prices and rules hold; empty: not known
    window: int = UNKNOWN_WINDOW
    output: int = OUTPUT
    known: bool = False  # window and prices are listed

    @property
    def reserve(self) -> int:
        """Tokens of the window that a reply may take, and a margin."""
        return self.output + MARGIN

    @property
    def family(self) -> str:
        """The service, of an API its maker: "openai" of "openai-chat"."""
        return family_of(self.kind)

    @property
    def host(self) -> str:
        """Whom requests go to."""
        return host_of(self.base_url) if self.base_url else _maker_host(self.kind)

    def url(self, folder: Path) -> str:
        """Where replies come from, as it is kept with a session: a base URL, or that of a script's file."""
        if self.kind == _SCRIPTED:
            return (folder / Path(self.spec.partition(":")[2]).expanduser()).resolve().as_uri()
        return self.base_url or NAMED[self.family].url


def family_of(kind: str) -> str:
    """The service of a kind, of an API its maker; the kind itself where it is neither."""
    service = _service_of(kind)
    return service.name if service is not None else kind


def chosen(spec: str, *, base_url: str = "") -> ModelChoice:
    """The model of a name such as "openai:gpt-5". Raises InputError for another kind, or no name."""
    kind, colon, name = spec.partition(":")
    if not colon or kind not in _KINDS or not name.strip():
        raise InputError("model", repr(spec), " or ".join(f"{each}:{'FILE' if each == _SCRIPTED else 'NAME'}" for each in _KINDS))
    if kind == _SCRIPTED:
        return ModelChoice(spec=spec, kind=kind, name=name, api="")
    service = _service_of(kind)
    assert service is not None, "only a script has none"
    if not service.elsewhere:
        base_url = base_url or NAMED[kind].url
    host = host_of(base_url) if base_url else service.host
    provider = PROVIDERS.get(host, "")
    window = _window(name, provider)
    size = window or UNKNOWN_WINDOW
    return ModelChoice(
        spec=spec,
        kind=kind,
        name=name,
        api=_api(kind, host),
        base_url=base_url,
        provider=provider,
        window=size,
        output=min(_output(name), max(1_024, size // 4)),
        known=window is not None,
    )


def spec_of(dialect: str, name: str, url: str) -> str:
    """How a model that a session was held with is asked for again, with its URL. Empty when it cannot be."""
    if url.startswith(_FILE):
        return f"scripted:{unquote(url.removeprefix(_FILE))}"
    kinds = [*(each.name for each in SERVICES if each.url == url), dialect]
    return next((f"{kind}:{name}" for kind in kinds if name and kind in _KINDS and _api(kind, host_of(url)) == dialect), "")


def url_elsewhere(spec: str, environment: Mapping[str, str]) -> str:
    """The base URL that the SDK of a model finds in the environment; empty where it looks for none."""
    service = _service_of(spec.partition(":")[0])
    return environment.get(service.elsewhere, "") if service is not None and service.elsewhere else ""


def _service_of(kind: str) -> Service | None:
    """The service of a kind, of an API its maker; None for a script."""
    return NAMED.get(kind) or MAKERS.get(kind)


def _maker_host(kind: str) -> str:
    """Where the SDK of a kind sends requests by itself; empty for services that are given by URL."""
    service = _service_of(kind)
    return service.host if service is not None and service.elsewhere else ""


def _api(kind: str, host: str) -> str:
    """The API of a kind: it is one, or it is a service's, whose maker may want agents to speak a newer one than the servers like it have."""
    if kind in APIS or kind == _SCRIPTED:
        return kind if kind in APIS else ""
    return NAMED[kind].apis[-1 if host == NAMED[kind].host else 0]


def is_scripted(spec: str) -> bool:
    """Whether a name stands for a script."""
    return spec.startswith("scripted:")


def script_path(choice: ModelChoice, folder: Path) -> Path:
    """The file of a scripted model, from the folder it was named in."""
    return folder / Path(choice.name).expanduser()


def fields_of(choice: ModelChoice, session: str = "") -> dict[str, Any]:
    """What requests to a model say beside the conversation. `session` tells a provider's cache which requests belong together."""
    own = choice.host == _maker_host(choice.kind)
    return APIS[choice.api or COMMON].fields(choice.name, output=choice.output, own=own, session=session)


def listed(provider: str = "") -> Iterator[ModelChoice]:
    """The models that the price list knows of OpenAI and Anthropic, each maker's newest first; for a picker. Needs no key and no network."""
    from genai_prices.data_snapshot import get_snapshot

    for each in get_snapshot().providers:
        if each.id in (OPENAI.name, ANTHROPIC.name) and provider in ("", each.id):
            for model in sorted(each.models, key=lambda model: (_age(model.id), model.id)):
                if not model.deprecated and model.context_window:
                    yield chosen(f"{each.id}:{model.id}")


def _age(name: str) -> tuple[int, int]:
    """Sorts names by the version in them, newest first: `claude-opus-4-5` before `claude-3-haiku`; those without one last."""
    found = _VERSION.search(name)
    return (-int(found[1]), -int(found[2] or 0)) if found is not None else (1, 0)


def _output(name: str) -> int:
    return next((most for pattern, most in _OUTPUTS if pattern.search(name)), OUTPUT)


def _window(name: str, provider: str) -> int | None:
    """The listed window: at the provider; by the name alone; by the name without a router's prefix."""
    from genai_prices.data_snapshot import get_snapshot

    for each, host in ((name, provider or None), (name, None), (name.rpartition("/")[2], None)):
        try:
            _, info = get_snapshot().find_provider_model(each, None, host, None)
        except LookupError:
            continue
        if info.context_window:
            return int(info.context_window)
    return None
