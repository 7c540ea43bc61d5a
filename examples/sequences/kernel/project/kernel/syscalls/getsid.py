"""The system call getsid: The session of a task."""

from kernel.syscalls.table import found, syscall


@syscall("getsid")
def sys_getsid(task, table, pid):
    """The session of a task.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return found(table, pid).session
