"""What every part that needs a model is handed: a callable. Edge."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Final, Protocol

from tenure.errors import Failure, InputError, ModelError
from tenure.models.anthropic import AnthropicModel
from tenure.models.hosts import NAMED
from tenure.models.listen import Cancel, Patience
from tenure.models.openai import OpenAIModel
from tenure.models.question import Answer, Question


class Model(Protocol):
    """Answers a question, or says why not. Any callable of this shape will do."""

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:
        """The whole answer. Raises ModelError for everything that a provider, a connection or a model can do wrong."""
        ...


_KINDS: Final[Mapping[str, Callable[..., Model]]] = MappingProxyType(
    {
        "openai": OpenAIModel,
        "anthropic": AnthropicModel,
        "openai-chat": partial(OpenAIModel, api="chat"),
        "openai-responses": partial(OpenAIModel, api="responses"),
    }
)


def model_named(
    name: str,
    *,
    base_url: str | None = None,
    api_key: str | None = None,
    patience: Patience | None = None,
    provider: str = "",
) -> Model:
    """The model of a name like "openai:gpt-5-mini": the API it speaks, and what the provider calls it. `base_url` says where else it is.

    A service (`groq:NAME`, `ollama:NAME`) is at its own URL, with the key of its own variable. Raises InputError for another API or no name, or
    when the SDK is not installed; ModelError when there is no key.
    """
    api, colon, model = name.partition(":")
    if (service := NAMED.get(api)) is not None and api not in _KINDS:
        key = api_key or (os.environ.get(service.variable) if service.variable else "-")
        if key is None:
            raise ModelError(Failure.NOT_ACCEPTED, f"{name}: there is no key: set {service.variable}")
        return OpenAIModel(model, api="chat", base_url=base_url or service.url, api_key=key, patience=patience, provider=provider)
    if not colon or api not in _KINDS or not model:
        raise InputError("model", repr(name), " or ".join(f"{kind}:NAME" for kind in _KINDS))
    return _KINDS[api](model, base_url=base_url, api_key=api_key, patience=patience, provider=provider)
