"""/proc/PID/statm: Memory in pages of 4 KiB."""

from kernel.proc.base import entry


@entry("statm")
def show_statm(task, table):
    """Memory in pages of 4 KiB.

    Lines end with a newline; the last one too, which the reader adds.
    """
    return f"{task.rss // 4} {task.maxrss // 4}"
