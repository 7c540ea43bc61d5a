"""/proc/PID/sched: What the scheduler knows."""

from kernel.proc.base import entry


@entry("sched")
def show_sched(task, table):
    """What the scheduler knows.

    Lines end with a newline; the last one too, which the reader adds.
    """
    return f"policy: {task.policy}\nnice: {task.nice}"
