"""The little kernel of the sequence `kernel`: tasks, system calls by number, a /proc, a build, an emulator that boots images. Pure data."""

from collections.abc import Mapping
from typing import Final

# Number, name, what it returns, the words of its docstring; `task` is the caller, `table` all tasks by pid.
_CALLS: Final = (
    (1, "getpid", "task.pid", "The caller's pid."),
    (2, "getppid", "task.ppid", "The pid of the caller's parent."),
    (3, "getpgid", "found(table, pid).group", "The process group of a task."),
    (4, "getsid", "found(table, pid).session", "The session of a task."),
    (5, "getpriority", "20 - found(table, pid).nice", "The priority of a task, as user space counts it."),
    (6, "times", "(found(table, pid).utime, found(table, pid).stime)", "User and system ticks of a task."),
    (7, "getrusage", "(found(table, pid).maxrss, found(table, pid).faults)", "Peak memory in KiB, and page faults."),
    (8, "sched_getscheduler", "found(table, pid).policy", "The scheduling policy of a task."),
)
_ENTRIES: Final = (
    ("comm", 'f"{task.name}"', "The name of the command."),
    ("stat", 'f"{task.pid} ({task.name}) {task.state} {task.ppid} {task.group} {task.session} {task.utime} {task.stime}"', "Everything in one line."),
    ("statm", 'f"{task.rss // 4} {task.maxrss // 4}"', "Memory in pages of 4 KiB."),
    ("sched", 'f"policy: {task.policy}\\nnice: {task.nice}"', "What the scheduler knows."),
    ("limits", 'f"open files: {task.files}\\nthreads: {task.threads}"', "What it may have."),
)  # fmt: skip

_CALL: Final = '''\
"""The system call {name}: {about}"""

from kernel.syscalls.table import found, syscall


@syscall("{name}")
def sys_{name}({arguments}):
    """{about}

    Raises OSError with ESRCH when there is no such task; see found().
    """
    return {gives}
'''

_ENTRY: Final = '''\
"""/proc/PID/{name}: {about}"""

from kernel.proc.base import entry


@entry("{name}")
def show_{name}(task, table):
    """{about}

    Lines end with a newline; the last one too, which the reader adds.
    """
    return {gives}
'''

_TASK: Final = '''\
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
'''

_TABLE: Final = '''\
"""System calls by name, as modules declare them. Which number a call has is in syscalls.tbl; the build brings the two together."""

import errno

CALLS = {}


def syscall(name):
    """Make a function a system call. Its first arguments are the calling task and the table of tasks."""

    def known(function):
        if name in CALLS:
            raise ValueError(f"two system calls are named {name}")
        CALLS[name] = function
        return function

    return known


def found(table, pid):
    """The task of a pid. Raises OSError with ESRCH when there is none."""
    if pid not in table.tasks:
        raise OSError(errno.ESRCH, f"no task {pid}")
    return table.tasks[pid]
'''

_PROC: Final = '''\
"""/proc: a folder for each task, with an entry for everything that is shown of it."""

from kernel.syscalls.table import found

ENTRIES = {}


def entry(name):
    """Make a function an entry of each task's folder. It is handed the task and the table, and gives the text."""

    def known(function):
        ENTRIES[name] = function
        return function

    return known


def read(table, path):
    """What a file below /proc shows, such as /proc/2/stat."""
    parts = path.strip("/").split("/")
    if len(parts) != 3 or parts[0] != "proc" or not parts[1].isdecimal():
        raise FileNotFoundError(path)
    if parts[2] not in ENTRIES:
        raise FileNotFoundError(path)
    return ENTRIES[parts[2]](found(table, int(parts[1])), table) + "\\n"


def listing(table, pid):
    """The names of the entries of a task's folder."""
    found(table, pid)
    return sorted(ENTRIES)
'''

_BUILD: Final = '''\
"""Build the kernel: python3 build.py writes build/image.json.

Objects are listed in the Kbuild file of each folder, as obj-y += name.o for name.py. Each object is loaded; every line of syscalls.tbl must have a call
that some object declares, and every declared call a line. The image holds the names of the objects, the numbers of the calls, and a sum of both.
"""

import hashlib
import importlib
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent
FOLDERS = ("kernel/syscalls", "kernel/proc")
LINE = re.compile(r"obj-y \\+= (\\w+)\\.o$")


def objects():
    """The modules that Kbuild files list."""
    for folder in FOLDERS:
        for number, line in enumerate((ROOT / folder / "Kbuild").read_text().splitlines(), 1):
            if not line or line.startswith("#"):
                continue
            listed = LINE.match(line)
            if not listed:
                sys.exit(f"{folder}/Kbuild:{number}: cannot be understood: {line!r}")
            if not (ROOT / folder / f"{listed[1]}.py").is_file():
                sys.exit(f"{folder}/Kbuild:{number}: there is no {listed[1]}.py")
            yield f"{folder}/{listed[1]}".replace("/", ".")


def numbers():
    """The calls of syscalls.tbl: number, name, separated by a tab."""
    calls = {}
    for number, line in enumerate((ROOT / "kernel/syscalls/syscalls.tbl").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        first, _, name = line.partition("\\t")
        if not first.isdecimal() or not name or int(first) in calls:
            sys.exit(f"syscalls.tbl:{number}: expected a new number, a tab and a name")
        calls[int(first)] = name
    return calls


def main():
    sys.path.insert(0, str(ROOT))
    listed = list(objects())
    for name in listed:
        importlib.import_module(name)
    declared = importlib.import_module("kernel.syscalls.table").CALLS
    calls = numbers()
    for name in sorted(set(calls.values()) - set(declared)):
        sys.exit(f"undefined reference to sys_{name}")
    for name in sorted(set(declared) - set(calls.values())):
        sys.exit(f"sys_{name} has no number in syscalls.tbl")
    for path in sorted(ROOT.glob("kernel/*/*.py")):
        name = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        if name not in listed and path.stem not in ("__init__", "table", "base", "task"):
            print(f"warning: {name} is in no Kbuild, and left out")
    text = json.dumps({"objects": listed, "calls": calls}, sort_keys=True)
    image = {"objects": listed, "calls": calls, "sum": hashlib.sha256(text.encode()).hexdigest()}
    (ROOT / "build").mkdir(exist_ok=True)
    (ROOT / "build/image.json").write_text(json.dumps(image, indent=1) + "\\n")
    print(f"build/image.json: {len(listed)} objects, {len(calls)} system calls")


if __name__ == "__main__":
    main()
'''

_EMULATOR: Final = '''\
"""Boot an image: python3 emulator/boot.py emulator/machines/NAME.ini

A machine is an .ini file with a section [machine]: image, the path of an image from the project's folder; memory, in MiB, at least 64; init, the
path of an init script. Each line of the script is a command:

    spawn NAME              begin a task, as a child of init
    exit PID                end one
    syscall NUMBER ARGS     make a system call as init; arguments are numbers
    cat PATH                show a file below /proc
    ls PID                  list the entries of a task's folder

What commands give is printed, a line `$ command` before it. A command that fails prints its error, and the machine goes on. The last line says how
the machine ended.
"""

import configparser
import importlib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
LEAST = 64


def main(name):
    sys.path.insert(0, str(ROOT))
    machine = configparser.ConfigParser()
    if not machine.read(name) or "machine" not in machine:
        sys.exit(f"{name}: no machine is described there")
    settings = machine["machine"]
    for wanted in ("image", "memory", "init"):
        if wanted not in settings:
            sys.exit(f"{name}: {wanted} is missing in [machine]")
    if settings.getint("memory") < LEAST:
        sys.exit(f"{name}: a machine has at least {LEAST} MiB")
    image = json.loads((ROOT / settings["image"]).read_text())
    for module in image["objects"]:
        importlib.import_module(module)
    calls = importlib.import_module("kernel.syscalls.table").CALLS
    proc = importlib.import_module("kernel.proc.base")
    table = importlib.import_module("kernel.task").Table()
    init = table.tasks[table.spawn("init")]
    for line in (ROOT / settings["init"]).read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        print(f"$ {line}")
        command, *words = line.split()
        try:
            if command == "spawn":
                print(table.spawn(words[0], init.pid))
            elif command == "exit":
                table.exit(int(words[0]))
            elif command == "syscall":
                print(calls[image["calls"][words[0]]](init, table, *map(int, words[1:])))
            elif command == "cat":
                print(proc.read(table, words[0]), end="")
            elif command == "ls":
                print(" ".join(proc.listing(table, int(words[0]))))
            else:
                print(f"{command}: there is no such command")
        except (OSError, KeyError, TypeError, ValueError) as error:
            print(f"{command}: {type(error).__name__}: {error}")
    print(f"halted with {len(table.tasks)} tasks")


if __name__ == "__main__":
    main(sys.argv[1])
'''

FILES: Final[Mapping[str, str]] = {
    "README.md": (
        "# kernel\n\nA little kernel. A system call is a file in kernel/syscalls, a line in syscalls.tbl and one in Kbuild; an entry of /proc a file in"
        " kernel/proc and a line in Kbuild.\nBuild: `python3 build.py`. Boot: `python3 emulator/boot.py emulator/machines/NAME.ini`.\n"
    ),
    "AGENTS.md": "Nothing but the standard library. What is shown of a task has lines `name: value` unless it is one line.\n",
    "build.py": _BUILD,
    "emulator/boot.py": _EMULATOR,
    "emulator/machines/minimal.ini": "[machine]\nimage = build/image.json\nmemory = 64\ninit = emulator/init/minimal\n",
    "emulator/init/minimal": "spawn sh\ncat /proc/2/stat\nsyscall 6 2\n",
    "kernel/__init__.py": "",
    "kernel/task.py": _TASK,
    "kernel/proc/__init__.py": "",
    "kernel/proc/base.py": _PROC,
    "kernel/proc/Kbuild": "# entries of /proc/PID\n" + "".join(f"obj-y += {name}.o\n" for name, *_ in _ENTRIES),
    **{f"kernel/proc/{name}.py": _ENTRY.format(name=name, about=about, gives=gives) for name, gives, about in _ENTRIES},
    "kernel/syscalls/__init__.py": "",
    "kernel/syscalls/table.py": _TABLE,
    "kernel/syscalls/Kbuild": "# system calls\n" + "".join(f"obj-y += {name}.o\n" for _, name, *_ in _CALLS),
    "kernel/syscalls/syscalls.tbl": "# number\tname\n" + "".join(f"{number}\t{name}\n" for number, name, *_ in _CALLS),
    **{
        f"kernel/syscalls/{name}.py": _CALL.format(
            name=name, about=about, gives=gives, arguments="task, table, pid" if "pid)" in gives else "task, table"
        )
        for _, name, gives, about in _CALLS
    },
}
