"""The command line (an edge): commands parse, call one function and print. Every error is a sentence, never a traceback."""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Final

from tenure.cli.talking import is_interactive, talk_plainly
from tenure.errors import InputError, TenureError

if TYPE_CHECKING:
    import typer

BAD_INPUT = 2  # exit code of what cannot be read or understood; also that of wrong usage
FAILED = 1  # exit code of a broken promise, or of a store or disk that fails

# Where each command is. Loading all of them takes longer than the terminal interface may take to its first prompt.
COMMANDS: Final = {
    "replay": "tenure.cli.replay",
    "show": "tenure.cli.show",
    "recall": "tenure.cli.recall",
    "audit": "tenure.cli.audit",
    "evidence": "tenure.cli.evidence",
    "judge": "tenure.cli.judge",
    "demo": "tenure.cli.demo",
    "sessions": "tenure.cli.sessions",
    "why": "tenure.cli.why",
    "run": "tenure.cli.run",
    "context": "tenure.cli.context_view",
    "bench": "tenure.cli.bench",
}


def made(commands: Iterable[str] = COMMANDS) -> "typer.Typer":
    """The program with these commands."""
    import typer

    from tenure.cli.interactive import interactive

    app = typer.Typer(
        name="tenure",
        help="Manage the life of everything in an LLM agent's context window.",
        add_completion=False,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback(invoke_without_command=True)(interactive)
    for name in commands:
        command = getattr(import_module(COMMANDS[name]), name)
        if isinstance(command, typer.Typer):
            app.add_typer(command)
        else:
            app.command()(command)
    return app


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
        if not given and is_interactive():
            return talk_plainly(os.environ.get("TENURE_MODEL", ""), os.environ.get("TENURE_HELPER", ""))
        made(wanted(given))(given, prog_name="tenure")
    except SystemExit as done:  # wrong usage, and a command's own code
        return done.code if isinstance(done.code, int) else 0
    except InputError as error:
        return _say(str(error), BAD_INPUT)
    except TenureError as error:
        return _say(str(error), FAILED)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _say(f"{error.filename or 'the disk'}: {error.strerror or error}", FAILED)
    return 0


def _say(error: str, code: int) -> int:
    from tenure.cli import words

    words.screen(stderr=True, wrap=False).print(words.plain(f"tenure: {error}"), style="red")
    return code


if __name__ == "__main__":
    sys.exit(main())
