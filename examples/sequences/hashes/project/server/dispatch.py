"""Commands by name: what a client sends, to the function that answers it."""

from server.errors import CommandError

COMMANDS = {}


class Command:
    """A command: its function, how many arguments it takes, and the flags that may stand behind them."""

    def __init__(self, name, function, least, most, flags):
        self.name, self.function = name, function
        self.least, self.most = least, most
        self.flags = flags


def command(name, least, most=None, flags=()):
    """Make a function answer a command. `most` None: as many arguments as `least`; -1: any number."""

    def known(function):
        COMMANDS[name] = Command(name, function, least, least if most is None else most, tuple(flags))
        return function

    return known


def execute(database, words):
    """Answer a command such as ["HGETALL", "user:1"]. Flags come last, and are handed on as keywords."""
    name, *arguments = words
    found = COMMANDS.get(name.upper())
    if found is None:
        raise CommandError(f"unknown command '{name}'")
    given = {}
    while arguments and arguments[-1].upper() in found.flags:
        given[arguments.pop().lower()] = True
    if len(arguments) < found.least or (found.most >= 0 and len(arguments) > found.most):
        raise CommandError(f"wrong number of arguments for '{name.lower()}' command")
    return found.function(database, *arguments, **given)
