"""The command line (an edge): commands parse, call one function and print. Every error is a sentence, never a traceback."""

import os
import sys
from collections.abc import Sequence

import typer

from tenure.cli import words
from tenure.cli.audit import audit
from tenure.cli.context_view import context
from tenure.cli.demo import demo
from tenure.cli.evidence import evidence
from tenure.cli.interactive import interactive
from tenure.cli.judge import judge
from tenure.cli.recall import recall
from tenure.cli.replay import replay
from tenure.cli.run import run
from tenure.cli.sessions import sessions
from tenure.cli.show import show
from tenure.cli.why import why
from tenure.errors import InputError, TenureError

BAD_INPUT = 2  # exit code of what cannot be read or understood; also that of wrong usage
FAILED = 1  # exit code of a broken promise, or of a store or disk that fails

app = typer.Typer(
    name="tenure",
    help="Manage the life of everything in an LLM agent's context window.",
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.callback(invoke_without_command=True)(interactive)
app.command()(replay)
app.command()(show)
app.command()(recall)
app.command()(audit)
app.command()(evidence)
app.command()(judge)
app.command()(demo)
app.command()(sessions)
app.command()(why)
app.command()(run)
app.command()(context)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        app(list(arguments) if arguments is not None else None, prog_name="tenure")
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
    words.screen(stderr=True, wrap=False).print(words.plain(f"tenure: {error}"), style="red")
    return code


if __name__ == "__main__":
    sys.exit(main())
