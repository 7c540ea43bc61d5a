"""What counting costs: `python bench/counting.py [FILE...]` counts the texts of session files, or of this repository's own sources."""

import sys
import time
from pathlib import Path

from tenure.engine.meter.tokens import Counter, _encoder, o200k

PATHOLOGICAL = {
    "spaces": " " * 1_000_000,
    "spaces and tabs": " \t" * 500_000,
    "newlines": "\n" * 1_000_000,
    "one letter": "a" * 1_000_000,
    "one ideograph": "中" * 333_333,
    "ideographs": "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(333_333)),
    "letters": "".join(chr(97 + n * n % 26) for n in range(1_000_000)),
    "rule of dashes": "-" * 1_000_000,
    "minified JSON": '{"a":[1,2,3],"b":"c"},' * 45_455,
}


def rate(texts: list[str], count: Counter) -> tuple[int, float]:
    """Tokens, and MB/s."""
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    started = time.perf_counter()
    tokens = sum(map(count, texts))
    return tokens, size / 1e6 / (time.perf_counter() - started)


def main(paths: list[Path]) -> None:
    """Load, count in pieces as a session would, count again, then the inputs that break tokenizers."""
    started = time.perf_counter()
    o200k()("once")
    print(f"load and first count {time.perf_counter() - started:.2f} s")
    texts = [path.read_text(errors="replace") for path in paths]
    pieces = [text[start : start + 3_000] for text in texts for start in range(0, len(text), 3_000)]
    for label, some in (("whole files", texts), ("pieces of 3,000 characters", pieces)):
        count = Counter(_encoder)
        tokens, cold = rate(some, count)
        _, again = rate(some, count)
        size = sum(map(len, some))
        print(f"{label:28} {size / 1e6:6.1f} M characters {tokens:9} tokens  {cold:6.1f} MB/s, the second time {again:.0f} MB/s")
    for label, text in PATHOLOGICAL.items():
        started = time.perf_counter()
        tokens = o200k()(text)
        print(f"{label:28} {len(text):9} characters {tokens:9} tokens  {time.perf_counter() - started:6.2f} s")


if __name__ == "__main__":
    named = [Path(name) for name in sys.argv[1:]]
    main(named or sorted(Path(__file__).parent.parent.glob("src/**/*.py")))
