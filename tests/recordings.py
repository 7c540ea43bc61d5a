"""Sessions for audits: made-up sources, and a session in which every sort of waste and of need occurs."""

import json
from collections.abc import Iterable
from pathlib import Path

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.record.entry import Draft
from tenure.lab.audit.audit import AuditRequest, audit
from tenure.lab.audit.report import Audit, AuditOutput
from tenure.lab.source import SessionSource
from tenure.logs.reader import Event
from tenure.testing.builders import by_words, call, human, reply, result

SMALL = Budget(ceiling=600, floor=300, window=100_000)
LINES = "\n".join(f"{n}: a line of the module, value_{n * 7919}" for n in range(1, 61))


def made_up(*events: Event) -> SessionSource:
    """A source of these events."""
    return SessionSource("session.jsonl", lambda: ("made-up", iter(events)), lambda: "ab" * 32)


def lines_of(source: SessionSource, *policies: str, budget: Budget = SMALL, head_tokens: int = 0) -> list[AuditOutput]:
    """The lines of an audit, every word a token."""
    return list(audit(source, AuditRequest(policies=policies, budget=budget, head_tokens=head_tokens), by_words))


def audited(*events: Event, policies: Iterable[str] = (), budget: Budget = SMALL, head_tokens: int = 0) -> Audit:
    """The report of these events."""
    report = lines_of(made_up(*events), *policies, budget=budget, head_tokens=head_tokens)[-1]
    assert isinstance(report, Audit)
    return report


def step(tool: str, text: str, *, error: bool = False, **arguments: object) -> tuple[Draft, Draft]:
    """A call and its result."""
    return reply(call(tool, **arguments)), result(text, error=error)


def worked() -> tuple[Draft, ...]:
    """Reads, an edit of what was read, a read again, and a line of an early read that the last call needs."""
    return (
        human("Make the parser accept comments."),
        *step("read", LINES, path="src/parser.py"),
        *step("read", LINES.replace("module", "lexer"), path="src/lexer.py"),
        *step("edit", "ok", path="src/parser.py", old_string="skip()", new_string="keep()"),
        *step("bash", LINES.replace("module", "output of the tests"), command="pytest -q tests"),
        human("Go on."),
        *step("read", LINES.replace("module", "lexer"), path="src/lexer.py"),
        *step("bash", LINES.replace("module", "log"), command="cat logs/run.txt"),
        *step("edit", "ok", path="src/lexer.py", old_string="9: a line of the lexer, value_71271", new_string="9: done"),
        *step("bash", "ok", command="grep -n value_15838 src/parser.py"),
        reply("Both keep comments now."),
    )


def message_file(path: Path, tasks: int = 6) -> Path:
    """A chat of several tasks as a plain file of messages, larger than a ceiling of 3k tokens; the last step edits what the first one read."""
    messages: list[dict[str, object]] = []

    def step(name: str, text: str, **arguments: object) -> None:
        call_id = f"call_{len(messages)}"
        made = {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        messages.append({"role": "assistant", "content": None, "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": call_id, "content": text})

    for task in range(tasks):
        lines = LINES.replace("\n", f"\n{task}-")
        messages.append({"role": "user", "content": f"Task {task}: make part {task} accept comments."})
        step("grep", f"found in part {task}\n{lines}", pattern=f"class Parser{task}")
        step("read", f"part {task}\n{lines}", path=f"src/parser_{task}.py")
        step("edit", "ok", path=f"src/parser_{task}.py", old=f"{task}-7: a line of the module, value_55433", new="keep()")
        messages.append({"role": "assistant", "content": f"Part {task} keeps its comments now."})
    step("edit", "ok", path="src/parser_0.py", old_string="0-9: a line of the module, value_71271", new_string="keep()")
    messages.append({"role": "assistant", "content": "Done."})
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path
