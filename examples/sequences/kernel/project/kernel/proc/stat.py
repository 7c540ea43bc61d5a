"""/proc/PID/stat: Everything in one line."""

from kernel.proc.base import entry


@entry("stat")
def show_stat(task, table):
    """Everything in one line.

    Lines end with a newline; the last one too, which the reader adds.
    """
    return f"{task.pid} ({task.name}) {task.state} {task.ppid} {task.group} {task.session} {task.utime} {task.stime}"
