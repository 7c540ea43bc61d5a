"""Tasks: what the kernel knows of each process."""

STATES = {"R": "running", "S": "sleeping", "D": "disk sleep", "T": "stopped", "Z": "zombie"}


class Task:
    """A process. Memory is in KiB, time in ticks."""

    def __init__(self, pid, name, ppid=0):
        self.pid, self.name, self.ppid = pid, name, ppid
        self.state = "R" if pid == 1 else "S"
        self.group = self.session = pid
        self.nice, self.policy = 0, "normal"
        self.utime, self.stime = 10 * pid, 3 * pid
        self.rss, self.maxrss, self.faults = 512 * pid, 640 * pid, 7 * pid
        self.threads, self.files = 1, 1024


class Table:
    """All tasks by pid. Pids are never given twice while the kernel runs."""

    def __init__(self):
        self.tasks = {}
        self.last = 0

    def spawn(self, name, parent=0):
        """Begin a task; its pid."""
        self.last += 1
        self.tasks[self.last] = Task(self.last, name, parent)
        return self.last

    def exit(self, pid):
        """End a task: it is a zombie until its parent asks for it."""
        self.tasks[pid].state = "Z"
        self.tasks[pid].rss = 0

    def children(self, pid):
        """The pids of a task's children, in the order of their birth."""
        return [task.pid for task in self.tasks.values() if task.ppid == pid]
