"""Self-GC with the recorded answers of language models: `python bench/selfgc.py ask|judge|score FOLDER --answers FILE... [--out FOLDER]`.

`ask` writes the planner's questions without an answer, in the plain form of a batch (docs/models.md), some to a file; `judge` those of the judge and of
the A/B judge on the plans that came back; `score` prints Self-GC beside the baselines at the same cuts. Sessions are the same on every machine: by the hash
of their names, each folder of the corpus in turn; all their cuts count at which a planner has anything to name and the view is at most MOST tokens.
"""

import argparse
from collections.abc import Iterator
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

from tenure.engine.meter.tokens import o200k
from tenure.errors import InputError, ModelError
from tenure.lab.cuts import PRUNE, grounds
from tenure.lab.evidence.corpus import source_of
from tenure.lab.planner import PlannerPolicy
from tenure.models.batch import BatchModel

SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
SESSIONS = 20
LEAST_CUTS, MOST_CUTS = 3, 4  # of a session
MOST = 64_000  # o200k tokens of a view
ROOM = 12_000  # of the window in words
IN_A_FILE = 5  # questions


def in_turn(folder: Path) -> Iterator[str]:
    """Every session by name: of each folder the next by hash, folder after folder."""
    by_owner: dict[str, list[str]] = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.suffix in SUFFIXES and "/" in name and not name.startswith(("LICENSES/", "marks/")):
            by_owner.setdefault(name.partition("/")[0], []).append(name)
    ordered = [sorted(names, key=lambda name: sha256(name.encode()).digest()) for _, names in sorted(by_owner.items())]
    for row in zip_longest(*ordered):
        yield from (name for name in row if name is not None)


def chosen(folder: Path, policy: PlannerPolicy, sessions: int) -> dict[str, list[int]]:
    """The cuts of each session that counts."""
    found: dict[str, list[int]] = {}
    for name in in_turn(folder):
        if len(found) >= sessions:
            break
        numbers: list[int] = []
        try:
            for ground in grounds(source_of(str(folder), name), o200k()):
                tokens = ground.session.view.tokens
                if tokens <= MOST and policy.question(ground.session.situation(goal=int(tokens * (1 - PRUNE)))) is not None:
                    numbers.append(ground.number)
        except InputError:
            continue
        if len(numbers) >= LEAST_CUTS:
            found[name] = numbers[:MOST_CUTS]
    return found


def plain_files(model: BatchModel, out: Path, stem: str) -> int:
    """The questions without an answer, IN_A_FILE to a file; how many there are."""
    lines = model.file().splitlines(keepends=True)
    for start in range(0, len(lines), IN_A_FILE):
        (out / f"{stem}-{start // IN_A_FILE + 1:02}.jsonl").write_bytes(b"".join(lines[start : start + IN_A_FILE]))
    return len(lines)


def answers_of(paths: list[Path], out: Path) -> BatchModel:
    """All answers together, whatever file they came in."""
    together = out / "answers.jsonl"
    together.write_bytes(b"".join(path.read_bytes().rstrip(b"\n") + b"\n" for path in paths))
    return BatchModel(together)


def main() -> None:
    """Ask or score."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("ask", "judge", "score"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--answers", type=Path, nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    model = answers_of(given.answers, given.out)
    policy = PlannerPolicy(model=model, room=ROOM)
    if given.what == "ask":
        ask(given.folder, policy, given.sessions)
        print(f"{plain_files(model, given.out, 'questions')} questions")


def ask(folder: Path, policy: PlannerPolicy, sessions: int) -> None:
    """Ask for a plan at every cut that counts."""
    places = chosen(folder, policy, sessions)
    for name, numbers in places.items():
        for ground in grounds(source_of(str(folder), name), o200k()):
            if ground.number in numbers:
                situation = ground.session.situation(goal=int(ground.session.view.tokens * (1 - PRUNE)))
                try:
                    list(policy(situation))
                except ModelError:
                    continue


if __name__ == "__main__":
    main()
