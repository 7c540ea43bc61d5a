import ast
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tenure"
IMPORT_PATHS = {"Tenure": 2}  # two harnesses load their adapter by this name (docs/benchmarks.md)


def test_no_class_name_stands_twice_in_the_package():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert {name: times for name, times in names.items() if times > 1} == IMPORT_PATHS
