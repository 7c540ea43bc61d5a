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
assert "462\tpid_summary" in Path("kernel/syscalls/syscalls.tbl").read_text().splitlines()
assert "obj-y += pid_summary.o" in Path("kernel/syscalls/Kbuild").read_text().splitlines()

importlib.import_module("kernel.proc.summary")
proc = importlib.import_module("kernel.proc.base")
shown = proc.read(table, "/proc/2/summary")
assert shown == "".join(f"{name}: {value}\n" for name, value in WANTED.items()), shown
assert "obj-y += summary.o" in Path("kernel/proc/Kbuild").read_text().splitlines()
# One source of truth: what the system call says, the entry shows.
task = table.tasks[3]
task.rss, task.utime = 9, 1
assert f"rss: {calls['pid_summary'](init, table, 3)['rss']}\n" in proc.read(table, "/proc/3/summary")
