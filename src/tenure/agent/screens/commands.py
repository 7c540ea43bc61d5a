"""The slash commands as a table, and the texts of those that only report."""

from collections.abc import Sequence
from difflib import get_close_matches
from textwrap import wrap
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from textual.content import Content

from tenure.agent.screens import clean
from tenure.engine.meter import figures
from tenure.errors import InputError

if TYPE_CHECKING:  # loaded behind the first paint
    from tenure.agent.session import Agent
    from tenure.agent.settings import Settings
    from tenure.agent.snapshots import Rewound, Snapshot


class SlashCommand(Struct, frozen=True):
    """A command, what may follow it, and what it does in a few words. `idle`: not while a turn runs."""

    name: str
    arguments: str
    about: str
    idle: bool = False


COMMANDS: Final = (
    SlashCommand("context", "", "what is in the window, and what the model saw"),
    SlashCommand("handoff", "[focus]", "let the model brief what came before", idle=True),
    SlashCommand("recall", "HANDLE or words", "look at what left the window, or bring it back"),
    SlashCommand("budget", "[tokens]", "the limits of the window, or a new target", idle=True),
    SlashCommand("policy", "[name]", "what decides what leaves, or another policy", idle=True),
    SlashCommand("set", "[name value]", "all settings, or another value of one from now on", idle=True),
    SlashCommand("why", "", "what left last, and why"),
    SlashCommand("ledger", "", "what the session cost, and what eviction saved"),
    SlashCommand("fork", "[user:3]", "go on in a copy of this session, or of what came before a turn", idle=True),
    SlashCommand("rewind", "[number or user:3]", "changes of files, or put them back; back to a turn, files and all", idle=True),
    SlashCommand("title", "[words]", "what this session is called in lists"),
    SlashCommand("undo", "", "put the files back as they were before the newest change", idle=True),
    SlashCommand("export", "FILE", "write the whole record: .md to read, .json as messages"),
    SlashCommand("new", "", "begin a new session in this folder", idle=True),
    SlashCommand("model", "[name]", "talk with another model", idle=True),
    SlashCommand("sessions", "", "go on with another session of this folder", idle=True),
    SlashCommand("mode", "[ask|edits|all|read-only|plan]", "what may be done unasked"),
    SlashCommand("theme", "", "dark or light"),
    SlashCommand("help", "", "keys and commands"),
    SlashCommand("quit", "", "leave; the session can be gone on with"),
)
_ALSO: Final = {"clear": "new", "exit": "quit", "resume": "sessions", "compact": "handoff"}  # by which other agents know them
_BY_NAME: Final = {command.name: command for command in COMMANDS}


def matching(text: str) -> tuple[SlashCommand, ...]:
    """The commands that a beginning may become; none once the name is complete and something follows."""
    if not text.startswith("/") or " " in text or "\n" in text:
        return ()
    typed = text[1:].lower()
    return tuple(command for command in COMMANDS if command.name.startswith(typed))


def parsed(text: str) -> tuple[SlashCommand, str]:
    """The command that was typed, and what follows it. Raises InputError naming what is near."""
    name, _, rest = text[1:].strip().partition(" ")
    known = _BY_NAME.get(_ALSO.get(name.lower(), name.lower()))
    if known is None:
        near = get_close_matches(name.lower(), _BY_NAME, 2) or list(_BY_NAME)
        raise InputError(f"/{name[:40]}", "no such command", " or ".join(f"/{each}" for each in near))
    return known, rest.strip()


def is_command(text: str) -> bool:
    """Whether a person typed a command, and no path such as `/etc/hosts`."""
    name = text[1:].split(maxsplit=1)[0] if text.startswith("/") and text[1:].strip() else ""
    return bool(name) and name.replace("-", "").isalpha()


_CHANGES: Final = 12  # that are listed
_KEYS: Final = (
    ("Enter", "send; Shift+Enter, Ctrl+J or a final \\ for a new line"),
    ("@ and !", "@name finds a file, and shows an image; !command runs it in the shell"),
    ("Up, Down", "what was typed before; or the commands, while one is being typed"),
    ("Ctrl+R", "search what was typed in this folder, in earlier sessions too"),
    ("Esc", "stop the turn"),
    ("PageUp, PageDown", "scroll the transcript; Ctrl+End follows it again"),
    ("Ctrl+O", "the context viewer"),
    ("Ctrl+T", "dark or light"),
    ("Ctrl+C", "stop the turn; twice, leave"),
)
_ROOMY: Final = 100


def help_text(width: int) -> Content:
    """Keys and commands, in lines of at most so many cells; below 100 what a command takes is left out."""
    keys = [(key, "bold", about) for key, about in _KEYS]
    commands = [
        (f"/{each.name} {each.arguments}" if width >= _ROOMY else f"/{each.name}", "bold $text-accent", each.about)
        for each in COMMANDS
    ]
    return Content("\n\n").join([_listed(keys, width), _listed(commands, width)])


def _listed(rows: Sequence[tuple[str, str, str]], width: int) -> Content:
    """Words and what they mean, side by side; a meaning that needs several lines stays on its side."""
    side = min(max(len(word) for word, _, _ in rows), width // 2) + 2
    parts: list[Content] = []
    for word, style, about in rows:
        first, *more = wrap(about, max(16, width - side)) or [""]
        parts.append(Content.assemble((f"{word:<{side}}", style), first))
        parts += [Content(" " * side + line) for line in more]
    return Content("\n").join(parts)


def rewind_text(changes: "Sequence[Snapshot]") -> str:
    """The newest changes of files, and how to undo them."""
    if not changes:
        return "no change of files is kept in this session"
    lines = [f"{each.number:>4}  {each.time[11:19]}  before {clean.line(each.cause, 80)}" for each in changes[-_CHANGES:]]
    return "\n".join((*lines, "/rewind NUMBER puts the files back as they were before that change; the conversation stays"))


def rewound_text(done: "Rewound") -> str:
    """What became of the files."""
    left = (
        f"; {len(done.left):,} left as they are, since no copy of them is kept: {', '.join(done.left[:3])}" if done.left else ""
    )
    return clean.line(
        f"{len(done.written):,} files written, {len(done.removed):,} removed{left}; /rewind lists this too, to undo it", 400
    )


def why_text(agent: "Agent") -> Content:
    """What was decided last, and the last commit with its account."""
    from tenure.engine.lifecycle.decision import account

    context = agent.context
    parts = [f"Last decision: {context.decision}" if context.decision is not None else "Nothing was decided yet."]
    for commit in reversed(context.session.commits[-20:]):
        if commit.moment == "admission":
            continue
        took = f"{figures.tokens(commit.tokens_before)} → {figures.tokens(commit.tokens_after)} tokens"
        parts.append(f"\nCommit {commit.n} by {commit.policy} ({commit.moment}): {commit.reason}; {took}")
        if commit.price is not None:
            parts.append(account(commit.price, assumed=not context.session.setup.prices.known))
        parts += [f"  {act.kind} {act.level} {act.object}" for act in commit.actions[:40]]
        if len(commit.actions) > 40:
            parts.append(f"  … {len(commit.actions) - 40} more")
        break
    else:
        parts.append("\nNothing has left the window.")
    gauge = agent.gauge.of_window
    evicts = f"; evicts at {agent.gauge.limit:,}" if agent.evicts and agent.gauge.limit < gauge.limit else ""
    parts.append(
        f"\nWindow: {gauge.tokens:,} of {gauge.limit:,} provider tokens, {gauge.percent:.0f} %{', estimated' if gauge.estimated else ''}"
        f"{evicts}."
    )
    return Content(clean.text("\n".join(parts)))


def ledger_text(agent: "Agent", width: int) -> Content:
    """The statement of the session."""
    from tenure.engine.meter import statement

    ledger = agent.ledger
    if not ledger.accounts:
        return Content("No call has reported what it used.")
    notes = [f"{note.label}: {note.text}" for note in statement.notes(ledger)]
    return Content(clean.text("\n".join([statement.table(ledger, width), "", *notes])))


def budget_text(agent: "Agent") -> str:
    """The limits in force."""
    budget = agent.context.session.setup.budget
    limits = [
        f"{name} {value:,}"
        for name, value in (("target", budget.target), ("ceiling", budget.ceiling), ("window", budget.window))
        if value is not None
    ]
    return f"budget: {', '.join(limits)}; one batch goes down to {budget.floor_of(budget.limit):,}. /budget 60k sets a target"


def settings_text(settings: "Settings", width: int) -> Content:
    """Every setting with its value and what it is."""
    from tenure.agent.settings_file import SETTINGS, shown

    rows = [(each.name, "bold", f"{shown(settings, each) or '·'}  {each.about} ({each.form})") for each in SETTINGS]
    return Content("\n\n").join(
        [_listed(rows, width), Content("/set NAME VALUE changes one; `tenure settings` says where they are kept.")]
    )


def policy_text(agent: "Agent") -> str:
    """Who decides what leaves."""
    from tenure.engine.policies import POLICIES

    policy = agent.context.session.setup.policy
    return f"policy: {policy.name if policy is not None else 'none'}; there are {', '.join(POLICIES)}"
