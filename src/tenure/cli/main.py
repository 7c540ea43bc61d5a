"""The command line (an edge): commands parse, call one function and print. Every error is one line on standard error, never a traceback."""

import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tenure.cli.talking import is_interactive, talk_plainly
from tenure.errors import InputError, TenureError
from tenure.extras import not_installed

if TYPE_CHECKING:
    import typer

BAD_INPUT = 2  # exit code of what cannot be read or understood; also that of wrong usage
COMPLETION: Final = "_TENURE_COMPLETE"  # set by a shell that asks what could be typed next
INTERRUPTED: Final = 130  # exit code after Ctrl-C at a question
FAILED = 1  # exit code of a broken promise, or of a store or disk that fails

# Where each command is, in the order of the help. Loading all of them takes longer than the terminal interface may take to its first prompt.
COMMANDS: Final = {
    "run": "tenure.cli.run",
    "demo": "tenure.cli.demo",
    "sessions": "tenure.cli.sessions",
    "show": "tenure.cli.show",
    "context": "tenure.cli.context_view",
    "recall": "tenure.cli.recall",
    "why": "tenure.cli.why",
    "rewind": "tenure.cli.rewind",
    "verify": "tenure.cli.verify",
    "replay": "tenure.cli.replay",
    "query": "tenure.cli.query",
    "audit": "tenure.cli.audit",
    "judge": "tenure.cli.judge",
    "evidence": "tenure.cli.evidence",
    "bench": "tenure.cli.bench",
}
_PANELS: Final = {
    **dict.fromkeys(("run", "demo"), "The agent"),
    **dict.fromkeys(("sessions", "show", "context", "recall", "why", "rewind", "verify"), "Recorded sessions"),
    **dict.fromkeys(("replay", "query", "audit", "judge", "evidence", "bench"), "Measurements"),
}


def made(commands: Iterable[str] = COMMANDS) -> "typer.Typer":
    """The program with these commands."""
    import typer

    from tenure.cli.interactive import interactive

    app = typer.Typer(
        name="tenure",
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True, help=_help(interactive))(interactive)
    for name in commands:
        command = getattr(import_module(COMMANDS[name]), name)
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                each.help = _help(each.callback)
            app.add_typer(command, rich_help_panel=_PANELS[name])
        else:
            app.command(help=_help(command), rich_help_panel=_PANELS[name])(command)
    return app


def _help(command: object) -> str:
    """A command's docstring, each paragraph on one line: the terminal wraps it."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in (inspect.getdoc(command) or "").split("\n\n"))


def wanted(arguments: Sequence[str]) -> Iterable[str]:
    """The commands that these arguments may mean: one, none where a person just talks with the agent, or all, to choose from or to help with."""
    if arguments and arguments[0] in COMMANDS:
        return (arguments[0],)
    talks = is_interactive() and "--help" not in arguments and not (arguments and not arguments[0].startswith("-"))
    return () if talks and not COMMANDS.keys() & set(arguments) else COMMANDS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given and is_interactive() and COMPLETION not in os.environ:
            return talk_plainly(os.environ.get("TENURE_MODEL", ""), os.environ.get("TENURE_HELPER", ""))
        return _invoked(given)
    except SystemExit as done:  # shell completion
        return done.code if isinstance(done.code, int) else 0
    except ModuleNotFoundError as error:
        missing = not_installed(error)
        if missing is None:
            raise
        return _say(str(missing), BAD_INPUT)
    except InputError as error:
        return _say(str(error), BAD_INPUT)
    except TenureError as error:
        return _say(str(error), FAILED)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _say(f"{error.filename or 'the disk'}: {error.strerror or error}", FAILED)
    return 0


def _invoked(given: Sequence[str]) -> int:
    """Run the command that these arguments name; the exit code."""
    import typer

    wrong_usage: type[Exception] = typer.BadParameter.__mro__[1]  # click's UsageError, which typer has a copy of since 0.16
    try:
        code: object = made(wanted(given))(given, prog_name="tenure", standalone_mode=False)
    except wrong_usage as error:
        usage = _usage(error)
        return _say(usage, BAD_INPUT) if usage else BAD_INPUT  # without one the help was printed
    except typer.Abort:
        return _say("stopped", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> str:
    """What is wrong with the arguments, and where help is, in one sentence; empty where a group of commands was named without one."""
    path: str = getattr(getattr(error, "ctx", None), "command_path", "tenure")
    text: str = getattr(error, "format_message", error.__str__)()
    if not text:
        return ""
    return f"{text[:1].lower()}{text[1:].rstrip('.')}; see {path} --help"


def _say(error: str, code: int) -> int:
    from tenure.cli import words

    for line in f"tenure: {error}".splitlines():
        words.screen(stderr=True, wrap=False).print(words.plain(line), style="red")
    return code


if __name__ == "__main__":
    sys.exit(main())
