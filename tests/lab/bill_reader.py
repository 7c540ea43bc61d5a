"""An independent reader of a replay's recalls: what each costs, followed by itself from call to call. Imports nothing of ours.

docs/bill.md says what is followed here, and the three figures below.
"""

from collections.abc import Iterable
from typing import Any

Line = dict[str, Any]
ASKING = 60  # tokens of the call that asks
FRESH = 3  # calls for which what was brought back stays
SHARE = 0.1  # of the budget: what stays fresh together


def recalls_usd(lines: Iterable[Line]) -> tuple[int, float]:
    """How many recalls there are, and what they cost. O(recalls * calls)."""
    every = list(lines)
    prices, budget = every[0]["prices"], every[0]["budget"]
    limit = min(each for each in (budget["target"], budget["ceiling"], budget["window"]) if each is not None)
    calls = {line["call"]: line for line in every if line["type"] == "call"}
    here: list[dict[str, Any]] = []  # what is in the window, oldest first
    count, usd, now = 0, 0.0, -1
    for line in every:
        if line["type"] == "commit" and line["moment"] == "recorded":
            gone = [edit["entry"] for edit in line["edits"] if edit["op"] == "drop"]
            here = [each for each in here if not gone or each["entries"] > max(gone)]
        elif line["type"] == "commit" and line["moment"] != "admission":
            here = _fresh(here, line["before_call"], limit / (calls[now]["ratio"] if now >= 0 else 1.0))
        elif line["type"] == "call":
            now = line["call"]
            weight = _prompt(line) + round(sum(each["tokens"] for each in here) * line["ratio"])
            for each in here:
                stands = line["cache_read"] > 0 and line["shared_prefix_tokens"] >= each["before"]
                price = prices["read"] if stands else prices["write" if weight >= prices["min_cache"] else "uncached"]
                usd += price * round(each["tokens"] * line["ratio"])
                each["before"] = each["before"] if stands else line["view_tokens"]
        elif line["type"] == "recall":
            call = calls[line["call"]]
            weight = _prompt(call) + round(sum(each["tokens"] for each in here) * call["ratio"])
            cached = weight >= prices["min_cache"]
            tokens = line["tokens"] + ASKING
            usd += weight * prices["read" if cached else "uncached"] + ASKING * prices["output"]
            usd += round(tokens * call["ratio"]) * prices["write" if cached else "uncached"]
            here.append({"tokens": tokens, "call": now, "entries": call["entries"], "before": call["view_tokens"]})
            count += 1
    return count, usd


def _fresh(here: list[dict[str, Any]], call: int, limit: float) -> list[dict[str, Any]]:
    """The newest that fewer than FRESH calls have seen, while they weigh little together."""
    kept: list[dict[str, Any]] = []
    room = int(int(limit) * SHARE)
    for each in reversed(here):
        room -= each["tokens"]
        if room < 0 or call - each["call"] >= FRESH:
            break
        kept.insert(0, each)
    return kept


def _prompt(call: Line) -> int:
    prompt: int = call["uncached"] + call["cache_write"] + call["cache_read"]
    return prompt
