"""The one place that calls a model. Edge: it imports the core, and the core never imports it.

    model = model_named("openai:gpt-5-mini")
    answer = model(Question(system="Be brief.", messages=("What is a prefix cache?",)))

A model is any callable that takes a `Question` and gives an `Answer` or raises `ModelError`. Importing this loads no SDK.
"""

from tenure.models.anthropic import AnthropicModel
from tenure.models.listen import Cancel, Patience
from tenure.models.model import Model, model_named
from tenure.models.openai import OpenAIModel
from tenure.models.question import Answer, Question
from tenure.models.text import TextModel

__all__ = ["Answer", "AnthropicModel", "Cancel", "Model", "OpenAIModel", "Patience", "Question", "TextModel", "model_named"]
