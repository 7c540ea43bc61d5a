"""What clipping costs: `python bench/clipping.py [SHAPE...]` recognises and clips about 5 MB of generated texts per shape of `tenure.engine.clip.clip.SHAPES`.

Each text's MB/s stand beside those of `json.loads` in the same minute, since machines and their neighbours differ; then each shape's worst.
"""

import gc
import json
import random
import sys
import time
from collections.abc import Callable

from tenure.engine.clip.clip import SHAPES
from tenure.engine.clip.shape import weighed
from tenure.engine.meter.tokens import o200k

SIZE = 5_000_000  # characters
ROOM = 4_000  # o200k tokens
GOAL = 20  # MB/s, of every shape on its worst text
TRIES = 3  # of which the fastest counts
WORDS = "request handler session store index parse token budget prefix cache entry record view commit gate policy shell".split()
FAULTS = "connection refused|deadline exceeded|no such file or directory|permission denied".split("|")


def text(of: Callable[[random.Random, int], str]) -> str:
    """Lines until there are enough; the same each time."""
    dice = random.Random(7)
    lines: list[str] = []
    size = n = 0
    while size < SIZE:
        lines.append(of(dice, n))
        size += len(lines[-1]) + 1
        n += 1
    return "\n".join(lines)


def words(dice: random.Random, n: int) -> str:
    """That many words."""
    return " ".join(dice.choices(WORDS, k=n))


def path(n: int) -> str:
    """A path; 40 neighbours in `n` share it."""
    rest = random.Random(n // 40)
    return f"src/{rest.choice(WORDS)}/{rest.choice(WORDS)}/{rest.choice(WORDS)}_{n // 40}.py"


def hit(dice: random.Random, n: int) -> str:
    """A search hit."""
    return f"{path(n)}:{n % 40 * 17 + 3}:    return self.{words(dice, 1)}({words(dice, 2)})"


def around(dice: random.Random, n: int) -> str:
    """A search hit, or a line of context beside one."""
    if n % 8 == 7:
        return "--"
    sign = ":" if n % 8 == 3 else "-"
    return f"{path(n)}{sign}{n % 40 * 17 + 3}{sign}    {words(dice, 5)}"


def logged(dice: random.Random, n: int) -> str:
    """A log's line."""
    level = "ERROR" if n % 997 == 0 else "WARN" if n % 211 == 0 else "INFO"
    said = dice.choice(FAULTS) if level == "ERROR" else words(dice, 7)
    return f"2026-03-01T12:{n // 60 % 60:02}:{n % 60:02}.{n % 1000:03}Z {level} [{words(dice, 1)}] {said} id={n}"


def long(dice: random.Random, n: int) -> str:
    """A line of ls -l, in sections."""
    if n % 50 == 0:
        return f"\n{path(n)}:\ntotal 48" if n else "./src:\ntotal 48"
    return f"-rw-r--r--  1 dev staff {dice.randrange(9_000_000):8} Jan {n % 28 + 1:2} 10:{n % 60:02} {words(dice, 1)}_{n}.py"


def branch(dice: random.Random, n: int) -> str:
    """A line of tree."""
    if n == 0:
        return "."
    return "├── " + words(dice, 1) if n % 50 == 1 else f"│   ├── {words(dice, 1)}_{n}.py"


def comma(dice: random.Random, n: int) -> str:
    """A row of CSV."""
    return (
        f'{n},{words(dice, 1)},{dice.choice(("done", "open"))},{dice.random():.4f},"{words(dice, 3)}"'
        if n
        else "id,name,state,score,note"
    )


def boxed(dice: random.Random, n: int) -> str:
    """A row as psql prints it."""
    frame = ("    id    |   name   | state | note", "----------+----------+-------+-----------------")
    return frame[n] if n < 2 else f" {n:8} | {words(dice, 1):8} | {dice.choice(('done', 'open')):5} | {words(dice, 3)}"


def aligned(dice: random.Random, n: int) -> str:
    """A row as kubectl prints it."""
    if n == 0:
        return f"{'NAME':40}{'READY':8}{'STATUS':20}{'RESTARTS':11}AGE"
    state = "CrashLoopBackOff" if n % 2_000 == 0 else "Running"
    return f"{words(dice, 1) + f'-{n:x}-x7k2':40}{'1/1':8}{state:20}{n % 3:<11}{n % 90}d"


def jsonl(dice: random.Random, n: int) -> str:
    """A line of JSON."""
    return f'{{"id": {n}, "name": "{words(dice, 1)}", "score": {dice.random():.4f}, "tags": ["{words(dice, 1)}"]}}'


def json_array(dice: random.Random, n: int) -> str:
    """A JSON document of many lines."""
    return "[" + jsonl(dice, n) + "," if n == 0 else jsonl(dice, n) + ","


def changed(dice: random.Random, n: int) -> str:
    """A diff's line."""
    match n % 40:
        case 0:
            return f"diff --git a/{path(n)} b/{path(n)}\nindex 1a2b3c4..5d6e7f8 100644\n--- a/{path(n)}\n+++ b/{path(n)}"
        case 1 | 20:
            return f"@@ -{n},18 +{n},18 @@ def {words(dice, 1)}():"
        case 5 | 25:
            return "-    " + words(dice, 5)
        case 6 | 26:
            return "+    " + words(dice, 6)
        case _:
            return "     " + words(dice, 6)


def prose(dice: random.Random, _: int) -> str:
    """A sentence."""
    return words(dice, 12).capitalize() + "."


def random_word(dice: random.Random) -> str:
    """A word that comes but once: lines with it are all different."""
    return "".join(dice.choices("abcdefghijklmnop", k=8))


def fault(dice: random.Random, _: int) -> str:
    """An error unlike all others."""
    return f"ERROR {words(dice, 4)} {random_word(dice)} broke"


def stamped_fault(dice: random.Random, n: int) -> str:
    """The same with a time."""
    return f"2026-03-01T12:{n // 60 % 60:02}:{n % 60:02}.{n % 1000:03}Z ERROR [{words(dice, 1)}] {words(dice, 5)} {random_word(dice)}: denied"


def trace(dice: random.Random, n: int) -> str:
    """A traceback unlike all others."""
    where = f'  File "{words(dice, 1)}.py", line {n}, in {words(dice, 1)}'
    return (
        f"Traceback (most recent call last):\n{where}\n    x = {words(dice, 2)}\nValueError: {words(dice, 3)} {random_word(dice)}"
    )


def verdict(dice: random.Random, n: int) -> str:
    """A test's line."""
    name = f"tests/test_{words(dice, 1)}_{n // 50}.py::test_{words(dice, 1)}_{n}"
    return f"{name} {dice.choice(('PASSED', 'PASSED', 'PASSED', 'FAILED'))} [ {n % 100}%]"


def row(dice: random.Random, n: int) -> str:
    """A row of a page's table, the first after its beginning."""
    return f"{'' if n else PAGE + '<table>'}<tr><td>{n}</td><td>{words(dice, 1)}</td><td>x</td></tr>"


def link(dice: random.Random, n: int) -> str:
    """A list item that is a link."""
    return f"{'' if n else PAGE + '<ul>'}<li><a href='/x/{n}'>{words(dice, 1)} {n}</a></li>"


def section(dice: random.Random, n: int) -> str:
    """A heading and a paragraph."""
    return f"{'' if n else PAGE}<h2>{n} part</h2><p class='lead'>{words(dice, 60)} <a href='/x'>y</a> <b>z</b></p>"


PAGE = "<!doctype html><html><body><h1>Data</h1>"


def small(dice: random.Random, n: int) -> str:
    """A small object of an array."""
    return f'{"" if n else "["}{{"id": {n}, "v": {dice.randrange(100)}, "t": "{words(dice, 1)}"}},'


def member(dice: random.Random, n: int) -> str:
    """A member of an object."""
    return f'{"" if n else "{"}"key{n}": {{"a": {n}, "b": "{words(dice, 1)}"}},'


def flawed(_: random.Random, n: int) -> str:
    """An object with an error."""
    return f'{"" if n else "["}{{"id": {n}, "error": "bad {n}"}},'


def own_key(_: random.Random, n: int) -> str:
    """An object whose key no other has."""
    return f'{"" if n else "["}{{"key{n}": {n}}},'


TEXTS: dict[str, str | Callable[[random.Random, int], str]] = {
    "grep -n": hit,
    "grep -n -C 3": around,
    "grep -c": lambda dice, n: f"src/{WORDS[n % 17]}/{words(dice, 1)}_{n}.py:{dice.randrange(1, 90)}",
    "log": logged,
    "log, errors unlike each other": fault,
    "log, the same with times": stamped_fault,
    "log, traces": trace,
    "log, tests": verdict,
    "find": lambda dice, n: f"./{path(n)[:-3]}/{words(dice, 1)}_{n}.py",
    "ls -lR": long,
    "tree": branch,
    "CSV": comma,
    "psql": boxed,
    "kubectl": aligned,
    "JSON lines": jsonl,
    "JSON": json_array,
    "JSON, small objects": small,
    "JSON, one large object": member,
    "JSON, errors": flawed,
    "JSON, keys unlike each other": own_key,
    "page, table": row,
    "page, links": link,
    "page, sections": section,
    "diff": changed,
    "prose": prose,
}


def yardstick() -> float:
    """What `json.loads` reads at present, in MB/s."""
    document = json.dumps([{"id": n, "v": n * 7, "t": "abc def"} for n in range(40_000)])
    return len(document) / 1e6 / fastest(lambda: json.loads(document))


def fastest(work: Callable[[], object]) -> float:
    """Seconds of this process, so that neighbours count for little."""
    took = float("inf")
    for _ in range(TRIES):
        started = time.process_time()
        work()
        took = min(took, time.process_time() - started)
    return took


def main(names: list[str]) -> None:
    """Each shape over every text that it takes; the slowest of the others shows what saying no costs."""
    o200k()("once")
    texts = {label: text(of).split("\n") for label, of in TEXTS.items() if callable(of)}
    gc.freeze()  # the texts themselves are not what is measured
    worst: dict[str, tuple[float, float, str]] = {}  # MB/s, times the yardstick, text
    for shape in SHAPES:
        if names and shape.name not in names:
            continue
        refused = 0.0
        for label, lines in texts.items():
            if not shape.fits(lines):
                refused = max(refused, fastest(lambda shape=shape, lines=lines: shape.fits(lines)))
                continue
            beside = yardstick()
            took = fastest(lambda shape=shape, lines=lines: shape.fits(lines) and shape.choose(lines, ROOM, o200k()))
            shaped = shape.choose(lines, ROOM, o200k())
            speed = (sum(map(len, lines)) + len(lines)) / 1e6 / took
            kept = "nothing" if shaped is None else f"{weighed(lines, shaped.pieces, o200k()):6,} tokens"
            print(f"{shape.name:12} {label:30} {speed:8.1f} MB/s, {speed / beside:6.2f} of json.loads, kept {kept}")
            worst[shape.name] = min(worst.get(shape.name, (float("inf"), 0.0, label)), (speed, speed / beside, label))
        print(f"{shape.name:12} says no to others in at most {refused * 1e3:.1f} ms")
    print(f"\n{'shape':12} {'worst text':30} {'MB/s':>8} {'of json.loads':>14}   goal {GOAL} MB/s")
    for name, (speed, times, label) in worst.items():
        print(f"{name:12} {label:30} {speed:8.1f} {times:14.2f}   {'met' if speed >= GOAL else 'not met'}")


if __name__ == "__main__":
    main(sys.argv[1:])
