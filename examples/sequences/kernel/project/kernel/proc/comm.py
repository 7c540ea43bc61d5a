"""/proc/PID/comm: The name of the command."""

from kernel.proc.base import entry


@entry("comm")
def show_comm(task, table):
    """The name of the command.

    Lines end with a newline; the last one too, which the reader adds.
    """
    return f"{task.name}"
