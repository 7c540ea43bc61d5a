"""The system call getpriority: The priority of a task, as user space counts it."""

from kernel.syscalls.table import found, syscall


@syscall("getpriority")
def sys_getpriority(task, table, pid):
    """The priority of a task, as user space counts it.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return 20 - found(table, pid).nice
