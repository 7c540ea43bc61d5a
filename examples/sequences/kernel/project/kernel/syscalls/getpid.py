"""The system call getpid: The caller's pid."""

from kernel.syscalls.table import found, syscall


@syscall("getpid")
def sys_getpid(task, table):
    """The caller's pid.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return task.pid
