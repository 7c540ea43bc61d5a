"""The system call sched_getscheduler: The scheduling policy of a task."""

from kernel.syscalls.table import found, syscall


@syscall("sched_getscheduler")
def sys_sched_getscheduler(task, table, pid):
    """The scheduling policy of a task.

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return found(table, pid).policy
