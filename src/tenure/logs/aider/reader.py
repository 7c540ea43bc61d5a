"""aider's chat history (`.aider.chat.history.md` in a project's root): all its chats there, one after another.

aider writes down what is typed, printed and answered, and neither its prompts nor the files it sends. What it prints is mostly
for the user's eyes; `aider_notices` says what of it the model is told. Commands are not sent, but for those that ask or whose
output was added. The editor of an architect and the fixing of lint errors have windows of their own, and are agents here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Draft, Origin, Role, Text, Thinking, Usage
from tenure.errors import InputError
from tenure.logs.aider.heard import Heard
from tenure.logs.aider.markdown import Chat, Part, Writer, chats
from tenure.logs.aider.notices import (
    EDIT_FILES,
    EDITOR_MODEL,
    ENDLESS,
    FIX_ALONE,
    MODEL,
    REFUSED,
    RESTORED,
    RETRIED,
    Command,
    agreed,
    command,
    counts,
    is_notice,
    is_question,
)
from tenure.logs.reader import Agent, Event, Rewritten
from tenure.logs.shape import bare
from tenure.logs.tally import Tally
from tenure.logs.transcript import utc
from tenure.logs.window import Window

NAME: Final = "aider"
ALLOWED: Final = "aider's chat history: markdown with `# aider chat started at` before each chat"

LEFT_OUT: Final = {  # commands that leave no draft
    Command.NOTHING: "command to aider: not sent to the model",
    Command.FILES: "command to aider that changes what the model sees: the text it brought is not in this log",
    Command.RUNS: "command whose output was not added to the chat",
    Command.PASTES: "command to aider: not sent to the model",
}
MAIN: Final = ""  # the conversation that is no agent's

_BLANK: Final = "<blank>"  # logged for an empty input
_DOCS: Final = "\n\n# Relevant docs:"  # what /help puts after the question
_START: Final = re.compile(rb"(?:\A|\n)# aider chat started at \d{4}-")
_REASONING: Final = re.compile(r"<(thinking-content-[0-9a-f]{32}|think|thinking|reasoning)>(.*?)</\1>\s*", re.DOTALL)
_LONG: Final = 200  # characters; who types that much word for word after the model?


class Aider:
    """Reads aider's chat history."""

    name = NAME

    def recognises(self, head: bytes) -> bool:
        """Whether the file begins with the start of a chat, or within one that another follows."""
        text = bare(head)
        found = _START.search(text)
        return found is not None and (found.start() == 0 or text.startswith((b"> ", b"#### ")))

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order. The window is new with each chat and after `/clear`."""
        reading = _Reading()
        for conversation, event in reading.events(chunks):
            if conversation == MAIN:
                yield event
        yield from reading.agents()
        yield from reading.tally.skipped()

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """What an editor, or a fixer of lint errors, was asked and did."""
        if agent:
            yield from (event for conversation, event in _Reading().events(chunks) if conversation == agent)


class _Turn(Struct, frozen=True):
    """What was typed or answered, and what aider printed after it."""

    said: Part | None  # none before the first
    printed: tuple[Part, ...] = ()


class _Reading:
    """Mutable while a file is read."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._found: list[Agent] = []
        self._window = Window()  # of the main conversation
        self._is_new = True  # whether nothing is in it
        self._conversation = MAIN
        self._answer: Part | None = None  # the last one
        self._model = self._editor = self._at = ""
        self._endless = False  # whether the model continues answers that were too long
        self._may_edit = False  # whether the architect's plan comes next, for the editor
        self._may_fix = False  # whether a linter's errors come next, for a coder of their own

    def agents(self) -> Iterator[Agent]:
        """The agents that the file turned out to hold."""
        yield from self._found

    def events(self, chunks: Iterable[bytes]) -> Iterator[tuple[str, Event]]:
        text = b"".join(chunks).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        found = list(chats(text))
        if not any(chat.started or any(part.writer is Writer.HUMAN for part in chat.parts) for chat in found):
            raise InputError("document", "found neither the start of a chat nor anything that was typed", ALLOWED)
        for chat in found:
            yield from self._chat(chat)

    def _chat(self, chat: Chat) -> Iterator[tuple[str, Event]]:
        turns = _turns(chat.parts)
        self._conversation, self._answer, self._at = MAIN, None, utc(chat.started)
        self._may_edit = self._may_fix = False
        if not any(RESTORED.match(part.text) for part in turns[0].printed):
            yield from self._new_window("new chat", chat.line)
        for n, turn in enumerate(turns):
            match turn.said:
                case None:
                    self._listen(turn.printed)
                case Part(writer=Writer.MODEL):
                    yield from self._answered(turn, turn.said)
                case Part():
                    yield from self._typed(turn, turn.said, turns[n + 1] if n + 1 < len(turns) else None)

    def _new_window(self, reason: str, line: int) -> Iterator[tuple[str, Event]]:
        if not self._is_new:
            self._is_new = True
            yield MAIN, Rewritten(reason=reason, line=line, at=self._at, drop_before=self._window.clear())

    def _draft(self, draft: Draft) -> tuple[str, Event]:
        if self._conversation == MAIN:
            draft, self._at = replace(draft, at=self._at), ""  # the log has the time of a chat's start and no other
            self._window.add()
            self._is_new = False
        else:
            self._found[-1] = replace(self._found[-1], messages=self._found[-1].messages + 1)
        return self._conversation, draft

    # what the model said

    def _answered(self, turn: _Turn, answer: Part) -> Iterator[tuple[str, Event]]:
        self._answer = answer
        usage = next(filter(None, map(_usage, turn.printed)), None)
        model = self._model if self._conversation == MAIN else self._editor or self._model
        yield self._draft(Draft(role=Role.ASSISTANT, blocks=_answer(answer.text), model=model, usage=usage, line=answer.line))
        retried = next((part for part in turn.printed if RETRIED.match(part.text)), None)
        if retried is not None:
            yield from self._thrown_away(retried)
        yield from self._told(turn.printed, [])

    def _thrown_away(self, retried: Part) -> Iterator[tuple[str, Event]]:
        """Say that the last answer broke off and did not stay: aider asks again as if it had not been.

        Of a model that continues its own answers, what it finished before stays, and the log does not say how much that is.
        """
        if self._conversation != MAIN or self._endless:
            return
        if gone := self._window.drop([self._window.count - 1]):
            drop_before, kept = gone
            yield MAIN, Rewritten(reason="retry: the answer broke off", line=retried.line, drop_before=drop_before, kept=kept)

    # what was typed

    def _typed(self, turn: _Turn, typed: Part, after: _Turn | None) -> Iterator[tuple[str, Event]]:
        text = typed.text
        if is_question(text) and "(Y)es/(N)o" in text:  # logged as if typed when a question was answered once for several
            yield from self._told(turn.printed, [])
            return
        if origin := self._machine(text):
            yield from self._asked_an_agent(turn, typed, origin)
            return
        self._conversation, self._answer = MAIN, None
        if text.startswith(("/", "!")):
            yield from self._commanded(turn, typed, after)
            return
        if text.strip() not in ("", _BLANK):
            yield self._draft(_user(_typed_blocks(text), typed.line))
        yield from self._told(turn.printed, [])

    def _machine(self, text: str) -> Origin | None:
        """Who wrote what is logged as if typed: the architect, or a linter."""
        if self._may_fix:
            return Origin.TOOL
        answer = self._answer
        if answer and (self._may_edit or len(text) > _LONG) and _plain(text) == _plain(_without_reasoning(answer.text)):
            return Origin.MODEL
        return None

    def _asked_an_agent(self, turn: _Turn, typed: Part, origin: Origin) -> Iterator[tuple[str, Event]]:
        kind = "editor" if origin is Origin.MODEL else "linter"
        if origin is Origin.MODEL or not self._conversation.startswith(kind):  # a linter's agent stays for the next file
            self._conversation = f"{kind}-{len(self._found) + 1}"
            self._found.append(Agent(id=self._conversation, line=typed.line, messages=0))
        self._answer = None
        yield self._draft(_user([Text(text=typed.text, origin=origin)], typed.line))
        yield from self._told(turn.printed, [])

    def _commanded(self, turn: _Turn, typed: Part, after: _Turn | None) -> Iterator[tuple[str, Event]]:
        printed = turn.printed
        refused = any(REFUSED.match(part.text) for part in printed)
        does = Command.NOTHING if refused else command(typed.text) or Command.ASKS  # perhaps one of a newer version
        match does:
            case Command.ASKS:
                if not _is_repeated(typed.text, after):
                    yield from self._asked(typed)
            case Command.CLEARS:
                yield from self._new_window(typed.text.split()[0], typed.line)
            case Command.PASTES:
                pasted = next((part for part in printed if not is_notice(part.text)), None)
                if pasted:
                    printed = tuple(part for part in printed if part is not pasted)
                    yield self._draft(_user([Text(text=pasted.text, origin=Origin.HUMAN)], pasted.line))
                else:
                    self._left_out(does, typed)
            case Command.RUNS:
                blocks: list[Block] = [Text(text=typed.text, origin=Origin.HUMAN)]
                told = list(self._told(printed, blocks, typed.line))
                if not told:
                    self._left_out(does, typed)
                yield from told
                return
            case _:
                self._left_out(does, typed)
        yield from self._told(printed, [])

    def _asked(self, typed: Part) -> Iterator[tuple[str, Event]]:
        words = typed.text.split(maxsplit=1)
        if len(words) > 1:
            yield self._draft(_user([Text(text=typed.text, origin=Origin.HUMAN)], typed.line))
        else:
            self._left_out(Command.NOTHING, typed)  # changes the mode

    def _left_out(self, does: Command, typed: Part) -> None:
        self.tally.add(LEFT_OUT[does], typed.line, typed.size)

    # what aider printed

    def _listen(self, printed: Sequence[Part]) -> None:
        """Take what the announcements say of the models."""
        for part in printed:
            for line in part.text.splitlines():
                if found := MODEL.match(line):
                    self._model, self._endless = found[1], ENDLESS.search(line) is not None
                elif found := EDITOR_MODEL.match(line):
                    self._editor = found[1]

    def _told(self, printed: Sequence[Part], run: list[Block], line: int = 0) -> Iterator[tuple[str, Event]]:
        """One draft of what the model is told of `printed`, if anything. `run` is the command that was run, if one was."""
        if not run:
            self._listen(printed)
        self._may_fix = any(FIX_ALONE.match(part.text) and agreed(part.text) for part in printed)
        self._may_edit = any(EDIT_FILES.match(part.text) and agreed(part.text) for part in printed)
        heard = Heard(run)
        for part in printed:
            heard.take(part)
        heard.close()
        for part, reason in heard.shown:
            self.tally.add(reason, part.line, part.size)
        if heard.blocks:
            yield self._draft(_user(heard.blocks, line or heard.line))


def _turns(parts: Sequence[Part]) -> list[_Turn]:
    """What was said, each with what was printed after it; the first turn has nothing said."""
    turns = [_Turn(None)]
    for printed, group in groupby(parts, lambda part: part.writer is Writer.PROGRAM):
        if printed:
            turns[-1] = replace(turns[-1], printed=tuple(group))
        else:
            turns += [_Turn(part) for part in group]
    return turns


def _user(blocks: Sequence[Block], line: int) -> Draft:
    return Draft(role=Role.USER, blocks=tuple(blocks), line=line)


def _typed_blocks(text: str) -> list[Block]:
    """A human's words; of a question to /help the documents after it are the harness's."""
    question, docs, rest = text.partition(_DOCS) if text.startswith("# Question: ") else (text, "", "")
    asked = Text(text=question, origin=Origin.HUMAN)
    return [asked, Text(text=docs.strip() + rest, origin=Origin.HARNESS)] if docs else [asked]


def _answer(text: str) -> tuple[Block, ...]:
    found = _REASONING.match(text)
    reasoning, said = (found[2].strip(), text[found.end() :]) if found else ("", text)
    thinking = (Thinking(text=reasoning),) if reasoning else ()
    return (*thinking, Text(text=said, origin=Origin.MODEL)) if said or not thinking else thinking


def _without_reasoning(text: str) -> str:
    found = _REASONING.match(text)
    return text[found.end() :] if found else text


def _usage(part: Part) -> Usage | None:
    """The tokens of a call. `sent` includes what was written to the cache, and what was read only where less (DeepSeek)."""
    found = counts(part.text)
    if found is None:
        return None
    sent, write, read, output = found
    apart = write or read > sent
    return Usage(uncached=max(0, sent - write - (0 if apart else read)), cache_write=write, cache_read=read, output=output)


def _is_repeated(text: str, after: _Turn | None) -> bool:
    """Whether what a command asks is logged again, as what is sent."""
    if after is None or after.said is None or after.said.writer is not Writer.HUMAN:
        return False
    asked = text.split(maxsplit=1)[1:]
    sent = after.said.text
    return bool(asked) and (sent.startswith("# Question: ") or _plain(sent) == _plain(asked[0]))


def _plain(text: str) -> str:
    return " ".join(text.split())
