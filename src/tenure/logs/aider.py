"""aider's chat history (`.aider.chat.history.md` in a project's root): all its chats there, one after another.

aider writes down what is typed, printed and answered, and neither its prompts nor the files it sends. What it prints is mostly
for the user's eyes; `aider_notices` names what of it reaches the model. Commands are not sent, but for those that ask or whose
output was added. The editor of an architect and the fixing of lint errors have windows of their own, and are agents here.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.record.entry import Block, Origin, Role, Text, Thinking
from tenure.errors import InputError
from tenure.logs.aider_markdown import AiderChat, AiderPart, Writer, chats
from tenure.logs.aider_notices import (
    ADD_OUTPUT,
    ADDED,
    COMMITTED,
    EDIT_FILES,
    EDITOR_MODEL,
    ENDLESS,
    FIX_ALONE,
    FIX_ERRORS,
    MODEL,
    NO,
    NO_EDIT,
    REFUSED,
    RESTORED,
    RETRIED,
    SETTLED,
    STOPPED,
    YES,
    CommandEffect,
    agreed,
    command,
    is_notice,
    is_question,
    usage_in,
)
from tenure.logs.reader import Event
from tenure.logs.shape import bare
from tenure.logs.transcript import TranscriptBuilder, utc

ALLOWED: Final = "aider's chat history: markdown with `# aider chat started at` before each chat"

LEFT_OUT: Final = {  # commands that leave no draft
    CommandEffect.NOTHING: "command to aider: not sent to the model",
    CommandEffect.FILES: "command to aider that changes what the model sees: the text it brought is not in this log",
    CommandEffect.RUNS: "command whose output was not added to the chat",
    CommandEffect.PASTES: "command to aider: not sent to the model",
}
MAIN: Final = ""  # the conversation that is no agent's

_BLANK: Final = "<blank>"  # logged for an empty input
_DOCS: Final = "\n\n# Relevant docs:"  # what /help puts after the question
_START: Final = re.compile(rb"(?:\A|\n)# aider chat started at \d{4}-")
_REASONING: Final = re.compile(r"<(thinking-content-[0-9a-f]{32}|think|thinking|reasoning)>(.*?)</\1>\s*", re.DOTALL)
_LONG: Final = 200  # characters; who types that much word for word after the model?


class Aider:
    """Reads aider's chat history."""

    name = "aider"

    def recognises(self, head: bytes) -> bool:
        """Whether the file begins with the start of a chat, or within one that another follows."""
        text = bare(head)
        found = _START.search(text)
        return found is not None and (found.start() == 0 or text.startswith((b"> ", b"#### ")))

    def read(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        """Drafts in order. The window is new with each chat and after `/clear`."""
        return _AiderReading(MAIN).events(chunks)

    def read_agent(self, chunks: Iterable[bytes], agent: str) -> Iterator[Event]:
        """What an editor, or a fixer of lint errors, was asked and did."""
        return _AiderReading(agent).events(chunks) if agent else iter(())


class _AiderTurn(Struct, frozen=True):
    """What was typed or answered, and what aider printed after it."""

    said: AiderPart | None  # none before the first
    printed: tuple[AiderPart, ...] = ()


class _AiderReading:
    def __init__(self, wanted: str) -> None:
        self.transcript, self.wanted = TranscriptBuilder(), wanted
        self.conversation = MAIN
        self.agents = 0
        self.answer: AiderPart | None = None  # the last one
        self.model = self.editor = self.at = ""
        self.endless = False  # whether the model continues answers that were too long
        self.may_edit = False  # whether the architect's plan comes next, for the editor
        self.may_fix = False  # whether a linter's errors come next, for a coder of their own

    def events(self, chunks: Iterable[bytes]) -> Iterator[Event]:
        text = b"".join(chunks).removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
        read = list(chats(text))
        if not any(chat.started or any(part.writer is Writer.HUMAN for part in chat.parts) for chat in read):
            raise InputError("document", "found neither the start of a chat nor anything that was typed", ALLOWED)
        for chat in read:
            self._chat(chat)
            yield from self.transcript.take()
        if self.wanted == MAIN:
            yield from self.transcript.agents()
            yield from self.transcript.end()

    def _chat(self, chat: AiderChat) -> None:
        turns = _turns(chat.parts)
        self.conversation, self.answer, self.at = MAIN, None, utc(chat.started)
        self.may_edit = self.may_fix = False
        if not any(RESTORED.match(part.text) for part in turns[0].printed):
            self._new_window("new chat", chat.line)
        for n, turn in enumerate(turns):
            match turn.said:
                case None:
                    self._announced(turn.printed)
                case AiderPart(writer=Writer.MODEL):
                    self._answered(turn, turn.said)
                case AiderPart():
                    self._typed(turn, turn.said, turns[n + 1] if n + 1 < len(turns) else None)

    def _new_window(self, reason: str, line: int) -> None:
        if self.wanted == MAIN and not self.transcript.is_empty:
            self.transcript.clear(reason, line=line, at=self.at)

    def _add(self, role: Role, blocks: Sequence[Block], line: int, **fields: Any) -> None:
        at = self.at if self.conversation == MAIN else ""
        if self.conversation == MAIN:
            self.at = ""  # the log has the time of a chat's start and no other
        else:
            self.transcript.here(line, 0)
            self.transcript.agent(self.conversation)
        if self.conversation == self.wanted:
            self.transcript.add(role, blocks, line=line, at=at, **fields)

    # what the model said

    def _answered(self, turn: _AiderTurn, answer: AiderPart) -> None:
        self.answer = answer
        usage = next(filter(None, (usage_in(part.text) for part in turn.printed)), None)
        model = self.model if self.conversation == MAIN else self.editor or self.model
        self._add(Role.ASSISTANT, _answer(answer.text), answer.line, model=model, usage=usage)
        retried = next((part for part in turn.printed if RETRIED.match(part.text)), None)
        # Aider asks again as if the answer that broke off had not been. Of a model that continues its own answers, what it finished before
        # stays, and the log does not say how much that is.
        if retried is not None and self.conversation == self.wanted == MAIN and not self.endless:
            newest = self.transcript.count - 1
            self.transcript.drop("retry: the answer broke off", [newest], line=retried.line, at="")
        self._printed(turn.printed)

    # what was typed

    def _typed(self, turn: _AiderTurn, typed: AiderPart, after: _AiderTurn | None) -> None:
        text = typed.text
        if is_question(text) and "(Y)es/(N)o" in text:  # logged as if typed when a question was answered once for several
            self._printed(turn.printed)
            return
        if origin := self._machine(text):
            kind = "editor" if origin is Origin.MODEL else "linter"
            if origin is Origin.MODEL or not self.conversation.startswith(kind):  # a linter's agent stays for the next file
                self.agents += 1
                self.conversation = f"{kind}-{self.agents}"
            self.answer = None
            self._add(Role.USER, [Text(text=text, origin=origin)], typed.line)
            self._printed(turn.printed)
            return
        self.conversation, self.answer = MAIN, None
        if text.startswith(("/", "!")):
            self._commanded(turn, typed, after)
            return
        if text.strip() not in ("", _BLANK):
            self._add(Role.USER, _typed_blocks(text), typed.line)
        self._printed(turn.printed)

    def _machine(self, text: str) -> Origin | None:
        """Who wrote what is logged as if typed: the architect, or a linter."""
        if self.may_fix:
            return Origin.TOOL
        answer = self.answer
        if answer and (self.may_edit or len(text) > _LONG) and _plain(text) == _plain(_REASONING.sub("", answer.text, count=1)):
            return Origin.MODEL
        return None

    def _commanded(self, turn: _AiderTurn, typed: AiderPart, after: _AiderTurn | None) -> None:
        printed = turn.printed
        refused = any(REFUSED.match(part.text) for part in printed)
        does = CommandEffect.NOTHING if refused else command(typed.text) or CommandEffect.ASKS  # perhaps one of a newer version
        words: list[Block] = [Text(text=typed.text, origin=Origin.HUMAN)]
        match does:
            case CommandEffect.ASKS if _is_repeated(typed.text, after):
                pass
            case CommandEffect.ASKS if len(typed.text.split(maxsplit=1)) > 1:
                self._add(Role.USER, words, typed.line)
            case CommandEffect.CLEARS:
                self._new_window(typed.text.split()[0], typed.line)
            case CommandEffect.PASTES if pasted := next((part for part in printed if not is_notice(part.text)), None):
                printed = tuple(part for part in printed if part is not pasted)
                self._add(Role.USER, [Text(text=pasted.text, origin=Origin.HUMAN)], pasted.line)
            case CommandEffect.RUNS:
                if not self._printed(printed, words, typed.line):
                    self._skip(LEFT_OUT[does], typed)
                return
            case _:
                self._skip(LEFT_OUT.get(does, LEFT_OUT[CommandEffect.NOTHING]), typed)  # one that asks nothing changes the mode
        self._printed(printed)

    def _skip(self, reason: str, part: AiderPart) -> None:
        self.transcript.skip(reason, part.size, part.line)

    # what aider printed

    def _announced(self, printed: Sequence[AiderPart]) -> None:
        for line in (line for part in printed for line in part.text.splitlines()):
            if named := MODEL.match(line):
                self.model, self.endless = named[1], ENDLESS.search(line) is not None
            elif named := EDITOR_MODEL.match(line):
                self.editor = named[1]

    def _printed(self, printed: Sequence[AiderPart], run: Sequence[Block] = (), line: int = 0) -> bool:
        """Add one draft of what the model was given of `printed`; whether that is anything. `run` is the command that was run, if one was."""
        if not run:
            self._announced(printed)
        self.may_fix = any(FIX_ALONE.match(part.text) and agreed(part.text) for part in printed)
        self.may_edit = any(EDIT_FILES.match(part.text) and agreed(part.text) for part in printed)
        blocks: list[Block] = []
        held: list[AiderPart] = []  # what the next question may be about
        lines: list[int] = []
        errors: list[Block] = []
        refusal: list[Block] = []
        refused = applied = False
        for part in printed:
            text = part.text
            added = ADD_OUTPUT.match(text)
            if added is not None or (run and ADDED.match(text)):
                reply = added[1].strip() if added is not None else "y"
                if reply.lower() in NO:
                    self._only_shown(held, "command output that was not added to the chat")
                else:
                    blocks += [Text(text=reply, origin=Origin.HUMAN)] if reply.lower() not in YES else []
                    blocks += run
                    run = ()
                    blocks += _given(held, Origin.TOOL, lines)
            elif FIX_ERRORS.match(text) and agreed(text):
                errors += _given(held, Origin.TOOL, lines)
            elif STOPPED.match(text):  # before errors or a refusal are sent
                errors, refusal = [], []
            elif NO_EDIT.match(text):
                refused = True
                refusal += _given([replace(part, text=text.partition("\n")[2].strip())], Origin.HARNESS, lines)
            elif COMMITTED.match(text) and (applied or refused):
                blocks += _given([part], Origin.HARNESS, lines) if applied else []
                applied = False
            elif refused and not is_notice(text):
                refusal += _given([part], Origin.HARNESS, lines)
            elif not run and (SETTLED.match(text) or is_question(text)):
                applied = applied or text.startswith("Applied")
                self._only_shown(held)
            elif run or held or not is_notice(text):
                held.append(part)
        if run and _is_doubled(held):  # what a failing test printed is added without a question
            blocks += (*run, *_given(held, Origin.TOOL, lines))
        self._only_shown(held)
        blocks += (*refusal, *errors)
        if blocks:
            self._add(Role.USER, blocks, line or next(iter(lines), 0))
        return bool(blocks)

    def _only_shown(self, parts: list[AiderPart], reason: str = "output of aider: shown to the user, not to the model") -> None:
        for part in parts:
            self._skip(reason, part)
        parts.clear()


def _is_doubled(parts: list[AiderPart]) -> bool:
    """Whether the parts after the first repeat it line by line: that is how older versions logged what they added."""
    first, again = (
        [line.strip() for part in some for line in part.text.splitlines() if line.strip()] for some in (parts[:1], parts[1:])
    )
    return bool(first) and first == again


def _given(parts: list[AiderPart], origin: Origin, lines: list[int]) -> list[Block]:
    text = "\n".join(part.text for part in (parts[:1] if _is_doubled(parts) else parts)).strip()
    lines += [part.line for part in parts if text]
    parts.clear()
    return [Text(text=text, origin=origin)] if text else []


def _turns(parts: Sequence[AiderPart]) -> list[_AiderTurn]:
    """What was said, each with what was printed after it; the first turn has nothing said."""
    turns = [_AiderTurn(None)]
    for printed, group in groupby(parts, lambda part: part.writer is Writer.PROGRAM):
        if printed:
            turns[-1] = replace(turns[-1], printed=tuple(group))
        else:
            turns += [_AiderTurn(part) for part in group]
    return turns


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


def _is_repeated(text: str, after: _AiderTurn | None) -> bool:
    """Whether what a command asks is logged again, as what is sent."""
    if after is None or after.said is None or after.said.writer is not Writer.HUMAN:
        return False
    asked = text.split(maxsplit=1)[1:]
    sent = after.said.text
    return bool(asked) and (sent.startswith("# Question: ") or _plain(sent) == _plain(asked[0]))


def _plain(text: str) -> str:
    return " ".join(text.split())
