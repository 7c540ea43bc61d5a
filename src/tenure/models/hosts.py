"""Hosts of providers, and what of a connection's address may be shown. Light: whoever names a model needs no more."""

from typing import Final
from urllib.parse import urlsplit

# Whose prices hold at a host. Elsewhere nothing is known but what the caller says.
PROVIDERS: Final = {
    "api.openai.com": "openai",
    "api.anthropic.com": "anthropic",
    "openrouter.ai": "openrouter",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.x.ai": "x-ai",
    "generativelanguage.googleapis.com": "google",
}


def host_of(url: str) -> str:
    """The host of a URL as it may be shown: without name, password, path and query."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname or ''}{port}"


def secrets_of(url: str, *given: object) -> tuple[str, ...]:
    """What may never be shown of a connection."""
    return tuple(secret for secret in (urlsplit(url).password, *given) if isinstance(secret, str) and secret)
