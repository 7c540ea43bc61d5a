"""Which reader a file needs, told from its first bytes and never from its name.

A new format is one file with its reader and one name in `READERS`; readers that recognise more stand behind those that ask for more.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, cast

from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.logs.aider import Aider
from tenure.logs.atif import Atif
from tenure.logs.claude_code import ClaudeCode
from tenure.logs.cline import ClineReader
from tenure.logs.codex import Codex
from tenure.logs.copilot_cli import CopilotCli
from tenure.logs.gemini_cli import GeminiCli
from tenure.logs.goose import Goose
from tenure.logs.inspect_log.reader import InspectLog
from tenure.logs.json_files import HEAD, opened
from tenure.logs.messages import READERS as MESSAGES
from tenure.logs.mini_swe_agent import MiniSweAgent
from tenure.logs.opencode import OpenCode
from tenure.logs.openhands.reader import OpenHands
from tenure.logs.pi import Pi
from tenure.logs.reader import Event, HasAgents, Reader, Skipped
from tenure.logs.shape import opening
from tenure.logs.specstory import SpecStory
from tenure.logs.swe_agent import SweAgent
from tenure.logs.tau_bench import TauBench
from tenure.logs.who_and_when import WhoAndWhen
from tenure.plugins import usable

READERS: Final[tuple[Reader, ...]] = (
    ClaudeCode(),
    Codex(),
    CopilotCli(),
    Pi(),
    OpenCode(),
    GeminiCli(),
    InspectLog(),
    MiniSweAgent(),
    SweAgent(),
    OpenHands(),
    SpecStory(),
    ClineReader(),
    Goose(),
    Atif(),
    TauBench(),
    Aider(),
    WhoAndWhen(),
    *MESSAGES,
)


def detect(head: bytes) -> Reader | None:
    """The first reader that recognises a file starting with `head`: ours, those of other packages, then those of plain messages."""
    known = chain(READERS[: -len(MESSAGES)], cast("tuple[Reader, ...]", usable("readers")), MESSAGES)
    return next((reader for reader in known if _recognises(reader, head)), None)


def _recognises(reader: Reader, head: bytes) -> bool:
    try:
        return reader.recognises(head)
    except Exception:  # a reader of another package that fails is none
        if reader in READERS:
            raise
        return False


def read(chunks: Iterable[bytes], where: str = "session", agent: str = "") -> tuple[Reader, Iterator[Event]]:
    """The reader that fits and the events of the file: of its main conversation, or of that of a sub-agent.

    Raises InputError, naming `where`, when no reader fits; its events raise it when the file does not hold the sub-agent.
    """
    damage: list[InputError] = []
    head, whole = opened(_until_damage(chunks, damage))
    reader = detect(head[:HEAD])
    if reader is None:
        start = head[:40].decode("utf-8", "replace")
        found = f"found a file that starts with {start!r}" if opening(head) else "found an empty file"
        raise InputError(where, found, "one of the formats " + ", ".join(reader.name for reader in READERS))
    return reader, _with_damage(_of_agent(reader, whole, where, agent) if agent else reader.read(whole), damage)


def _of_agent(reader: Reader, chunks: Iterable[bytes], where: str, agent: str) -> Iterator[Event]:
    any_yet = False
    for event in reader.read_agent(chunks, agent) if isinstance(reader, HasAgents) else ():
        any_yet = any_yet or isinstance(event, Draft)
        yield event
    if not any_yet:
        raise InputError(where, f"no sub-agent {agent!r}", "the id of one that `tenure show` names")


def _until_damage(chunks: Iterable[bytes], damage: list[InputError]) -> Iterator[bytes]:
    """The chunks up to where an archive turns out to be damaged, which is remembered; damage before the first one raises."""
    any_yet = False
    try:
        for chunk in chunks:
            yield chunk
            any_yet = True
    except InputError as error:
        if not any_yet:
            raise
        damage.append(error)


def _with_damage(events: Iterator[Event], damage: list[InputError]) -> Iterator[Event]:
    yield from events
    yield from (Skipped(line=0, bytes=0, reason=f"{error.found}: what followed is left out") for error in damage)
