"""The system call times: User and system ticks of a task."""

from kernel.syscalls.table import found, syscall


@syscall("times")
def sys_times(task, table, pid):
    """User and system ticks of a task.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return (found(table, pid).utime, found(table, pid).stime)
