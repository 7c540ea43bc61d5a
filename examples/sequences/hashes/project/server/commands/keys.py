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
