"""The sequence `kernel`: a system call, its entry in /proc, the build, an emulator that validates both. It stands for the paper's tasks on Linux.

Here compaction lost most in the paper: the second task needs the structure that the first one found, and the last needs everything before it.
"""

from typing import Final

from tenure.lab.bench.sequences.kernel_files import FILES
from tenure.lab.bench.sequences.sequence import Sequence, Step, begin, call, end, says

_HEAD: Final = """\
import importlib
import json
import subprocess
import sys
from pathlib import Path

from kernel.task import Table

table = Table()
for name in ("init", "sh", "cc"):
    table.spawn(name, 1 if table.last else 0)
table.spawn("ld", 2)
table.exit(4)
WANTED = {"pid": 2, "name": "sh", "state": "sleeping", "parent": 1, "children": 1, "threads": 1, "rss": 1024, "ticks": 26}
"""

_CALL_CHECK: Final = (
    _HEAD
    + """
importlib.import_module("kernel.syscalls.pid_summary")
calls = importlib.import_module("kernel.syscalls.table").CALLS
init = table.tasks[1]
assert calls["pid_summary"](init, table, 2) == WANTED, calls["pid_summary"](init, table, 2)
assert list(calls["pid_summary"](init, table, 2)) == list(WANTED), "in this order"
assert calls["pid_summary"](init, table, 4)["state"] == "zombie"
try:
    calls["pid_summary"](init, table, 99)
except OSError:
    pass
else:
    raise AssertionError("ESRCH")
assert "462\\tpid_summary" in Path("kernel/syscalls/syscalls.tbl").read_text().splitlines()
assert "obj-y += pid_summary.o" in Path("kernel/syscalls/Kbuild").read_text().splitlines()
"""
)

_ENTRY_CHECK: Final = (
    _CALL_CHECK
    + """
importlib.import_module("kernel.proc.summary")
proc = importlib.import_module("kernel.proc.base")
shown = proc.read(table, "/proc/2/summary")
assert shown == "".join(f"{name}: {value}\\n" for name, value in WANTED.items()), shown
assert "obj-y += summary.o" in Path("kernel/proc/Kbuild").read_text().splitlines()
# One source of truth: what the system call says, the entry shows.
task = table.tasks[3]
task.rss, task.utime = 9, 1
assert f"rss: {calls['pid_summary'](init, table, 3)['rss']}\\n" in proc.read(table, "/proc/3/summary")
"""
)

_BUILD_CHECK: Final = (
    _ENTRY_CHECK
    + """
image = json.loads(Path("build/image.json").read_text())
subprocess.run([sys.executable, "build.py"], check=True, stdout=subprocess.DEVNULL)
assert image == json.loads(Path("build/image.json").read_text()), "the image is not of these sources"
assert image["calls"]["462"] == "pid_summary"
assert {"kernel.syscalls.pid_summary", "kernel.proc.summary"} <= set(image["objects"])
"""
)

_BOOT_CHECK: Final = (
    _BUILD_CHECK
    + """
machine = Path("emulator/machines/validate.ini")
ran = subprocess.run([sys.executable, "emulator/boot.py", str(machine)], check=True, capture_output=True, text=True).stdout
script = [line for line in ran.splitlines() if line.startswith("$ ")]
assert any(line.startswith("$ syscall 462 ") for line in script), script
assert any(line.startswith("$ cat /proc/") and line.endswith("/summary") for line in script), script
assert "Error" not in ran, ran
assert "'name': 'sh'" in ran and "name: sh" in ran
assert Path("validation.txt").read_text() == ran, "validation.txt is not what the machine prints"
"""
)

STEPS: Final = (
    Step(
        name="syscall",
        words=(
            "Implement a system call pid_summary, number 462, which takes a pid and gives a dictionary with, in this order: pid, name, state (in words),"
            " parent, children (how many), threads, rss, ticks (user and system together). ESRCH where there is no such task. It must be ready to be built."
        ),
        check=_CALL_CHECK,
    ),
    Step(
        name="proc-entry",
        words=(
            "Expose the summary as an entry of /proc, /proc/PID/summary: a line `name: value` for each, in the same order, from the same source, so that the two"
            " can never differ. It must be ready to be built."
        ),
        check=_ENTRY_CHECK,
    ),
    Step(
        name="build",
        words="Build the kernel. Both new objects must be in the image, without a warning.",
        check=_BUILD_CHECK,
    ),
    Step(
        name="validate",
        words=(
            "Set up a machine emulator/machines/validate.ini with an init script that spawns a shell named sh and shows its summary both ways, by system call"
            " 462 and by /proc. Boot it, and put exactly what it prints into validation.txt."
        ),
        check=_BOOT_CHECK,
    ),
)

_SYSCALL: Final = '''\
"""The system call pid_summary: what a task is, in short."""

from kernel.syscalls.table import found, syscall
from kernel.task import STATES


def summary(task, table):
    """What a task is, in the order in which it is shown."""
    return {
        "pid": task.pid,
        "name": task.name,
        "state": STATES[task.state],
        "parent": task.ppid,
        "children": len(table.children(task.pid)),
        "threads": task.threads,
        "rss": task.rss,
        "ticks": task.utime + task.stime,
    }


@syscall("pid_summary")
def sys_pid_summary(task, table, pid):
    """The summary of a task. Raises OSError with ESRCH when there is no such task."""
    return summary(found(table, pid), table)
'''

_PROC: Final = '''\
"""/proc/PID/summary: what a task is, in short."""

from kernel.proc.base import entry
from kernel.syscalls.pid_summary import summary


@entry("summary")
def show_summary(task, table):
    """The lines of pid_summary."""
    return "\\n".join(f"{name}: {value}" for name, value in summary(task, table).items())
'''

_REPLIES: Final = (
    says("I look at how a system call is made.", begin("locate-syscalls"), call("grep", pattern="syscall|Kbuild", path=".", glob="*.md"), call("ls", path="kernel/syscalls")),
    says("", call("read", path="kernel/syscalls/table.py"), call("read", path="kernel/task.py"), call("read", path="kernel/syscalls/getrusage.py")),
    says("", call("read", path="kernel/syscalls/syscalls.tbl"), call("read", path="kernel/syscalls/Kbuild"), call("read", path="build.py")),
    says(
        "",
        end(
            "A call is kernel/syscalls/NAME.py with @syscall(name) on sys_NAME(task, table, …), found(table, pid) raises ESRCH; a line `number<TAB>name` in"
            " kernel/syscalls/syscalls.tbl and `obj-y += NAME.o` in kernel/syscalls/Kbuild. Task has ppid, threads, rss, utime, stime; STATES has the words;"
            " Table.children(pid)."
        ),
        begin("add-pid-summary", "locate-syscalls"),
        call("write", path="kernel/syscalls/pid_summary.py", content=_SYSCALL),
    ),
    says(
        "",
        call("edit", path="kernel/syscalls/syscalls.tbl", old="8\tsched_getscheduler\n", new="8\tsched_getscheduler\n462\tpid_summary\n"),
        call("edit", path="kernel/syscalls/Kbuild", old="obj-y += sched_getscheduler.o\n", new="obj-y += sched_getscheduler.o\nobj-y += pid_summary.o\n"),
    ),
    says("", call("bash", command="python3 -c \"from kernel.syscalls import pid_summary; from kernel.task import Table; t = Table(); t.spawn('init'); print(pid_summary.sys_pid_summary(None, t, 1))\"")),
    says("", end()),
    says("pid_summary is system call 462, in kernel/syscalls/pid_summary.py; summary() there is what it gives."),
    says("Now its entry in /proc.", begin("locate-proc"), call("ls", path="kernel/proc"), call("read", path="kernel/proc/base.py")),
    says("", call("read", path="kernel/proc/limits.py"), call("read", path="kernel/proc/stat.py"), call("read", path="kernel/proc/Kbuild")),
    says(
        "",
        end("An entry is kernel/proc/NAME.py with @entry(name) on show_NAME(task, table), text without the last newline; `obj-y += NAME.o` in kernel/proc/Kbuild."),
        begin("add-proc-summary", "locate-proc", "locate-syscalls"),
        call("write", path="kernel/proc/summary.py", content=_PROC),
        call("edit", path="kernel/proc/Kbuild", old="obj-y += limits.o\n", new="obj-y += limits.o\nobj-y += summary.o\n"),
    ),
    says("", call("bash", command="python3 -c \"from kernel.proc import base, summary; from kernel.task import Table; t = Table(); t.spawn('init'); print(base.read(t, '/proc/1/summary'))\"")),
    says("", end()),
    says("/proc/PID/summary shows what summary() of the system call gives, a line each."),
    says("I build it.", begin("review-build"), call("grep", pattern="warning|sys.exit", path="build.py")),
    says("", end("python3 build.py; it warns of objects that are in no Kbuild, and stops at a call without a number."), begin("build-kernel", "review-build"), call("bash", command="python3 build.py")),
    says("", end()),
    says("The kernel is built: build/image.json has both objects, and nothing was warned of."),
    says("The emulator next.", begin("locate-emulator"), call("read", path="emulator/boot.py"), call("read", path="emulator/machines/minimal.ini"), call("read", path="emulator/init/minimal")),
    says(
        "",
        end("A machine is emulator/machines/NAME.ini, section [machine] with image, memory (at least 64) and init, an init script: spawn, syscall NUMBER, cat PATH."),
        begin("validate-summary", "locate-emulator", "locate-syscalls"),
        call("write", path="emulator/machines/validate.ini", content="[machine]\nimage = build/image.json\nmemory = 64\ninit = emulator/init/validate\n"),
        call("write", path="emulator/init/validate", content="spawn sh\nsyscall 462 2\ncat /proc/2/summary\n"),
    ),
    says("", call("bash", command="python3 emulator/boot.py emulator/machines/validate.ini > validation.txt; cat validation.txt")),
    says("", end()),
    says("The machine boots, and system call and /proc agree; what it printed is in validation.txt."),
)  # fmt: skip

KERNEL: Final = Sequence(
    name="kernel",
    stands_for="the Linux kernel: a PID summary system call; its entry in /proc; the build; an emulator that validates both",
    files=FILES,
    steps=STEPS,
    replies=_REPLIES,
    ceiling=8_000,
)
