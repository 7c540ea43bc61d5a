"""The system call getppid: The pid of the caller's parent."""

from kernel.syscalls.table import found, syscall


@syscall("getppid")
def sys_getppid(task, table):
    """The pid of the caller's parent.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return task.ppid
