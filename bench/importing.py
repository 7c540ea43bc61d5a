"""What `import tenure` costs: `python bench/importing.py`; the fastest of several fresh interpreters, start-up taken off."""

import subprocess
import sys
import time

RUNS = 7


def fastest(code: str) -> float:
    """Seconds of the fastest run of `code` in an interpreter of its own."""
    taken: list[float] = []
    for _ in range(RUNS):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        taken.append(time.perf_counter() - started)
    return min(taken)


if __name__ == "__main__":
    bare = fastest("pass")
    print(f"import tenure: {(fastest('import tenure') - bare) * 1e3:.0f} ms; from tenure import Context, Budget: ", end="")
    print(f"{(fastest('from tenure import Context, Budget') - bare) * 1e3:.0f} ms")
