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
LINE = re.compile(r"obj-y \+= (\w+)\.o$")


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
        first, _, name = line.partition("\t")
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
    (ROOT / "build/image.json").write_text(json.dumps(image, indent=1) + "\n")
    print(f"build/image.json: {len(listed)} objects, {len(calls)} system calls")


if __name__ == "__main__":
    main()
