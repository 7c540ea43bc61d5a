"""The slash commands, as a table."""

from difflib import get_close_matches
from typing import Final

from msgspec import Struct

from tenure.errors import InputError


class Command(Struct, frozen=True):
    """A command, what may follow it, and what it does in a few words. `idle`: not while a turn runs."""

    name: str
    arguments: str
    about: str
    idle: bool = False


COMMANDS: Final = (
    Command("context", "", "what is in the window, and what the model saw"),
    Command("handoff", "[focus]", "let the model brief what came before", idle=True),
    Command("recall", "HANDLE or words", "look at what left the window, or bring it back"),
    Command("budget", "[tokens]", "the limits of the window, or a new target", idle=True),
    Command("policy", "[name]", "what decides what leaves, or another policy", idle=True),
    Command("why", "", "what left last, and why"),
    Command("ledger", "", "what the session cost, and what eviction saved"),
    Command("fork", "", "go on in a copy of this session", idle=True),
    Command("rewind", "[number]", "changes of files, or put them back as they were before one", idle=True),
    Command("export", "FILE", "write the whole record: .md to read, .json as messages"),
    Command("model", "[name]", "talk with another model", idle=True),
    Command("sessions", "", "go on with another session of this folder", idle=True),
    Command("mode", "[ask|edits|all|read-only]", "what may be done unasked"),
    Command("theme", "", "dark or light"),
    Command("help", "", "keys and commands"),
    Command("quit", "", "leave; the session can be gone on with"),
)
_BY_NAME: Final = {command.name: command for command in COMMANDS}


def matching(text: str) -> tuple[Command, ...]:
    """The commands that a beginning may become; none once the name is complete and something follows."""
    if not text.startswith("/") or " " in text or "\n" in text:
        return ()
    typed = text[1:].lower()
    return tuple(command for command in COMMANDS if command.name.startswith(typed))


def parsed(text: str) -> tuple[Command, str]:
    """The command that was typed, and what follows it. Raises InputError naming what is near."""
    name, _, rest = text[1:].strip().partition(" ")
    known = _BY_NAME.get(name.lower())
    if known is None:
        near = get_close_matches(name.lower(), _BY_NAME, 2) or list(_BY_NAME)
        raise InputError(f"/{name[:40]}", "no such command", " or ".join(f"/{each}" for each in near))
    return known, rest.strip()


def is_command(text: str) -> bool:
    """Whether a person typed a command, and no path such as `/etc/hosts`."""
    name = text[1:].split(maxsplit=1)[0] if text.startswith("/") and text[1:].strip() else ""
    return bool(name) and name.replace("-", "").isalpha()
