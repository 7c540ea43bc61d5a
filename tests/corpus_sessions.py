"""Recorded sessions beside the checkout, where there are any: a sample chosen by hash, so that a corpus that grows costs no more.

`TENURE_CORPUS_SESSIONS` sets how many (default 20). Whole corpora are read in `bench/corpus.py` and `bench/planned.py`.
"""

import json
import os
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

CORPUS: Final = Path(__file__).parents[1].parent / "shared" / "corpus"
MOST: Final = int(os.environ.get("TENURE_CORPUS_SESSIONS", "20"))
BYTES_MOST: Final = 2_000_000  # of a session in the default sample; every one is taken where more sessions are asked for

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="no recorded sessions lie beside this repository")


def sample(formats: Iterable[str] = (), most: int = MOST) -> list[dict[str, Any]]:
    """Rows of the manifest: of every format the first by hash, then others by hash, at most `most` unless there are more formats."""
    wanted = set(formats)
    rows = sorted(_rows(), key=lambda row: sha256(str(row["id"]).encode()).hexdigest())
    rows = [row for row in rows if (not wanted or row["format"] in wanted) and (MOST > 20 or row["bytes"] <= BYTES_MOST)]
    firsts = list({row["format"]: row for row in reversed(rows)}.values())
    others = [row for row in rows if row not in firsts]
    return firsts + others[: max(0, most - len(firsts))]


def path_of(row: dict[str, Any]) -> Path:
    """Where the session of a row lies."""
    return CORPUS / row["file"]


def _rows() -> list[dict[str, Any]]:
    manifest = CORPUS / "MANIFEST.jsonl"
    return [json.loads(line) for line in manifest.read_text().splitlines()] if manifest.exists() else []
