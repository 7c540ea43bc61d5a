"""The session's own model as one that answers questions: for handoffs and plans (an edge). Promise: a helper that fails changes nothing."""

import asyncio

from tenure.agent.catalogue import is_scripted
from tenure.agent.keys import configuration_folder, key_for
from tenure.agent.opening import Parts
from tenure.dialects.json_text import dump
from tenure.errors import Failure, ModelError
from tenure.models.listen import Cancel
from tenure.models.model import Model, model_named
from tenure.models.question import Answer, Question
from tenure.models.requests import in_words
from tenure.models.speaker import Speaker, Whole


def helper_of(parts: Parts) -> Model:
    """A model that takes questions. Raises InputError or ModelError when there is none."""
    choice, world = parts.choice, parts.world
    if is_scripted(choice.spec) or world.speaker is not None:
        return SpeakerModel(parts.speaker)
    key = key_for(choice, world.environment, configuration_folder(world.environment, world.home))
    return model_named(f"{choice.api}:{choice.name}", base_url=choice.base_url or None, api_key=key, provider=choice.provider)


class SpeakerModel:
    """A speaker that is asked one question at a time, from a thread without an event loop."""

    def __init__(self, speaker: Speaker) -> None:
        self.name = speaker.name
        self._speaker = speaker

    def __call__(self, question: Question, *, cancel: Cancel | None = None) -> Answer:  # noqa: ARG002 - it does not take long
        """The whole answer. Raises ModelError."""
        content = dump({"model": self.name, "messages": [{"role": "user", "content": in_words(question)}]})
        whole = asyncio.run(self._heard(content.encode()))
        if not whole.text.strip():
            raise ModelError(Failure.BAD_REPLY, f"{self.name}: the answer is empty")
        return Answer(text=whole.text, model=whole.model or self.name, stop=whole.stop, usage=whole.usage)

    async def _heard(self, body: bytes) -> Whole:
        async for piece in self._speaker.speak(body):
            if isinstance(piece, Whole):
                return piece
        raise ModelError(Failure.CUT_SHORT, f"{self.name}: the answer has no end")
