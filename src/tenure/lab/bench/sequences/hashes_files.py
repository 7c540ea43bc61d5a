"""The little key-value server of the sequence `hashes`: commands by type, a memory profiler. Pure data."""

from collections.abc import Mapping
from typing import Final

from tenure.lab.bench.sequences.hashes_others import OTHERS

_DISPATCH: Final = '''\
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
'''

_ERRORS: Final = '''\
"""What a client is told when a command cannot be answered."""


class CommandError(Exception):
    """Begins with ERR, as clients expect."""

    def __str__(self):
        return f"ERR {super().__str__()}"


class WrongType(CommandError):
    """A key that holds something else."""

    def __str__(self):
        return "WRONGTYPE Operation against a key holding the wrong kind of value"
'''

_DATABASE: Final = '''\
"""The keys and what they hold. One type a key, as long as it has something in it."""

from server.errors import WrongType


class Database:
    """Keys to values: str, list, set or dict."""

    def __init__(self):
        self.values = {}

    def held(self, key, kind):
        """The value of a key, None where there is none. Raises WrongType for another kind."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, kind):
            raise WrongType()
        return value

    def made(self, key, kind):
        """The value of a key, an empty one where there was none."""
        value = self.held(key, kind)
        if value is None:
            value = self.values[key] = kind()
        return value

    def tidy(self, key):
        """A key that holds nothing any more is gone."""
        if key in self.values and not self.values[key]:
            del self.values[key]
'''

_HASHES: Final = '''\
"""Commands on hashes. A reply that has fields and values lists them in turn, in the order in which fields were first set."""

from server.dispatch import command
from server.errors import CommandError


@command("HSET", 3, -1)
def hset(database, key, *pairs):
    """Set fields; how many are new."""
    if len(pairs) % 2:
        raise CommandError("wrong number of arguments for 'hset' command")
    held = database.made(key, dict)
    new = sum(field not in held for field in pairs[::2])
    held.update(zip(pairs[::2], pairs[1::2]))
    return new


@command("HGET", 2)
def hget(database, key, field):
    """The value of a field; None where there is none."""
    held = database.held(key, dict)
    return held.get(field) if held else None


@command("HMGET", 2, -1)
def hmget(database, key, *fields):
    """The values of several fields."""
    held = database.held(key, dict) or {}
    return [held.get(field) for field in fields]


@command("HDEL", 2, -1)
def hdel(database, key, *fields):
    """Remove fields; how many were there."""
    held = database.held(key, dict)
    if held is None:
        return 0
    gone = sum(held.pop(field, None) is not None for field in fields)
    database.tidy(key)
    return gone


@command("HGETALL", 1)
def hgetall(database, key):
    """All fields with their values, in turn."""
    held = database.held(key, dict) or {}
    return [word for pair in held.items() for word in pair]


@command("HKEYS", 1)
def hkeys(database, key):
    """All fields."""
    return list(database.held(key, dict) or {})


@command("HVALS", 1)
def hvals(database, key):
    """All values."""
    return list((database.held(key, dict) or {}).values())


@command("HLEN", 1)
def hlen(database, key):
    """How many fields there are."""
    return len(database.held(key, dict) or {})


@command("HRANDFIELD", 1, 2, flags=("WITHVALUES",))
def hrandfield(database, key, count=None, withvalues=False):
    """The first fields of a hash, which is random enough for a little server; with WITHVALUES values too."""
    held = database.held(key, dict) or {}
    if count is None:
        return next(iter(held), None)
    chosen = list(held)[: int(count)]
    return [word for field in chosen for word in (field, held[field])] if withvalues else chosen
'''

_PROFILER: Final = '''\
"""What replies weigh before they are sent, so that a client can be warned: MEMORY PROFILE command arguments.

The weight of a reply is that of its words, and a header for each word and for the whole: RESP's lines. Each command that may give a large reply has
an estimate, which reads the database and builds no reply.
"""

from server.dispatch import command
from server.errors import CommandError

WORD_HEADER = 5  # $12 and two line ends, about
REPLY_HEADER = 4  # *12 and a line end

ESTIMATES = {}


def estimate(name):
    """Make a function estimate the replies of a command. It is handed the database and the arguments, flags among them as they were given."""

    def known(function):
        ESTIMATES[name] = function
        return function

    return known


def weight(words):
    """Bytes of a reply of these words."""
    return REPLY_HEADER + sum(WORD_HEADER + len(word.encode()) for word in words)


@estimate("HGETALL")
def of_hgetall(database, key):
    held = database.held(key, dict) or {}
    return weight([word for pair in held.items() for word in pair])


@estimate("HKEYS")
def of_hkeys(database, key):
    return weight(database.held(key, dict) or {})


@estimate("HVALS")
def of_hvals(database, key):
    return weight((database.held(key, dict) or {}).values())


@estimate("LRANGE")
def of_lrange(database, key, start, stop):
    held = database.held(key, list) or []
    last = int(stop)
    return weight(held[int(start) : None if last == -1 else last + 1])


@estimate("SMEMBERS")
def of_smembers(database, key):
    return weight(database.held(key, set) or set())


@command("MEMORY", 2, -1)
def memory(database, sub, name, *arguments):
    """MEMORY PROFILE name arguments: what the reply would weigh, in bytes."""
    if sub.upper() != "PROFILE":
        raise CommandError(f"unknown subcommand '{sub}'")
    found = ESTIMATES.get(name.upper())
    if found is None:
        raise CommandError(f"no estimate for '{name.lower()}'")
    try:
        return found(database, *arguments)
    except TypeError as error:
        raise CommandError(f"wrong number of arguments for '{name.lower()}' command") from error
'''

_TEST: Final = """\
import unittest

from server import Database, execute
from server.errors import CommandError


class HashesTest(unittest.TestCase):
    def setUp(self):
        self.database = Database()
        execute(self.database, ["HSET", "user:1", "name", "Ann", "town", "Ulm"])

    def test_all_of_a_hash_is_listed_in_turn(self):
        self.assertEqual(execute(self.database, ["HGETALL", "user:1"]), ["name", "Ann", "town", "Ulm"])

    def test_an_estimate_is_what_the_reply_weighs(self):
        self.assertEqual(execute(self.database, ["MEMORY", "PROFILE", "HGETALL", "user:1"]), 4 + 4 * 5 + 14)

    def test_a_flag_that_a_command_does_not_know_is_an_argument_too_many(self):
        with self.assertRaises(CommandError):
            execute(self.database, ["HKEYS", "user:1", "WITHVALUES"])


if __name__ == "__main__":
    unittest.main()
"""

FILES: Final[Mapping[str, str]] = {
    "README.md": "# server\n\nA little key-value server, without sockets. Tests: `python3 -m unittest discover -s tests -t .`\n",
    "AGENTS.md": "Commands are in server/commands/, a type a file. Nothing but the standard library.\n",
    "server/__init__.py": (
        '"""A little key-value server."""\n\nfrom server import profiler\nfrom server.commands import hashes, keys, lists, sets, strings\n'
        "from server.database import Database\nfrom server.dispatch import execute\n\n"
        '__all__ = ["Database", "execute", "hashes", "keys", "lists", "profiler", "sets", "strings"]\n'
    ),
    "server/commands/__init__.py": "",
    "server/commands/hashes.py": _HASHES,
    **{f"server/commands/{name}.py": text for name, text in OTHERS.items()},
    "server/database.py": _DATABASE,
    "server/dispatch.py": _DISPATCH,
    "server/errors.py": _ERRORS,
    "server/profiler.py": _PROFILER,
    "tests/__init__.py": "",
    "tests/test_hashes.py": _TEST,
}
