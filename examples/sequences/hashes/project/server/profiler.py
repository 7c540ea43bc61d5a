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
