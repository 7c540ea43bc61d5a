"""The system call getrusage: Peak memory in KiB, and page faults."""

from kernel.syscalls.table import found, syscall


@syscall("getrusage")
def sys_getrusage(task, table, pid):
    """Peak memory in KiB, and page faults.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return (found(table, pid).maxrss, found(table, pid).faults)
