"""What an API is called stands in its folder and nowhere else: no other room names one, branches on one, or imports from its folder."""

import ast
from collections.abc import Iterator
from pathlib import Path

import tenure
from tenure.apis import APIS

PACKAGE = Path(tenure.__file__).parent
FOLDERS = {path.parent.name for path in (PACKAGE / "apis").glob("*/__init__.py")}

# Where such a word stands all the same, and why.
EXCEPTIONS = {
    "engine/meter/media.py": "how images are counted is named by the provider",
    "engine/meter/price.py": "a provider, as the price list names it",
    "engine/view/rules.py": "how images are counted is named by the provider",
    "extras.py": "the name of an SDK's distribution",
    "gateway/programs.py": "the name of a program",
    "logs/gemini_cli.py": "the type of a record, as the log names it",
    "logs/parts.py": "data: the APIs whose messages stand in logs",
    "lab/bench/harnesses/command.py": "a provider, before the colon of a model's name",
    "models/hosts.py": "data: which APIs a service speaks",
    "models/clients.py": "the name of an SDK's module",
}


def words(path: Path) -> Iterator[str]:
    """The names of APIs among a file's strings and imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and node.value in APIS:
            yield str(node.value)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tenure.apis."):
            yield from {(node.module or "").split(".")[2]} & FOLDERS


def test_no_room_but_that_of_the_apis_names_one() -> None:
    paths = [path for path in sorted(PACKAGE.rglob("*.py")) if not path.is_relative_to(PACKAGE / "apis")]
    named = {str(path.relative_to(PACKAGE)): sorted(set(words(path))) for path in paths}
    assert {path: names for path, names in named.items() if names and path not in EXCEPTIONS} == {}
    assert {path for path in EXCEPTIONS if not named.get(path)} == set(), "no exception any more"
