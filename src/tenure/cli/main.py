"""The command line (an edge): commands parse, call one function and print. Every error is one line on standard error, never a traceback."""

import gc
import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tenure.errors import InputError, TenureError
from tenure.extras import not_installed

if TYPE_CHECKING:
    import typer

    from tenure.agent.settings import Settings

BAD_INPUT = 2  # exit code of what cannot be read or understood; also that of wrong usage
COMPLETION: Final = "_TENURE_COMPLETE"  # set by a shell that asks what could be typed next
INTERRUPTED: Final = 130  # exit code after Ctrl-C at a question
FAILED = 1  # exit code of a broken promise, or of a store or disk that fails

# The commands in the order of the help, by its panels; each is the function of its name in the module of its name. Loading all of them takes
# longer than the terminal interface may take to its first prompt.
_PANELS: Final = {
    "The agent": ("run", "demo", "settings"),
    "Your own agent": ("wrap", "serve", "doctor"),
    "Recorded sessions": ("sessions", "show", "context", "recall", "why", "rewind", "verify", "seal", "forget", "mcp", "plugins"),
    "Measurements": ("replay", "query", "audit", "judge", "evidence", "report", "bench"),
}
_STARTERS: Final = ("wrap",)  # what stands behind the name of the program that they start is the program's
COMMANDS: Final = {name: panel for panel, names in _PANELS.items() for name in names}


def made(commands: Iterable[str] = COMMANDS) -> "typer.Typer":
    """The program with these commands."""
    import typer

    from tenure.cli.options import flat
    from tenure.cli.run import interactive

    app = typer.Typer(name="tenure", rich_markup_mode="rich", pretty_exceptions_enable=False)
    app.callback(invoke_without_command=True, help=_help(interactive))(flat(interactive))
    for name in commands:
        command = getattr(import_module(f"tenure.cli.{name}"), name)
        if isinstance(command, typer.Typer):
            for each in command.registered_commands:
                each.help = _help(each.callback)
            app.add_typer(command, rich_help_panel=COMMANDS[name])
        else:
            its_own = {"allow_interspersed_args": name not in _STARTERS}
            app.command(help=_help(command), rich_help_panel=COMMANDS[name], context_settings=its_own)(flat(command))
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


def is_interactive() -> bool:
    """Whether a person sits at both ends."""
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())


def talk(settings: "Settings", *, light: bool = False) -> int:
    """Open the terminal interface until the person leaves; the exit code."""
    from tenure.agent.screens.app import TenureApp
    from tenure.agent.screens.themes import DARK, LIGHT

    # What is loaded stays to the end: without this every collection looks through all of it, and keys wait for that up to 100 ms.
    app = TenureApp(settings, theme=LIGHT if light else DARK, loaded=gc.freeze)
    session = app.run()
    if session:
        sys.stdout.write(f"tenure --resume {session[:8]} goes on with this session\n")
    return app.return_code or 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        if not given and is_interactive() and COMPLETION not in os.environ:
            return _talk_as_usual()
        return _invoked(given)
    except SystemExit as done:  # shell completion
        return done.code if isinstance(done.code, int) else 0
    except ModuleNotFoundError as error:
        missing = not_installed(error)
        if missing is None:
            raise
        return _fail(str(missing), BAD_INPUT)
    except InputError as error:
        return _fail(str(error), BAD_INPUT)
    except TenureError as error:
        return _fail(str(error), FAILED)
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _fail(f"{error.filename or 'the disk'}: {error.strerror or error}", FAILED)
    return 0


def _talk_as_usual() -> int:
    """`tenure` and nothing else. The command line's own machinery takes longer to load than all the rest here, and is not wanted."""
    from msgspec.structs import replace

    from tenure.agent.access import configuration_folder
    from tenure.agent.settings import SETTINGS_FILE, Settings

    environment, settings = os.environ, Settings(folder=Path.cwd())
    folders = configuration_folder(environment, Path.home()), settings.folder / ".tenure"
    if any((folder / SETTINGS_FILE).exists() for folder in folders):
        from tenure.agent.settings_file import usual_settings

        settings = usual_settings(settings.folder)
    model, helper = environment.get("TENURE_MODEL", ""), environment.get("TENURE_HELPER", "")
    settings = replace(settings, model=model or settings.model, helper=helper or settings.helper)
    return talk(settings, light=settings.theme == "light")


def _invoked(given: Sequence[str]) -> int:
    """Run the command that these arguments name; the exit code."""
    import typer

    wrong_usage: type[Exception] = typer.BadParameter.__mro__[1]  # click's UsageError, which typer has a copy of since 0.16
    try:
        code: object = made(wanted(given))(given, prog_name="tenure", standalone_mode=False)
    except wrong_usage as error:
        usage = _usage(error)
        return _fail(usage, BAD_INPUT) if usage else BAD_INPUT  # without one the help was printed
    except typer.Abort:
        return _fail("stopped", INTERRUPTED)
    return code if isinstance(code, int) else 0


def _usage(error: Exception) -> str:
    """What is wrong with the arguments, and where help is, in one sentence; empty where a group of commands was named without one."""
    path: str = getattr(getattr(error, "ctx", None), "command_path", "tenure")
    text: str = getattr(error, "format_message", error.__str__)()
    return f"{text[:1].lower()}{text[1:].rstrip('.')}; see {path} --help" if text else ""


def _fail(error: str, code: int) -> int:
    from tenure.cli.words import complain

    for line in f"tenure: {error}".splitlines():
        complain(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
