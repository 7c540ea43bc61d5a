"""A model that plays a sequence's script, and briefs when it is asked for one (an edge)."""

from collections.abc import AsyncGenerator
from typing import Any, cast

import msgspec

from tenure.apis.reply import Delta, WholeReply
from tenure.lab.stand_ins import briefed
from tenure.models.scripted import Script, ScriptedSpeaker, parse_script


class Player:
    """Plays a script to an agent; a question without tools is a summary's, and a stand-in answers it. Mutable. Lives for a whole sequence."""

    def __init__(self, script: Script) -> None:
        self.name, self.dialect = script.playing.model, script.playing.dialect
        self._playing = script.playing
        self._agent = ScriptedSpeaker(script)

    async def speak(self, body: bytes) -> AsyncGenerator[Delta | WholeReply, None]:
        """The next reply, or a brief."""
        request = cast(dict[str, Any], msgspec.json.decode(body))
        speaker = self._agent if request.get("tools") else self._summary(request)
        async for piece in speaker.speak(body):
            yield piece

    async def warm(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to close: the next task goes on with it."""

    def _summary(self, request: dict[str, Any]) -> ScriptedSpeaker:
        asked = str(request["messages"][-1]["content"])
        reply = {"model": self._playing.model, "dialect": self._playing.dialect, "replies": [{"text": briefed(asked)}]}
        return ScriptedSpeaker(parse_script(msgspec.json.encode(reply).decode(), "summary"))
