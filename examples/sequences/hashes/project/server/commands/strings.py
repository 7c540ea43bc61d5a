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
