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
