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
