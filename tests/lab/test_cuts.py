"""Cut-point replay over a session whose future is known."""

import json
from pathlib import Path

from tenure.engine.meter.tokens import o200k
from tenure.engine.policies import PEERS, POLICIES
from tenure.engine.policies.policy import Conduct, Policy
from tenure.engine.policies.situation import Situation
from tenure.lab.cuts import cuts
from tenure.lab.loading import source
from tenure.lab.measured import CutLine

TOKENIZER = o200k()
BULK = "\n".join(f"{n}: nothing here is ever wanted again, row {n * n}" for n in range(160))


class Nobody:
    """A policy that takes nothing."""

    name = "nobody"
    conduct = Conduct()

    def __call__(self, situation: Situation, /) -> tuple[()]:
        return ()


def recorded(folder: Path, *, calls: int = 20, wanted: int | None = None) -> Path:
    """A session of reads; the `wanted`-th returned a ticket that the last call names."""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Look through all parts."}]
    for n in range(calls):
        arguments = {"path": f"part_{n}.txt"}
        if n == calls - 1 and wanted is not None:
            arguments = {"path": "TICKET-90417753.txt"}
        call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": json.dumps(arguments)}}
        found = f"\nsee TICKET-90417753.txt for the rest\n{BULK}" if n == wanted else BULK
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{n}", "content": f"part {n}{found}"},
        ]
    path = folder / "session.json"
    path.write_text(json.dumps(messages), encoding="utf-8")
    return path


def judged(path: Path, *policies: Policy) -> list[CutLine]:
    return list(cuts(source(str(path)), {policy.name: policy for policy in policies}, TOKENIZER))


def test_a_policy_that_takes_nothing_misses_nothing(tmp_path: Path) -> None:
    lines = judged(recorded(tmp_path, wanted=2), Nobody())
    assert lines
    assert {(line.pruned, line.missed, line.visible) for line in lines} == {(0.0, 0, 0)}


def test_what_the_future_needed_of_what_was_taken_is_missed_and_of_what_was_not_is_not(tmp_path: Path) -> None:
    lines = judged(recorded(tmp_path, wanted=2), PEERS["tool-prune"])
    assert lines[-1].missed >= 1
    (tmp_path / "other").mkdir()
    assert not any(line.missed for line in judged(recorded(tmp_path / "other"), PEERS["tool-prune"]))


def test_all_policies_are_cut_at_the_same_places_and_take_what_they_are_to_take(tmp_path: Path) -> None:
    lines = judged(recorded(tmp_path), POLICIES["cwl"], PEERS["tool-prune"])
    by_policy = {
        name: [(line.cut, line.before_call, line.tokens) for line in lines if line.policy == name]
        for name in ("cwl", "tool-prune")
    }
    assert by_policy["cwl"] == by_policy["tool-prune"]
    assert all(line.pruned >= 0.4 for line in lines if line.policy == "cwl")
    assert not any(line.missed for line in lines if line.policy == "cwl")


def test_a_session_too_short_to_be_cut_has_no_lines(tmp_path: Path) -> None:
    assert judged(recorded(tmp_path, calls=8), Nobody()) == []


def test_the_same_session_is_judged_alike_twice(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    assert judged(path, *POLICIES.values()) == judged(path, *POLICIES.values())


def test_beside_each_policy_another_takes_just_the_share_that_it_took(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    ours = POLICIES["graph"]
    lines = list(cuts(source(str(path)), {"tool-prune": PEERS["tool-prune"]}, TOKENIZER, beside={"graph": ours}))
    theirs = {line.cut: line for line in lines if not line.matched}
    matched = [line for line in lines if line.matched]
    assert {line.matched for line in matched} == {"tool-prune"}
    assert all(abs(line.pruned - theirs[line.cut].pruned) < 0.03 for line in matched)


def test_an_oracle_misses_what_it_can_keep_never(tmp_path: Path) -> None:
    path = recorded(tmp_path, wanted=2)
    lines = list(cuts(source(str(path)), {"tool-prune": PEERS["tool-prune"]}, TOKENIZER, oracles=True))
    oracles = [line for line in lines if line.policy.startswith("oracle-")]
    assert {line.policy for line in oracles} == {"oracle-objects", "oracle-lines"}
    assert not any(line.missed for line in oracles)
    assert all(line.pruned >= 0.9 * line.target for line in oracles)
