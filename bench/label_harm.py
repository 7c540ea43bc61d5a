"""How often the harm detector is right, by reading: `python bench/label_harm.py draw FOLDER --out DIR`, then `python bench/label_harm.py keep DIR`.

`draw` cuts sessions of every owner, prunes them, and writes questions that can be answered from themselves: findings of the detector, as many of each
kind (precision), and strings of later steps that stood only in what had left, found or not and mixed (recall). Beside them it writes `keys.jsonl`, which
says what the detector had said and is not for readers. Two readers answer by themselves, in `reader-a.jsonl` and `reader-b.jsonl`; `keep` appends their
labels to docs/evidence/labels.jsonl, which holds no text of any session: hashes, kinds, labels and a word why. `tenure evidence --only detector` writes
the page.

The sample is the same on every machine: everything is ordered by hash. An owner is the first folder of a session.
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path

import msgspec
from msgspec import Struct

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import DEFAULT, PEERS, POLICIES
from tenure.errors import InputError
from tenure.lab.cuts import Ground, grounds, rehearsed
from tenure.lab.events import At, HarmLine
from tenure.lab.evidence.corpus import Corpus, Member, corpus_of, owner_of, sample_of, source_of
from tenure.lab.evidence.measure import Label, Pair, judged
from tenure.lab.harm.holdings import Message, Passage, of_entry
from tenure.lab.harm.judge import WindowTrace
from tenure.lab.harm.watch import after_cut

LABELS = Path(__file__).parents[1] / "docs" / "evidence" / "labels.jsonl"
POLICIES_READ = ("sliding-window", DEFAULT)  # the oldest whole, and parts of results
PRUNE = 0.45
POINTS = 3  # cuts of a session
KEY = 12  # characters of a hash
AROUND = 160  # characters shown on each side
SHOWN = 900  # characters of one argument or text of a step
PHRASE = 4
WORD = re.compile(r"\w{3,64}")
FILE = 50  # questions of one file
MOST_FOUND, MOST_OTHERS = 3, 4  # strings of one step that are asked about
INSTRUCTIONS = """# Reading findings of the harm detector

An agent worked with everything of its session in view. At a cut a policy removed part of it. For a string of a later step you say whether the step
*needed what had been removed*: whether its author, with only the rest in view, could not be expected to write that string.

Answer each question by itself, from what it shows. Other readers get the same questions; do not compare.

`finding` questions ask about one string (`string`, with `further` lines of the same need): it stood where `stood` says, which is removed now, and stands
nowhere in what the agent still sees. `still_shown` are the closest things that are still in view. Answer one line

    {"id": "f001", "label": "needed" or "not", "why": WORD}

`step` questions show a whole step and several strings of it, each of which stood only in what was removed. Answer one line for each string

    {"id": "s001", "string": 1, "label": "needed" or "not", "why": WORD}

`needed`: the string is information that the step took from what was removed (a path, a name, a number, a fact, a wording, a line of a file that an edit has to
match, ...). `not`: it would be written so anyway. WORD is `taken` for needed; for not one of: `known` (a model knows it: public names, standard APIs, common
facts), `derivable` (follows from what is still shown or from the step itself), `idiom` (code or phrases that anyone writes so), `habit` (the agent's own way of
working: its commands, its scratch files), `wording` (ordinary words, or the agent's own words again), `common` (ordinary word or number, equal by chance), `form`
(a fragment, no string by itself), `content` (it is tool output or file content that a log put into an assistant's text).

When in doubt ask: would a capable model that never saw the removed part write this very string here? If yes, `not`.
"""


class Question(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a reader sees."""

    id: str
    task: str
    person: str  # the newest words of a person before the step
    step: tuple[dict[str, str], ...]
    string: str = ""
    further: tuple[str, ...] = ()
    stood: tuple[dict[str, str], ...] = ()
    still_shown: tuple[str, ...] = ()
    strings: tuple[dict[str, str], ...] = ()


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the detector had said of a question or of one of its strings, and where it was asked."""

    id: str
    string: int = 0
    policy: str
    owner: str
    session: str
    call: int
    entry: int
    need: str
    kind: str = ""
    form: str = ""
    part: str = ""
    found: bool = True
    weight: float = 1.0  # strings that this one stands for


class Answer(Struct, frozen=True, kw_only=True):
    """What a reader says."""

    id: str
    label: str
    why: str = ""
    string: int = 0


class Drawn(Struct, frozen=True, kw_only=True):
    """A question with its keys, and by what it is drawn."""

    owner: str
    kind: str
    order: str
    session: str
    question: Question
    keys: tuple[Key, ...]


def main() -> None:
    """Draw, or keep."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("draw", "keep"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--out", type=Path, default=Path("labels"))
    parser.add_argument("--findings", type=int, default=210)
    parser.add_argument("--steps", type=int, default=90)
    parser.add_argument("--cap", type=int, default=12, help="sessions of one owner")
    parser.add_argument("--round", type=int, default=6)
    given = parser.parse_args()
    if given.what == "keep":
        keep(given.folder, given.round)
    else:
        draw(corpus_of(given.folder), given.out, given.findings, given.steps, given.cap)


def draw(corpus: Corpus, out: Path, findings: int, steps: int, cap: int) -> None:
    """Write questions, keys and instructions."""
    out.mkdir(parents=True, exist_ok=True)
    asked: list[Drawn] = []
    for member in sample_of(corpus, cap).members:
        try:
            asked += of_session(corpus.folder, member)
        except InputError as error:
            print(error)
    of_kind = {kind: [each for each in asked if each.kind == kind] for kind in {each.kind for each in asked} - {"step"}}
    kinds = sorted(of_kind, key=lambda kind: (len(of_kind[kind]), kind))
    chosen: list[Drawn] = []
    for number, kind in enumerate(kinds):  # scarce kinds first: what they lack, the others give
        chosen += spread(of_kind[kind], -(-(findings - len(chosen)) // (len(kinds) - number)))
    chosen += spread([each for each in asked if each.kind == "step"], steps)
    chosen.sort(key=lambda each: each.order)
    lines: list[bytes] = []
    keys: list[bytes] = []
    for number, each in enumerate(chosen):
        name = f"{'s' if each.kind == 'step' else 'f'}{number:03}"
        lines.append(msgspec.json.encode(msgspec.structs.replace(each.question, id=name)))
        keys += [msgspec.json.encode(msgspec.structs.replace(key, id=name)) for key in each.keys]
    for start in range(0, len(lines), FILE):
        (out / f"reader-questions-{start // FILE + 1}.jsonl").write_bytes(b"\n".join(lines[start : start + FILE]) + b"\n")
    (out / "keys.jsonl").write_bytes(b"\n".join(keys) + b"\n")
    (out / "INSTRUCTIONS.md").write_text(INSTRUCTIONS, encoding="utf-8")
    for kind in (*kinds, "step"):
        mine = [each for each in chosen if each.kind == kind]
        print(
            f"{kind}: {len(mine)} questions of {len({each.owner for each in mine})} owners, {len({each.session for each in mine})} sessions"
        )


def spread(asked: Sequence[Drawn], count: int) -> list[Drawn]:
    """So many, each owner in turn, and of an owner each session in turn."""
    owners: dict[str, dict[str, list[Drawn]]] = {}
    for each in sorted(asked, key=lambda each: each.order):
        owners.setdefault(each.owner, {}).setdefault(each.session, []).append(each)
    rows = [[one for turn in zip_longest(*sessions.values()) for one in turn if one] for sessions in owners.values()]
    return [one for turn in zip_longest(*rows) for one in turn if one][:count]


def of_session(folder: str, member: Member) -> Iterator[Drawn]:
    """All that could be asked of a session, each need and each step once."""
    seen: set[tuple[int, str]] = set()
    for ground in grounds(source_of(folder, member.name), o200k(), points=POINTS):
        messages = [of_entry(entry, ground.whole.index) for entry in ground.whole.entries]
        for name in POLICIES_READ:
            policy = judged({**POLICIES, **PEERS}[name], member.name)
            assert policy is not None
            asker = Asker(ground, messages, member, name, rehearsed(ground.session, policy, PRUNE).edits)
            for harm in asker.harms:
                if (harm.entry, harm.text) not in seen:
                    seen.add((harm.entry, harm.text))
                    yield asker.finding(harm)
            if name == POLICIES_READ[0]:
                for entry in asker.steps():
                    if (entry, "") not in seen and (drawn := asker.step(entry)) is not None:
                        seen.add((entry, ""))
                        yield drawn


class Asker:
    """One policy at one cut. Its window is that of the cut, to which later messages are added."""

    def __init__(self, ground: Ground, messages: Sequence[Message], member: Member, policy: str, edits: Sequence[object]) -> None:
        self.ground, self.messages, self.member, self.policy = ground, messages, member, policy
        self.window = WindowTrace()
        self.window.commit(0, ground.session.length, tuple(edits))  # pyright: ignore[reportArgumentType]
        self.harms = [
            harm
            for harm in after_cut(ground.uses, ground.session.length, (), tuple(edits))  # pyright: ignore[reportArgumentType]
            if harm.part != "thinking" and harm.verdict in ("routed", "lost")
        ]

    def steps(self) -> Iterator[int]:
        """Later steps that say or call something."""
        first = self.ground.session.length
        yield from (each.entry for each in self.messages[first:] if each.role == "assistant" and len(_text_of(each)) >= 80)

    def finding(self, harm: HarmLine) -> Drawn:
        """A finding as a question."""
        wanted = self._wanted(harm)
        key = self._key(harm.entry, harm.text, found=True, kind=str(harm.kind), form=str(harm.form), part=harm.part)
        question = Question(
            id="",
            task="finding",
            person=self._person(harm.entry),
            step=self._shown_step(harm.entry, harm.text),
            string=harm.text,
            further=tuple(text for text in wanted if text != harm.text)[:4],
            stood=tuple(self._stood(at, harm.text, harm.entry) for at in _ends(harm.held)),
            still_shown=tuple(self._near(harm.text, harm.entry)),
        )
        return self._drawn(str(harm.kind), question, (key,))

    def step(self, entry: int) -> Drawn | None:
        """A step as a question about some strings of it; None where none stood only in what had left."""
        message = self.messages[entry]
        left, shown = self._left(), self._shown(entry)
        mine = [(harm, self._wanted(harm)) for harm in self.harms if harm.entry == entry]
        found: list[tuple[str, HarmLine | None]] = []
        others: list[tuple[str, HarmLine | None]] = []
        for text in dict.fromkeys(_only(_text_of(message), left, shown)):
            if text.isalpha() and o200k()(f" {text.lower()}") == 1 and not re.search(rf"[`'\"]{text}[`'\"]", _text_of(message)):
                continue  # an ordinary word, not set off as a name
            hit = next((harm for harm, wanted in mine if any(each in text or text in each for each in wanted)), None)
            (others if hit is None else found).append((text, hit))
        if not others and not found:
            return None
        chosen: list[tuple[str, HarmLine | None, float]] = []
        for group, most in ((found, MOST_FOUND), (others, MOST_OTHERS)):
            group.sort(key=lambda each: self._order(entry, each[0]))
            chosen += [(text, hit, len(group) / min(most, len(group))) for text, hit in group[:most]]
        chosen.sort(key=lambda each: self._order(entry, each[0] + "mixed"))
        keys = tuple(
            msgspec.structs.replace(
                self._key(
                    entry, text, found=hit is not None, kind=str(hit.kind) if hit else "", form=str(hit.form) if hit else ""
                ),
                string=number,
                weight=weight,
            )
            for number, (text, hit, weight) in enumerate(chosen, 1)
        )
        strings = tuple(
            {
                "n": str(number),
                "string": text,
                "stood": self._quote(left, text),
                "still_shown": " … ".join(self._near(text, entry, 1)),
            }
            for number, (text, _, _) in enumerate(chosen, 1)
        )
        question = Question(
            id="", task="step", person=self._person(entry), step=self._shown_step(entry, chosen[0][0]), strings=strings
        )
        return self._drawn("step", question, keys)

    def _wanted(self, harm: HarmLine) -> tuple[str, ...]:
        uses = (
            use for use in self.ground.uses.found if use.entry == harm.entry and use.block == harm.block and use.form == harm.form
        )
        return next(
            (tuple(w.text for w in use.wanted) for use in uses if any(w.text == harm.text for w in use.wanted)), (harm.text,)
        )

    def _drawn(self, kind: str, question: Question, keys: tuple[Key, ...]) -> Drawn:
        order = self._order(keys[0].entry, f"{kind}|{keys[0].need}")
        return Drawn(
            owner=owner_of(self.member.name), kind=kind, order=order, session=self.member.sha256, question=question, keys=keys
        )

    def _order(self, entry: int, text: str) -> str:
        return sha256(f"{self.member.sha256}|{self.policy}|{entry}|{text}".encode()).hexdigest()

    def _key(self, entry: int, text: str, *, found: bool, kind: str = "", form: str = "", part: str = "") -> Key:
        return Key(
            id="",
            policy=self.policy,
            owner=owner_of(self.member.name),
            session=self.member.sha256[:KEY],
            call=self.ground.uses.calls[entry],
            entry=entry,
            need=sha256(text.encode()).hexdigest()[:KEY],
            kind=kind,
            form=form,
            part=part,
            found=found,
        )

    def _left(self) -> str:
        return "\n".join(self._passage(at).text for at in sorted(self.window.taken))

    def _shown(self, entry: int) -> str:
        """What the agent still sees before a step."""
        shown = [residue.text for residue in self.window.residues()]
        for message in self.messages[:entry]:
            shown += [p.text for p in message.passages if p.at not in self.window.taken and p.kind != "thinking"]
        return "\n".join(shown)

    def _passage(self, at: At) -> Passage:
        return self.messages[at[0]].passages[at[1]]

    def _person(self, entry: int) -> str:
        words = (p.text for m in reversed(self.messages[:entry]) for p in m.passages if p.origin == "human" and p.kind == "text")
        return next(words, "")[:300]

    def _stood(self, at: At, text: str, entry: int) -> dict[str, str]:
        held = self._passage(at)
        called = sum(m.role == "assistant" for m in self.messages[at[0] : entry])
        what = f"{held.kind} {held.tool} ({held.origin}), {called} replies before the step"
        return {"where": what, "quote": _around(held.text, text)}

    def _shown_step(self, entry: int, text: str) -> tuple[dict[str, str], ...]:
        """The step's words and arguments, long ones around the string."""
        parts: list[dict[str, str]] = []
        for passage in self.messages[entry].passages:
            for field in passage.fields if passage.kind != "thinking" else ():
                body = field.text
                if len(body) > SHOWN:
                    place = max(0, body.find(text) - SHOWN // 2)
                    body = f"{'… ' if place else ''}{body[place : place + SHOWN]} …"
                parts.append({"part": f"{passage.kind} {passage.tool} {field.name}".strip(), "text": body})
        return tuple(parts[:8])

    def _near(self, text: str, entry: int, most: int = 3) -> Iterator[str]:
        """Lines still shown that hold the rarest part of a string."""
        lines = [line for line in self._shown(entry).split("\n") if len(line) < 4_000]
        for word in sorted(set(re.findall(r"[A-Za-z0-9]{4,}", text)), key=lambda word: (-len(word), word))[:3]:
            near = [line.strip() for line in lines if word in line]
            if near:
                yield from (_around(line, word, 80) for line in near[:most])
                return

    def _quote(self, left: str, text: str) -> str:
        return _around(left, text, 100)


def _ends(held: Sequence[At]) -> Sequence[At]:
    return held if len(held) < 3 else (held[0], held[-1])


def _text_of(message: Message) -> str:
    return "\n".join(passage.text for passage in message.passages if passage.kind in ("text", "tool_call"))


def _around(text: str, wanted: str, width: int = AROUND) -> str:
    place = max(0, text.find(wanted))
    return text[max(0, place - width) : place + len(wanted) + width]


def _only(step: str, left: str, shown: str) -> Iterator[str]:
    """Words, and phrases of PHRASE words, of a step that stood only in what had left; phrases that overlap are one."""
    words = [(found.start(), found.end()) for found in WORD.finditer(step)]
    known, gone = set(WORD.findall(shown)), set(WORD.findall(left))
    stop = -1
    start = 0
    for place, (first, last) in enumerate(words):
        phrase = step[first : words[min(len(words), place + PHRASE) - 1][1]]
        word = step[first:last]
        end = last if word in gone and word not in known else -1
        if place + PHRASE <= len(words) and phrase in left and phrase not in shown:
            end = words[place + PHRASE - 1][1]
        if end < 0:
            continue
        if first > stop:
            if stop >= 0:
                yield step[start:stop][:400]
            start = first
        stop = max(stop, end)
    if stop >= 0:
        yield step[start:stop][:400]


def keep(folder: Path, number: int) -> None:
    """Append the labels of both readers; says what was not answered by both."""
    readers = [_answers(folder / f"reader-{name}.jsonl") for name in ("a", "b")]
    lines: list[bytes] = []
    missing = 0
    for line in (folder / "keys.jsonl").read_bytes().splitlines():
        key = msgspec.json.decode(line, type=Key)
        both = [reader.get((key.id, key.string)) for reader in readers]
        if None in both:
            missing += 1
            continue
        pair = tuple(each.label for each in both if each is not None)
        why = next(
            (each.why for each in both if each is not None and each.label == "not" and re.fullmatch(r"[a-z]{1,12}", each.why)),
            "taken",
        )
        label = Label(
            round=number,
            policy=key.policy,
            session=key.session,
            owner=key.owner,
            call=key.call,
            entry=key.entry,
            need=key.need,
            kind=key.kind,
            form=key.form,
            part=key.part,
            label="pair" if key.string == 0 else "string",
            pair=msgspec.convert(pair, Pair),
            why=why,
            weight=key.weight,
            found=int(key.found),
        )
        lines.append(msgspec.json.encode(label))
    kept = [line for line in LABELS.read_bytes().splitlines() if msgspec.json.decode(line, type=Label).round != number]
    LABELS.write_bytes(b"\n".join([*kept, *lines]) + b"\n")
    print(f"{len(lines)} labels kept, {missing} not answered by both")


def _answers(path: Path) -> dict[tuple[str, int], Answer]:
    answers: dict[tuple[str, int], Answer] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if line.strip():
            try:
                answer = msgspec.json.decode(line, type=Answer)
            except msgspec.DecodeError as error:
                raise InputError(
                    f"{path}:{number}", f"no answer ({error})", 'a line such as {"id":"f001","label":"needed","why":"taken"}'
                ) from error
            answers[answer.id, answer.string] = answer
    return answers


if __name__ == "__main__":
    main()
