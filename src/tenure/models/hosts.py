"""Where models are served: providers and servers of this machine, by the word that stands before the colon of a model's name.

Light: whoever names a model needs no more.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct


class Service(Struct, frozen=True, kw_only=True):
    """A provider, or a server that runs on this machine. The base URL is that of its API compatible with OpenAI's, but for those that have an API of their own."""

    name: str  # before the colon of a model's name; of a provider also how its prices and rules are listed
    url: str
    title: str
    variable: str = ""  # of the environment, with its key; empty: it needs none
    also: tuple[str, ...] = ()  # other variables with its key
    elsewhere: str = ""  # of the environment, with another base URL, where its SDK looks for one
    convention: str = ""  # as OpenTelemetry's conventions (gen_ai.provider.name) call it, where that is another name
    apis: tuple[str, ...] = ("openai-chat",)  # that it speaks: the first for questions, the last for agents

    @property
    def host(self) -> str:
        """Whom requests go to."""
        return host_of(self.url)

    @property
    def is_local(self) -> bool:
        """Whether it runs on this machine and needs no key."""
        return not self.variable


OPENAI: Final = Service(
    name="openai",
    url="https://api.openai.com/v1",
    title="OpenAI",
    variable="OPENAI_API_KEY",
    elsewhere="OPENAI_BASE_URL",
    apis=("openai-chat", "openai-responses"),
)
ANTHROPIC: Final = Service(
    name="anthropic",
    url="https://api.anthropic.com",
    title="Anthropic",
    variable="ANTHROPIC_API_KEY",
    elsewhere="ANTHROPIC_BASE_URL",
    apis=("anthropic",),
)
GOOGLE: Final = Service(
    name="google",
    url="https://generativelanguage.googleapis.com",
    title="Google",
    convention="gcp.gemini",
    variable="GEMINI_API_KEY",  # ai.google.dev/gemini-api/docs/api-key
    also=("GOOGLE_API_KEY",),
    elsewhere="GOOGLE_GEMINI_BASE_URL",
    apis=("gemini",),
)
SERVICES: Final = (
    ANTHROPIC,
    OPENAI,
    Service(name="openrouter", url="https://openrouter.ai/api/v1", title="OpenRouter", variable="OPENROUTER_API_KEY"),
    Service(name="deepseek", url="https://api.deepseek.com/v1", title="DeepSeek", variable="DEEPSEEK_API_KEY"),
    Service(name="groq", url="https://api.groq.com/openai/v1", title="Groq", variable="GROQ_API_KEY"),
    Service(
        name="mistral", url="https://api.mistral.ai/v1", title="Mistral", variable="MISTRAL_API_KEY", convention="mistral_ai"
    ),
    Service(name="x-ai", url="https://api.x.ai/v1", title="xAI", variable="XAI_API_KEY", convention="x_ai"),
    GOOGLE,
    Service(name="ollama", url="http://127.0.0.1:11434/v1", title="Ollama"),
    Service(name="lmstudio", url="http://127.0.0.1:1234/v1", title="LM Studio"),
    Service(name="llamacpp", url="http://127.0.0.1:8080/v1", title="llama.cpp"),
    Service(name="vllm", url="http://127.0.0.1:8000/v1", title="vLLM"),
)
NAMED: Final[Mapping[str, Service]] = MappingProxyType({each.name: each for each in SERVICES})
# The maker of an API, whose key counts at servers that are not known.
MAKERS: Final[Mapping[str, Service]] = MappingProxyType({api: each for each in SERVICES if each.elsewhere for api in each.apis})
KEY_VARIABLES: Final = " or ".join(each.variable for each in (ANTHROPIC, OPENAI, GOOGLE))  # as hints name them
LOCAL: Final = tuple(each for each in SERVICES if each.is_local)


def host_of(url: str) -> str:
    """The host of a URL as it may be shown: without name, password, path and query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname or ''}{port}"


# Whose prices hold at a host. Elsewhere nothing is known but what the caller says.
PROVIDERS: Final[Mapping[str, str]] = MappingProxyType({each.host: each.name for each in SERVICES if not each.is_local})

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]", "::1", "0.0.0.0")  # noqa: S104 - only compared


def is_loopback(host: str) -> bool:
    """Whether a host, as `host_of` gives it, is this machine."""
    return host.rpartition(":")[0] in _LOOPBACK or host in _LOOPBACK


_STARS: Final = "***"


def public_url(url: str) -> str:
    """A URL as it may be stored: stars stand for a name, a password and a query, which may be or hold a key."""
    parts = urlsplit(url)
    name, at, place = parts.netloc.rpartition("@")
    return parts._replace(netloc=(_STARS if name else "") + at + place, query=_STARS if parts.query else "", fragment="").geturl()


def is_whole(url: str) -> bool:
    """Whether nothing was taken off a URL before it was stored."""
    return _STARS not in url


def is_known(url: str) -> bool:
    """Whether a URL is a provider's, this machine's, or a file's."""
    host = host_of(url)
    return not host or host in PROVIDERS or is_loopback(host)


def secrets_of(url: str, *given: object) -> tuple[str, ...]:
    """What may never be shown of a connection."""
    return tuple(secret for secret in (urlsplit(url).password, *given) if isinstance(secret, str) and secret)
