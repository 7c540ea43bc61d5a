"""/proc/PID/limits: What it may have."""

from kernel.proc.base import entry


@entry("limits")
def show_limits(task, table):
    """What it may have.

    Lines end with a newline; the last one too, which the reader adds.
    """
    return f"open files: {task.files}\nthreads: {task.threads}"
