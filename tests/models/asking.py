"""All SDKs and all their APIs against a provider on this machine, as one table."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tenure.models import AnthropicModel, Model, OpenAIModel, Patience, Question
from tenure.models.hosts import GOOGLE
from tenure.models.model import SdkModel
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Broken, Fault, Reply, Script

KEY = "sk-test-0123456789abcdef"
HI = Question(messages=("hi",))
Made = Callable[..., Model]


def chat(url: str, **settings: Any) -> Model:
    return OpenAIModel("gpt-5-mini", base_url=f"{url}/v1", **({"api_key": KEY, "patience": Patience(retries=0)} | settings))


def responses(url: str, **settings: Any) -> Model:
    return OpenAIModel(
        "gpt-5-mini", api="responses", base_url=f"{url}/v1", **({"api_key": KEY, "patience": Patience(retries=0)} | settings)
    )


def messages(url: str, **settings: Any) -> Model:
    return AnthropicModel("claude-opus-4-5", base_url=url, **({"api_key": KEY, "patience": Patience(retries=0)} | settings))


def google(url: str, **settings: Any) -> Model:
    return SdkModel("gemini-2.5-pro", home=GOOGLE, base_url=url, **({"api_key": KEY, "patience": Patience(retries=0)} | settings))


EVERY: dict[str, Made] = {"openai-chat": chat, "openai-responses": responses, "anthropic": messages}  # that take a body as bytes
HALF = {"openai-chat": 2, "openai-responses": 5, "anthropic": 3}  # events until the first half of the words has come


@contextmanager
def provided(*replies: Reply | Fault | Broken) -> Iterator[tuple[FakeProvider, str]]:
    """A provider with a script, and where it is."""
    provider = FakeProvider(Script(replies=replies), clock=lambda: 0.0)
    with serve(provider.app) as url:
        yield provider, url
