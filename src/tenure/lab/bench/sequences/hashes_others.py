"""The commands of the sequence `hashes` that its tasks leave alone: strings, lists, sets, keys. Pure data."""

from collections.abc import Mapping
from typing import Final

OTHERS: Final[Mapping[str, str]] = {
    "strings": '''\
"""Commands on strings."""

from server.dispatch import command
from server.errors import CommandError


@command("SET", 2, flags=("NX", "XX"))
def set_(database, key, value, nx=False, xx=False):
    """Set a key; with NX only a new one, with XX only one that is there. None where it was not set."""
    if (nx and key in database.values) or (xx and key not in database.values):
        return None
    database.values[key] = value
    return "OK"


@command("GET", 1)
def get(database, key):
    """The value of a key."""
    return database.held(key, str)


@command("APPEND", 2)
def append(database, key, more):
    """Put text behind a value; how long it is then."""
    database.values[key] = (database.held(key, str) or "") + more
    return len(database.values[key])


@command("INCR", 1)
def incr(database, key):
    """Count up."""
    try:
        now = int(database.held(key, str) or "0") + 1
    except ValueError:
        raise CommandError("value is not an integer or out of range") from None
    database.values[key] = str(now)
    return now


@command("STRLEN", 1)
def strlen(database, key):
    """How long a value is."""
    return len(database.held(key, str) or "")
''',
    "lists": '''\
"""Commands on lists."""

from server.dispatch import command


@command("RPUSH", 2, -1)
def rpush(database, key, *values):
    """Put values at the end; how many there are then."""
    held = database.made(key, list)
    held.extend(values)
    return len(held)


@command("LPUSH", 2, -1)
def lpush(database, key, *values):
    """Put values at the beginning; how many there are then."""
    held = database.made(key, list)
    for value in values:
        held.insert(0, value)
    return len(held)


@command("LPOP", 1)
def lpop(database, key):
    """Take the first value."""
    held = database.held(key, list)
    value = held.pop(0) if held else None
    database.tidy(key)
    return value


@command("LRANGE", 3)
def lrange(database, key, start, stop):
    """The values from one place to another, both included; negative ones count from the end."""
    held = database.held(key, list) or []
    last = int(stop)
    return held[int(start) : None if last == -1 else last + 1]


@command("LLEN", 1)
def llen(database, key):
    """How many values there are."""
    return len(database.held(key, list) or [])
''',
    "sets": '''\
"""Commands on sets."""

from server.dispatch import command


@command("SADD", 2, -1)
def sadd(database, key, *members):
    """Add members; how many are new."""
    held = database.made(key, set)
    before = len(held)
    held.update(members)
    return len(held) - before


@command("SREM", 2, -1)
def srem(database, key, *members):
    """Remove members; how many were there."""
    held = database.held(key, set) or set()
    gone = len(held & set(members))
    held -= set(members)
    database.tidy(key)
    return gone


@command("SMEMBERS", 1)
def smembers(database, key):
    """All members, sorted, so that clients see the same twice."""
    return sorted(database.held(key, set) or set())


@command("SINTER", 1, -1)
def sinter(database, *keys):
    """What several sets have in common, sorted."""
    held = [database.held(key, set) or set() for key in keys]
    return sorted(set.intersection(*held))


@command("SCARD", 1)
def scard(database, key):
    """How many members there are."""
    return len(database.held(key, set) or set())
''',
    "keys": '''\
"""Commands on keys, whatever they hold."""

from fnmatch import fnmatchcase

from server.dispatch import command

TYPES = {str: "string", list: "list", set: "set", dict: "hash"}


@command("DEL", 1, -1)
def del_(database, *keys):
    """Remove keys; how many were there."""
    return sum(database.values.pop(key, None) is not None for key in keys)


@command("EXISTS", 1, -1)
def exists(database, *keys):
    """How many of them are there."""
    return sum(key in database.values for key in keys)


@command("TYPE", 1)
def type_(database, key):
    """What a key holds."""
    return TYPES.get(type(database.values.get(key)), "none")


@command("KEYS", 1)
def keys(database, pattern):
    """The keys that look like this, sorted."""
    return sorted(key for key in database.values if fnmatchcase(key, pattern))
''',
}
