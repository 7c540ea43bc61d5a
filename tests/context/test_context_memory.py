"""What a context holds of large results is what it shows of them."""

import gc
from pathlib import Path

from tenure.context import Context
from tenure.context.entries import AHEAD, MOST, RecentEntries
from tenure.engine.record.entry import Entry, Role
from tenure.engine.view.piece import Piece

RESULTS, SIZE = 12, 2_000_000


def results(context: Context) -> None:
    """Large results of calls, each of which is clipped."""
    context.extend([{"role": "user", "content": "Read."}])
    for n in range(RESULTS):
        use = {"type": "tool_use", "id": f"t{n}", "name": "bash", "input": {"command": f"cat {n}"}}
        context.extend([{"role": "assistant", "content": [use]}])
        text = f"first {n}\n" + f"line of file {n}\n" * (SIZE // 16)
        context.extend([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"t{n}", "content": text}]}])
        context.wire(model="claude-sonnet-4-5", max_tokens=100)


def test_large_results_that_are_shown_clipped_are_not_held_whole(tmp_path: Path) -> None:
    context = Context(dialect="anthropic", store=f"sqlite:///{tmp_path}/a.db", tokenizer=lambda text: len(text) // 4 + 1)
    before = [each for each in gc.get_objects() if isinstance(each, Entry | Piece)]  # of other tests
    results(context)
    others = {id(each.payload) for each in before}
    held = {id(each.payload): len(each.payload) for each in gc.get_objects() if isinstance(each, Entry | Piece)}
    held = {key: size for key, size in held.items() if key not in others}
    assert sum(held.values()) < MOST + SIZE < RESULTS * SIZE
    handle = context.session.index.spans[0].object
    assert context.recall(handle, lines="1-2").startswith("first 0\nline of file 0")


def entry(n: int, size: int) -> Entry:
    """An entry whose payload has this size."""
    return Entry(n=n, id="", parent="", sha256="", role=Role.USER, blocks=(), tokens=(), dialect="anthropic", payload=b"x" * size)


def lately(read: list[tuple[int, int]], most: int) -> RecentEntries:
    """What reads entries of 40 bytes, of which the ninth is not shown; the ranges that it reads are noted."""

    def reads(start: int, stop: int) -> list[Entry]:
        read.append((start, stop))
        return [entry(n, 40) for n in range(start, min(stop, 1_000))]

    return RecentEntries(reads, lambda n: n != 9, most=most)


def test_entries_asked_for_lately_are_read_once_as_long_as_there_is_room() -> None:
    read: list[tuple[int, int]] = []
    held = lately(read, most=100)
    for n in (301, 202, 301, 103, 301, 202):
        assert held.entry(n).n == n
    assert [start for start, _ in read] == [301, 202, 103, 202]  # 202 made room for 103, 301 was asked for since
    assert held.bytes <= 100
    assert [held.entry(9).n, held.entry(9).n, [start for start, _ in read[-2:]]] == [9, 9, [9, 9]]  # not shown: not held


def test_a_view_larger_than_what_is_held_is_read_many_entries_at_a_time() -> None:
    read: list[tuple[int, int]] = []
    held = lately(read, most=40 * AHEAD)
    for _ in range(2):
        assert [held.entry(n).n for n in range(1_000) if n != 9] == [n for n in range(1_000) if n != 9]
    assert len(read) < 3 * 1_000 / AHEAD
    assert held.bytes <= 40 * AHEAD
