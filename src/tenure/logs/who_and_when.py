"""Who&When's failures of agent teams: Magentic-One on GAIA and AssistantBench, and teams that AG2's Captain put together.

A file holds one task with its `history` (`{role | name, content}`), or, exported from Hugging Face, an array of such tasks or one
on each line. The team counts as the assistant; what comes back from browsers, files and terminals is a tool's. The ground truth
and the annotation of the mistake are no conversation, and the question is there again as the first message.
"""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, NamedTuple

from msgspec import Raw, Struct

from tenure.engine.record.entry import Origin, Role
from tenure.logs.json_files import Element, first_keys, samples
from tenure.logs.reader import Event
from tenure.logs.salvage import DamagedJson, decode
from tenure.logs.shape import opening
from tenure.logs.transcript import TranscriptBuilder

ALLOWED: Final = "Who&When's log: an object with `history`, an array of them, or one on each line"


class _As(NamedTuple):
    role: Role
    origin: Origin


_TASK: Final = _As(Role.USER, Origin.HUMAN)
_TEAM: Final = _As(Role.ASSISTANT, Origin.MODEL)
_TOOL: Final = _As(Role.USER, Origin.TOOL)
_FRAME: Final = _As(Role.USER, Origin.HARNESS)

# The first that fits the speaker: `name` where there is one, else `role`.
SPEAKERS: Final = (
    (re.compile(r"human$|user$", re.IGNORECASE), _TASK),
    (re.compile(r"system$", re.IGNORECASE), _As(Role.SYSTEM, Origin.HARNESS)),
    (re.compile(r"Orchestrator \(termination condition\)"), _FRAME),
    (re.compile(r"Orchestrator"), _TEAM),  # (thought), (-> WebSurfer), (final answer)
    (re.compile(r"(?:Multimodal)?(?:Web|File)Surfer|Web ?Serving_Expert", re.IGNORECASE), _TOOL),
    (re.compile(r"Computer[ _]?Terminal|Executor|tool$|function$", re.IGNORECASE), _TOOL),
)

# What only the framework can have written, whoever it is ascribed to.
WORDINGS: Final = (
    (re.compile(r"exitcode: -?\d+ \("), _TOOL),
    (re.compile(r"Address: .*\n(?:Title: |Viewport )"), _TOOL),
    (re.compile(r"Next speaker \w+\s*(?:\n|$)|Stalled\.\.\.|There is no code from the last"), _FRAME),
)

_LABELS: Final = frozenset(("mistake_agent", "mistake_step", "mistake_reason", "is_correct", "is_corrected", "question_ID"))
_SPOKEN: Final = re.compile(rb'"role"\s*:\s*"(?:human"|Orchestrator \()|"name"\s*:\s*"(?:Computer_terminal|[A-Za-z]+_Expert)"')


class _WhoAndWhenMessage(Struct, frozen=True, gc=False):
    content: str | list[Raw] | None = None
    role: str | None = None
    name: str | None = None


class _WhoAndWhenPart(Struct, frozen=True, gc=False):
    text: str | None = None


class _WhoAndWhenTask(Struct, frozen=True, gc=False):
    history: list[Raw]
    system_prompt: dict[str, str | None] | list[str | None] | str | None = None


class WhoAndWhen:
    """Reads Who&When's logs."""

    name = "who-and-when"

    def recognises(self, head: bytes) -> bool:
        """Whether the first task has a history beside its annotation, or one in which such a team speaks."""
        if opening(head) not in ("{", "["):
            return False
        found = first_keys(head)
        return "history" in found and (len(_LABELS.intersection(found)) > 1 or _SPOKEN.search(head) is not None)

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """The prompts of the agents, then one draft per message, task by task."""
        transcript = TranscriptBuilder()
        return transcript.run(
            samples(chunks, _WhoAndWhenTask, ALLOWED, "task"), lambda place, task: _add(transcript, place, task)
        )


def _add(transcript: TranscriptBuilder, place: Element, task: _WhoAndWhenTask) -> None:
    if not transcript.is_empty:
        transcript.clear("new sample")
    prompts = task.system_prompt  # an export may name agents of other tasks, without a text
    for text in [prompts] if isinstance(prompts, str) else prompts.values() if isinstance(prompts, dict) else prompts or ():
        transcript.text(Role.SYSTEM, text if text and text.strip() else "")
    asked = False
    for element, message in transcript.inside(task.history, place, _WhoAndWhenMessage, "message"):
        if (text := _text(message)).strip():
            role, origin = _who(message, text, asked)
            asked = asked or role is not Role.SYSTEM
            transcript.text(role, text, origin, line=element.line, model="")


def _who(message: _WhoAndWhenMessage, text: str, asked: bool) -> _As:
    """Whose words these are. The first message is the task, also where AG2's manager passes it on with a plan."""
    speaker = message.name or message.role or ""
    by_name = next((who for pattern, who in SPEAKERS if pattern.match(speaker)), _TEAM)
    if not asked and by_name.role is not Role.SYSTEM:
        return _TASK
    return next((who for pattern, who in WORDINGS if pattern.match(text)), by_name)


def _text(message: _WhoAndWhenMessage) -> str:
    if not isinstance(message.content, list):
        return message.content or ""
    texts: list[str] = []
    for part in message.content:
        with suppress(DamagedJson):
            texts.append(decode(bytes(part), _WhoAndWhenPart).text or "")
    return "\n".join(filter(None, texts))
