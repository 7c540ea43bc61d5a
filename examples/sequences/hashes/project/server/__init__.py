"""A little key-value server."""

from server import profiler
from server.commands import hashes, keys, lists, sets, strings
from server.database import Database
from server.dispatch import execute

__all__ = ["Database", "execute", "hashes", "keys", "lists", "profiler", "sets", "strings"]
