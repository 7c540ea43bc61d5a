"""How often the harm detector is right, by reading: `python bench/label_harm.py needs|steps|score FOLDER [--part even|odd] [--count N] [--skip N]`.

`needs` prints a sample of what the detector calls missed, with what the step did and where the text had stood; `steps` prints whole steps after
removals with all that was found in them, to see what was not. A reader judges each and appends a line to docs/evidence/labels.jsonl, which holds
no text of any session: the start of its file's hash, the entry, the need's hash, kind and form, the label and a word why. `score` reads them.

The sample is the same on every machine: it is ordered by hash. `--part` takes the sessions whose hash is even or odd, so that what was learned
on one half is measured on the other.
"""

import argparse
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from math import sqrt
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from tenure.engine.lifecycle.budget import Budget
from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.errors import InputError
from tenure.lab.events import CommitLine, EntryLine, HarmLine
from tenure.lab.harm.judge import WindowTrace
from tenure.lab.harm.passage import Message, of_line
from tenure.lab.harm.watch import Watch
from tenure.lab.loading import source
from tenure.lab.replay import Options, replay

LABELS = Path(__file__).parents[1] / "docs" / "evidence" / "labels.jsonl"
CEILING = 30_000
RULES = ("cwl", "oldest-turn")
SUFFIXES = (".jsonl", ".json", ".md", ".traj", ".eval", ".xz", ".gz", ".zst")
KEY = 12  # characters of a hash
SHOWN = 1_800  # characters of one text of a step
SHORTEST_STEP = 80
PHRASE = 4
WORD = re.compile(r"\w{3,64}")
AROUND = 120  # characters shown on each side


class Label(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a reader said of one need or of one step."""

    round: int  # 1: the extractor as first written; later ones measure what was changed since, on other sessions
    policy: str
    session: str  # start of the sha256 of the unpacked file
    call: int
    entry: int
    need: str = ""  # start of the sha256 of the need's text; empty for a step
    kind: str = ""
    form: str = ""
    part: str = ""
    label: Literal["needed", "not", "step"]
    why: str
    seen: int = 0  # of a step: needs that the reader saw
    found: int = 0  # and those of them that the detector had found


class Session(Struct, frozen=True, kw_only=True):
    """A replayed session with its harms."""

    name: str
    sha256: str
    policy: str
    messages: dict[int, Message]
    harms: tuple[HarmLine, ...]
    commits: tuple[CommitLine, ...]
    removed_from: int  # the first entry after something left


def main() -> None:
    """Draw or score."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("needs", "steps", "score"))
    parser.add_argument("folder", type=Path, nargs="?", default=Path("sessions"))
    parser.add_argument("--part", choices=("even", "odd", "all"), default="all")
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--skip", type=int, default=0)
    given = parser.parse_args()
    if given.what == "score":
        score()
        return
    sessions = {(one.policy, one.sha256): one for one in replayed(given.folder, given.part)}
    if given.what == "needs":
        for number, lines in enumerate(harms_of(sessions)[given.skip : given.skip + given.count], given.skip):
            print(f"\n=== {number} " + "\n".join(lines))
        return
    done = {(label.session, label.entry) for label in labels() if label.label == "step"}
    fresh = [(one, entry) for one, entry in steps_of(sessions) if (one.sha256[:KEY], entry) not in done]
    for number, (one, entry) in enumerate(fresh[given.skip : given.skip + given.count], given.skip):
        print(f"\n=== {number} " + "\n".join(_step(one, entry)))


def replayed(folder: Path, part: str) -> Iterator[Session]:
    """Every session of a folder under both policies."""
    tokenizer = o200k()
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        digest = sha256(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()).hexdigest()
        if part != "all" and int(digest[:2], 16) % 2 != (part == "odd"):
            continue
        for name in RULES:
            try:
                yield _replayed(path, digest, name, tokenizer)
            except InputError:
                break


def _replayed(path: Path, digest: str, name: str, tokenizer: object) -> Session:
    watch, harms, messages, commits, first = Watch(), [], {}, [], 1 << 60
    options = Options(budget=Budget(ceiling=CEILING), policy={**POLICIES, **PEERS}[name])
    for line in replay([source(str(path))], options, tokenizer):
        harms += watch.take(line)
        if isinstance(line, EntryLine):
            messages[line.entry] = of_line(line)
        elif isinstance(line, CommitLine):
            commits.append(line)
            first = min(first, line.entries) if line.moment != "recorded" else first
    return Session(
        name=path.name,
        sha256=digest,
        policy=name,
        messages=messages,
        harms=tuple(harms),
        commits=tuple(commits),
        removed_from=first,
    )


def harms_of(sessions: dict[tuple[str, str], Session]) -> list[list[str]]:
    """What is called missed, in words or calls, in the order of the sample."""
    missed = [
        (_order(one, harm.entry, harm.text), one, harm)
        for one in sessions.values()
        for harm in one.harms
        if harm.verdict != "visible" and harm.part != "thinking"
    ]
    done = {(label.session, label.entry) for label in labels() if label.need}
    drawn: list[list[str]] = []
    for _, one, harm in sorted(missed, key=lambda item: item[0]):
        key = (one.sha256[:KEY], harm.entry)
        if key not in done:
            done.add(key)  # one of each step, and the other policy asks the same
            drawn.append(_shown(one, harm))
    return drawn


def labels() -> list[Label]:
    """What was read so far."""
    return [msgspec.json.decode(line, type=Label) for line in LABELS.read_bytes().splitlines()] if LABELS.exists() else []


def steps_of(sessions: dict[tuple[str, str], Session]) -> list[tuple[Session, int]]:
    """Steps after a removal that say or call something of some length, in the order of the sample."""
    steps = [
        (one, entry)
        for one in sessions.values()
        for entry, message in one.messages.items()
        if entry >= one.removed_from and message.role == "assistant" and len(_said(message)) >= SHORTEST_STEP
    ]
    return sorted(steps, key=lambda step: _order(step[0], step[1], ""))


def _said(message: Message) -> str:
    return "\n".join(passage.text for passage in message.passages if passage.kind in ("text", "tool_call"))


def _step(one: Session, entry: int) -> list[str]:
    """A step whole, with every word and phrase of it that stood in what had left and stands nowhere in the view, found by the detector or not."""
    message = one.messages[entry]
    lines = [f"{one.name} {one.policy} {one.sha256[:KEY]} call {_call_of(one, entry)} entry {entry}"]
    lines += [
        f"  [{p.kind} {p.tool}] {f.name}: {f.text[:SHOWN]}" for p in message.passages if p.kind != "thinking" for f in p.fields
    ]
    left, shown = _texts_at(one, entry)
    lines.append(f"  ONLY IN WHAT LEFT: {' | '.join(_only(_said(message), left, shown))[:SHOWN]}")
    found = (harm for harm in one.harms if harm.entry == entry and harm.part != "thinking" and harm.verdict != "visible")
    lines += [f"  FOUND {harm.form} {harm.text!r} +{harm.more}" for harm in found]
    return lines


def _call_of(one: Session, entry: int) -> int:
    return sum(message.role == "assistant" for number, message in one.messages.items() if number < entry)


def _texts_at(one: Session, entry: int) -> tuple[str, str]:
    """What had left and what was shown when the step of an entry was asked for."""
    window = WindowTrace()
    for commit in one.commits:
        if commit.entries <= entry:
            window.commit(commit.commit, commit.entries, commit.edits, recorded=commit.moment == "recorded")
    left, shown = [], [residue.text for residue in window.residues()]
    newest = max((taken.entries for taken in window.taken.values()), default=0)
    for number, message in one.messages.items():
        for passage in message.passages if number < entry else ():
            if passage.at in window.taken:
                left += [passage.text] if passage.at not in window.unseen else []
            elif passage.kind != "thinking" or number < newest:
                shown.append(passage.text)
    return "\n".join(left), "\n".join(shown)


def _only(said: str, left: str, shown: str) -> Iterator[str]:
    """Words, and phrases of PHRASE words, of a step that stood only in what had left; phrases that overlap are one."""
    words = [(found.start(), found.end()) for found in WORD.finditer(said)]
    known, gone = set(WORD.findall(shown)), set(WORD.findall(left))
    stop = -1
    start = 0
    for place, (first, last) in enumerate(words):
        phrase = said[first : words[min(len(words), place + PHRASE) - 1][1]]
        word = said[first:last]
        end = last if word in gone and word not in known else -1
        if place + PHRASE <= len(words) and phrase in left and phrase not in shown:
            end = words[place + PHRASE - 1][1]
        if end < 0:
            continue
        if first > stop:
            if stop >= 0:
                yield said[start:stop].replace("\n", " ")
            start = first
        stop = max(stop, end)
    if stop >= 0:
        yield said[start:stop].replace("\n", " ")


def _shown(one: Session, harm: HarmLine) -> list[str]:
    need = sha256(harm.text.encode()).hexdigest()[:KEY]
    lines = [f"{one.name} {one.policy} {one.sha256[:KEY]} call {harm.call} entry {harm.entry} need {need}"]
    lines.append(
        f"  {harm.verdict} {harm.kind}/{harm.form} in {harm.part} {harm.tool} {harm.field} +{harm.more} ({harm.category}: {harm.rule})"
    )
    lines.append(f"  TEXT {harm.text!r}")
    step = one.messages[harm.entry].passages[harm.block]
    lines += [f"    .{field.name} = {field.text[:110]!r}" for field in step.fields if field.name != harm.field]
    used = next((field.text for field in step.fields if field.name == harm.field and harm.text in field.text), "")
    lines.append(f"  USED {_around(used, harm.text)!r}")
    for at in harm.held if len(harm.held) < 4 else (harm.held[0], *harm.held[-2:]):
        held = one.messages[at[0]].passages[at[1]]
        lines.append(f"  HELD {at} {held.kind} {held.origin} {held.tool} {held.objects[:1]} {_around(held.text, harm.text)!r}")
    return lines


def _around(text: str, wanted: str) -> str:
    place = max(0, text.find(wanted))
    return text[max(0, place - AROUND) : place + len(wanted) + AROUND]


def _order(one: Session, entry: int, text: str) -> str:
    return sha256(f"{one.sha256}|{one.policy}|{entry}|{text}".encode()).hexdigest()


def score() -> None:
    """Precision and recall of every round, with Wilson's 95 % intervals."""
    every = labels()
    for number in sorted({label.round for label in every}):
        mine = [label for label in every if label.round == number]
        needs = [label for label in mine if label.label != "step"]
        print(f"round {number}: precision {_share(sum(n.label == 'needed' for n in needs), len(needs))}")
        for kind in sorted({need.kind for need in needs}):
            of_kind = [need for need in needs if need.kind == kind]
            print(f"  {kind}: {_share(sum(n.label == 'needed' for n in of_kind), len(of_kind))}")
        print("  not needed because:", dict(Counter(n.why for n in needs if n.label == "not").most_common()))
        steps = [label for label in mine if label.label == "step"]
        if steps:
            print(f"  recall {_share(sum(s.found for s in steps), sum(s.seen for s in steps))} over {len(steps)} steps")


def _share(part: int, whole: int) -> str:
    low, high = wilson(part, whole)
    return f"{part} of {whole}, {part / max(1, whole):.0%} ({low:.0%} to {high:.0%})"


def wilson(part: int, whole: int, z: float = 1.959964) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    if not whole:
        return 0.0, 1.0
    share, squared = part / whole, z * z
    middle, wide = share + squared / (2 * whole), z * sqrt(share * (1 - share) / whole + squared / (4 * whole * whole))
    return (middle - wide) / (1 + squared / whole), (middle + wide) / (1 + squared / whole)


if __name__ == "__main__":
    main()
