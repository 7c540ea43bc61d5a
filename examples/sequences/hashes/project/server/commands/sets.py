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
