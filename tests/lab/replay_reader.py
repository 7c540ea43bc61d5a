"""An independent reader of REPLAY.md's lines: rebuilds every request from them and says what does not add up. Imports nothing of ours."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

Line = dict[str, Any]
Unit = tuple[Any, ...]
ORDER = ("replay", "summary")


class Window:
    """The view as the lines define it."""

    def __init__(self) -> None:
        self.entries: list[Line] = []
        self.shown: dict[tuple[int, int], tuple[str, int]] = {}  # (entry, block) -> text, tokens
        self.inserted: dict[str, Line] = {}

    def entry(self, line: Line) -> None:
        self.entries.append(line)
        for block in line["blocks"]:
            self.shown[line["entry"], block["block"]] = (block["text"], block["tokens"])

    def edit(self, edit: Line) -> None:
        match edit["op"]:
            case "drop":
                del self.shown[edit["entry"], edit["block"]]
            case "replace":
                assert (edit["entry"], edit["block"]) in self.shown
                self.shown[edit["entry"], edit["block"]] = (edit["text"], edit["tokens"])
            case "restore":
                block = self.block(edit["entry"], edit["block"])
                self.shown[edit["entry"], edit["block"]] = (block["text"], block["tokens"])
            case "insert":
                assert edit["key"] not in self.inserted
                self.inserted[edit["key"]] = edit
            case "remove":
                del self.inserted[edit["key"]]

    def block(self, entry: int, block: int) -> Line:
        return self.entries[entry]["blocks"][block]

    def units(self) -> list[tuple[Unit, int]]:
        """Every unit in view order with its tokens."""
        keyed: list[tuple[tuple[Any, ...], Unit, int]] = []
        for (entry, block), (text, tokens) in self.shown.items():
            keyed.append(((entry, 1, block, ""), (entry, block, text), tokens))
        for key, line in self.inserted.items():
            keyed.append(((line["before_entry"], 0, line["order"], key), (key, line["text"]), line["tokens"]))
        return [(unit, tokens) for _, unit, tokens in sorted(keyed, key=lambda item: item[0])]

    def unpaired(self) -> Iterator[str]:
        """Calls shown without the result the record has, and results without their call."""
        waiting: dict[str, list[tuple[int, int]]] = {}
        for line in self.entries:
            for block in line["blocks"]:
                at = (line["entry"], block["block"])
                if block["kind"] == "tool_call":
                    waiting.setdefault(block["call_id"], []).append(at)
                elif block["kind"] == "tool_result" and waiting.get(block["call_id"]):
                    call = waiting[block["call_id"]].pop(0)
                    if (call in self.shown) != (at in self.shown):
                        yield f"call {call} and result {at}: only one is shown"

    def human(self) -> set[tuple[int, int]]:
        return {
            (line["entry"], block["block"])
            for line in self.entries
            for block in line["blocks"]
            if block["origin"] == "human" and self.shown.get((line["entry"], block["block"]), ("",))[0] == block["text"]
        }


def problems(lines: Iterable[str]) -> Iterator[str]:
    """What an independent judge would hold against a replay."""
    window, header, last = Window(), {}, {}
    before: list[tuple[Unit, int]] = []
    protected: dict[tuple[int, int], str] = {}
    excused: set[int] = set()
    calls = commits = 0
    for number, text in enumerate(lines):
        line = last = json.loads(text)
        match line["type"]:
            case "replay":
                assert number == 0
                header = line
            case "entry":
                if line["entry"] != len(window.entries):
                    yield f"entry {line['entry']} out of order"
                window.entry(line)
            case "protect":
                at = (line["entry"], line["block"])
                if line["op"] == "add":
                    protected[at] = line["what"]
                elif protected.pop(at, None) != line["what"]:
                    yield f"protection of {at} removed that was not there"
            case "commit":
                commits += 1
                yield from _committed(line, window, protected)
            case "unmet":
                excused.add(line["before_call"])
            case "call":
                units = window.units()
                yield from _called(line, window, units, before, header, excused)
                before, calls = units, calls + 1
            case _:
                pass
    if last["type"] != "summary" or (last["calls"], last["commits"]) != (calls, commits):
        yield f"the summary says {last}"


def _committed(line: Line, window: Window, protected: dict[tuple[int, int], str]) -> Iterator[str]:
    human = window.human()
    held = {at: window.shown.get(at) for at in protected}
    tokens = sum(tokens for _, tokens in window.units())
    for edit in line["edits"]:
        window.edit(edit)
    after = sum(tokens for _, tokens in window.units())
    if (tokens, after) != (line["tokens_before"], line["tokens_after"]):
        yield f"commit {line['commit']}: {tokens} to {after} tokens, it says {line['tokens_before']} to {line['tokens_after']}"
    if line["moment"] == "recorded":
        return
    if after > tokens:
        yield f"commit {line['commit']}: larger than before"
    if human - window.human():
        yield f"commit {line['commit']}: human text at {human - window.human()} is gone"
    for at, shown in held.items():
        thinking = window.block(*at)["kind"] == "thinking"
        if shown is not None and window.shown.get(at) != shown and not (thinking and protected[at] == "tail"):
            yield f"commit {line['commit']}: protected block {at} ({protected[at]}) was touched"
    yield from (f"commit {line['commit']}: {wrong}" for wrong in window.unpaired())


def _called(
    line: Line, window: Window, units: list[tuple[Unit, int]], before: list[tuple[Unit, int]], header: Line, excused: set[int]
) -> Iterator[str]:
    head = line["head_tokens"]
    tokens = head + sum(tokens for _, tokens in units)
    if tokens != line["view_tokens"] or line["entries"] != len(window.entries):
        yield f"call {line['call']}: {tokens} tokens of {len(window.entries)} entries, it says {line['view_tokens']}"
    shared = head if before else 0
    for (old, _), (new, weight) in zip(before, units, strict=False):
        if old != new:
            break
        shared += weight
    if shared != line["shared_prefix_tokens"]:
        yield f"call {line['call']}: {shared} tokens shared, it says {line['shared_prefix_tokens']}"
    ceiling = header["budget"]["ceiling"] or header["budget"]["window"]
    if int(tokens * line["ratio"]) > ceiling and line["call"] not in excused:
        yield f"call {line['call']}: {tokens} tokens at {line['ratio']} pass {ceiling}"
    prompt = line["uncached"] + line["cache_write"] + line["cache_read"]
    if abs(prompt - round(tokens * line["ratio"])) > 1:
        yield f"call {line['call']}: {prompt} prompt tokens are billed for {tokens} at {line['ratio']}"
