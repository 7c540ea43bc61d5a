import json
import re
from pathlib import Path

LABELS = Path(__file__).parents[3] / "docs" / "evidence" / "labels.jsonl"


def test_the_labels_hold_hashes_and_single_words_and_no_text_of_any_session() -> None:
    for line in LABELS.read_text(encoding="utf-8").splitlines():
        label = json.loads(line)
        assert re.fullmatch(r"[0-9a-f]{12}", label["session"])
        assert re.fullmatch(r"([0-9a-f]{12})?", label.get("need", ""))
        words = [value for value in label.values() if isinstance(value, str)]
        assert all(re.fullmatch(r"[a-z-]{0,20}|[0-9a-f]{12}", word) for word in words), line
