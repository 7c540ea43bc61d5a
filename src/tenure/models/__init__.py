"""The one place that calls a model. Edge: it imports the core, and the core never imports it.

    model = model_named("openai:gpt-5-mini")
    answer = model(Question(system="Be brief.", messages=("What is a prefix cache?",)))

A model is any callable that takes a `Question` and gives an `Answer` or raises `ModelError`. Importing this loads nothing else, and no SDK; each name
is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenure.models.model import AnthropicModel as AnthropicModel
    from tenure.models.model import OpenAIModel as OpenAIModel
    from tenure.models.model import Patience as Patience
    from tenure.models.model import TextModel as TextModel
    from tenure.models.model import model_named as model_named
    from tenure.models.question import Answer as Answer
    from tenure.models.question import Cancel as Cancel
    from tenure.models.question import Model as Model
    from tenure.models.question import Question as Question

_PLACES = {
    **dict.fromkeys(("AnthropicModel", "OpenAIModel", "Patience", "TextModel", "model_named"), "model"),
    **dict.fromkeys(("Answer", "Cancel", "Model", "Question"), "question"),
}

__all__ = ["Answer", "AnthropicModel", "Cancel", "Model", "OpenAIModel", "Patience", "Question", "TextModel", "model_named"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'tenure.models' has no attribute {name!r}")
    return getattr(import_module(f"tenure.models.{_PLACES[name]}"), name)
