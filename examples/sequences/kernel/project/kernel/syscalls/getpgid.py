"""The system call getpgid: The process group of a task."""

from kernel.syscalls.table import found, syscall


@syscall("getpgid")
def sys_getpgid(task, table, pid):
    """The process group of a task.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return found(table, pid).group
