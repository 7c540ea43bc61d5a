"""Which room may import which. `errors` and `plugins` (what other packages add) are for all. The core is pure, and an edge imports the core, never the reverse."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tenure

PACKAGE = Path(tenure.__file__).parent

# Each pure room, with the rooms it may import beside itself and `errors`.
CORE = {
    "engine/record": set(),
    "engine/meter": {"engine/record", "engine/view"},
    "engine/clip": {"engine/record", "engine/meter"},
    "engine/view": {"engine/record"},
    "engine/policies": {"engine/record", "engine/view", "engine/meter", "engine/clip"},
    "engine/planners": {"engine/record", "engine/view", "engine/policies", "engine/meter", "engine/clip"},
    "engine/lifecycle": {"engine/record", "engine/view", "engine/policies", "engine/planners", "engine/meter", "engine/clip"},
    "apis": {"engine"},
    "logs": {"engine", "apis"},
}
EDGES = {"logs/places"}  # where other tools' files lie on this machine
IMPURE = {
    "os",
    "socket",
    "time",
    "random",
    "logging",
    "subprocess",
    "threading",
    "asyncio",
    "sqlite3",
    "sqlalchemy",
    "httpx",
    "uuid",
}
HEAVY = {
    "sqlalchemy",
    "tiktoken",
    "hypothesis",
    "genai_prices",
    "rich",
    "typer",
    "openai",
    "anthropic",
    "ray",
    "textual",
    "mcp",
    "duckdb",
    "altair",
    "jinja2",
    "vl_convert",
}


def imports(path: Path) -> Iterator[str]:
    """The full names of the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module or ""


def files(room: str) -> list[Path]:
    return sorted(path for path in (PACKAGE / room).rglob("*.py") if not any(within(path, edge) for edge in EDGES))


def within(path: Path, room: str) -> bool:
    return path.is_relative_to(PACKAGE / room)


def room_of(module: str) -> str:
    """The room that a module stands in: the first two names of an engine's module, the first of any other's; `""` outside the package."""
    names = module.split(".")[1:] if module.startswith("tenure.") else [""]
    return "/".join(names[: 2 if names[0] == "engine" else 1])


@pytest.mark.parametrize("room", CORE)
def test_a_room_of_the_core_imports_only_what_its_arrows_allow(room: str) -> None:
    foreign = {
        (str(path.relative_to(PACKAGE)), room_of(module))
        for path in files(room)
        for module in imports(path)
        if room_of(module) not in {"", "errors", "plugins", room, *CORE[room]} and room_of(module).split("/")[0] not in CORE[room]
    }
    assert not foreign


def test_the_arrows_of_the_core_form_no_cycle() -> None:
    settled: set[str] = set()
    while rest := {room for room in CORE if room not in settled}:
        free = {room for room in rest if CORE[room] - {"engine"} <= settled}
        assert free, f"a cycle among {sorted(rest)}"
        settled |= free


@pytest.mark.parametrize("room", CORE)
def test_a_room_of_the_core_touches_no_clock_disk_network_or_chance(room: str) -> None:
    found = {(path.name, module) for path in files(room) for module in imports(path) if module.split(".")[0] in IMPURE}
    assert not found


def test_nothing_but_tests_imports_what_needs_hypothesis() -> None:
    users = {path for path in PACKAGE.rglob("*.py") for module in imports(path) if module.split(".")[0] == "hypothesis"}
    assert users <= {PACKAGE / "testing" / "transcripts.py"}
    importers = {
        path for path in PACKAGE.rglob("*.py") if any(module == "tenure.testing.transcripts" for module in imports(path))
    }
    assert not importers


def test_only_tests_import_testing() -> None:
    plays = PACKAGE / "models" / "scripted.py"  # a model that anybody can run: it speaks the fake provider's script and events
    for path in PACKAGE.rglob("*.py"):
        if "testing" not in path.parts and path != plays:
            assert not [module for module in imports(path) if room_of(module) == "testing"], path


def test_importing_the_package_loads_nothing_heavy() -> None:
    script = f"import sys, tenure; print(*sorted({HEAVY!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
