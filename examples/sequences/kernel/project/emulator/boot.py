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
