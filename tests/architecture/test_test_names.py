from collections import Counter
from pathlib import Path

TESTS = Path(__file__).parents[1]


def test_no_two_test_files_share_a_name_since_pytest_would_import_only_one_of_them():
    names = Counter(path.name for path in TESTS.rglob("*.py") if path.name not in ("__init__.py", "conftest.py"))
    assert [name for name, times in names.items() if times > 1] == []
