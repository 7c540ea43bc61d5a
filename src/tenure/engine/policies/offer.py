"""The virtual tools as an agent is offered them: their texts are made from what the policy in force does."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tenure.engine.policies.policy import Conduct, Policy, marks_of
from tenure.engine.record.episodes import DELIMITER_SCHEMA, DELIMITER_USE
from tenure.engine.record.recall import RECALL_SCHEMA
from tenure.engine.record.tools import DELIMITER, RECALL
from tenure.engine.view.residue import DESCRIPTION_SHARE, NAME_SHARE


class Offer(NamedTuple):
    """A tool as it is declared to a model."""

    name: str
    description: str
    schema: Mapping[str, Any]


def delimiter_offer(policy: Policy | None) -> Offer | None:
    """The tool `delimiter`; None under a policy that reads no marks."""
    marks = marks_of(policy)
    if policy is None or not marks:
        return None
    text = (
        "Mark where a piece of your work begins and ends. It changes nothing in the task; it decides what stays in your context. "
        f"When the token budget is passed, {marks} What always stays: {_staying(policy.conduct)}. {_standing(policy.conduct)} "
        f"Anything that left can be had again with recall.\n{DELIMITER_USE}"
    )
    return Offer(DELIMITER, text, DELIMITER_SCHEMA)


def recall_offer(policy: Policy | None) -> Offer:
    """The tool `recall`. What it says holds whatever a policy leaves in place of what goes."""
    episode = "episode:locate-auth or locate-auth alone, " if marks_of(policy) else ""
    text = (
        "Bring back what left your context or was shortened in it, exactly as it was. By handle, where you see one in the conversation "
        f"(read:12@3fa9, user:3, step:17, {episode}skill:release); lines gives a part. Or search everything there ever was, by words "
        "(ranked), path or pattern: matches come with handle and line number. A handle beside words or a pattern searches only in it. "
        "A long answer ends by saying how to go on."
    )
    return Offer(RECALL, text, RECALL_SCHEMA)


def offers(policy: Policy | None) -> tuple[Offer, ...]:
    """The tools that mark work and bring back what left, in the order in which they are declared."""
    delimiter = delimiter_offer(policy)
    return (*(() if delimiter is None else (delimiter,)), recall_offer(policy))


def _staying(conduct: Conduct) -> str:
    kept = ["everything the user wrote"]
    if conduct.before_marks:
        kept.append("what came before your first mark")
    if conduct.tail_exchanges:
        return ", ".join([*kept, "the episode you are in (of a very long one the newest part)", "your latest calls"])
    return ", ".join([*kept, "the episode you are in", "results that you have not answered yet"])


def _standing(conduct: Conduct) -> str:
    """What is left in the place of an episode."""
    if conduct.naming == "lines":
        return (
            f"Of an expl that has left your description stays; when all descriptions take more than {DESCRIPTION_SHARE:.0%} of the budget, "
            f"of the oldest only the names stay, and of those at most {NAME_SHARE:.0%}. recall brings back each by its name, or finds it by words."
        )
    if conduct.naming == "descriptions":
        return "Of an expl that has left your description stays for good, and nothing of an act."
    return "Nothing is left in the place of an episode, not even your description: recall finds it by its name."
