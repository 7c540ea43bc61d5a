"""A whole response as the events that a provider would stream. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from tenure.apis import APIS


def events(response: Mapping[str, Any], dialect: str, *, include_usage: bool = False) -> Iterator[bytes]:
    """The server-sent events of a response; `include_usage` is what Chat Completions asks for in `stream_options`."""
    return APIS[dialect].server().events(response, include_usage=include_usage)
