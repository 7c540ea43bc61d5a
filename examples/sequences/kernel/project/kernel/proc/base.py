"""/proc: a folder for each task, with an entry for everything that is shown of it."""

from kernel.syscalls.table import found

ENTRIES = {}


def entry(name):
    """Make a function an entry of each task's folder. It is handed the task and the table, and gives the text."""

    def known(function):
        ENTRIES[name] = function
        return function

    return known


def read(table, path):
    """What a file below /proc shows, such as /proc/2/stat."""
    parts = path.strip("/").split("/")
    if len(parts) != 3 or parts[0] != "proc" or not parts[1].isdecimal():
        raise FileNotFoundError(path)
    if parts[2] not in ENTRIES:
        raise FileNotFoundError(path)
    return ENTRIES[parts[2]](found(table, int(parts[1])), table) + "\n"


def listing(table, pid):
    """The names of the entries of a task's folder."""
    found(table, pid)
    return sorted(ENTRIES)
