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
