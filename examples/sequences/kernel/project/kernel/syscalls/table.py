"""System calls by name, as modules declare them. Which number a call has is in syscalls.tbl; the build brings the two together."""

import errno

CALLS = {}


def syscall(name):
    """Make a function a system call. Its first arguments are the calling task and the table of tasks."""

    def known(function):
        if name in CALLS:
            raise ValueError(f"two system calls are named {name}")
        CALLS[name] = function
        return function

    return known


def found(table, pid):
    """The task of a pid. Raises OSError with ESRCH when there is none."""
    if pid not in table.tasks:
        raise OSError(errno.ESRCH, f"no task {pid}")
    return table.tasks[pid]
