"""Who wrote a text that Codex filed under the user's role: a table, since the harness speaks under that role too."""

from typing import Final

from tenure.engine.record.entry import Origin

# Elements that stand alone in a text of the harness. Codex itself tells its own fragments by their first and last words.
ELEMENTS: Final = frozenset(
    "user_instructions environment_context instructions user_shell_command user_action turn_aborted subagent_notification skill "
    "hook_prompt codex_internal_context goal_context extension_context internal_context recommended_plugins permissions model_switch "
    "collaboration_mode multi_agent_mode realtime_conversation apps_instructions skills_instructions plugins_instructions "
    "personality_spec token_budget token_budget_reminder context_window context_window_guidance rollout_budget "
    "agent_message_board_notification current_time user_goal_update".split()
)
EXTERNAL: Final = "external_"  # an element named after whoever added the context

OPENINGS: Final = (
    "# AGENTS.md instructions",
    "Another language model started to solve this problem and produced a summary of its thinking process.",
    "You were originally given instructions from a user over one or more turns. Here were the user messages:",
    "Warning: The maximum number of unified exec processes",
    "Warning: apply_patch was requested via ",
    "Warning: Your account was flagged for potentially high-risk cyber activity",
    "Here is a list of plugins that are available but not installed.",
)

LABELS: Final = ("<image", "</image>", "<local_image", "</local_image>", "<local_audio", "</local_audio>")  # around an attachment

# What newer versions note beside a part about its kind; where they are not sure, the text decides.
HUMAN_KIND: Final = "user."
HARNESS_KINDS: Final = frozenset({"user.heartbeat"})
UNSURE_KINDS: Final = frozenset({"", "unknown"})

_LONGEST_NAME: Final = 64  # characters


def written_by(text: str, kind: str = "") -> Origin:
    """Human as soon as anything stands beside the harness's elements, since human text is what must not be lost."""
    if kind not in UNSURE_KINDS:
        return Origin.HUMAN if kind.startswith(HUMAN_KIND) and kind not in HARNESS_KINDS else Origin.HARNESS
    start = text[: _LONGEST_NAME * 2].lstrip()
    if start.startswith(OPENINGS) or is_label(text):
        return Origin.HARNESS
    return Origin.HARNESS if start.startswith("<") and _is_element(text.strip()) else Origin.HUMAN


def is_label(text: str) -> bool:
    """Whether the text only names the attachment it stands beside."""
    return text.startswith(LABELS) and len(text) <= _LONGEST_NAME * 4 and text.rstrip().endswith(">") and text.count("<") == 1


def _is_element(text: str) -> bool:
    """Whether the text starts with the opening of an element of the harness and ends with its closing."""
    opening = text[1:_LONGEST_NAME].split(">", 1)[0].split("\n", 1)[0].lower()
    name = opening.split(" ", 1)[0]
    known = name in ELEMENTS or name.startswith(EXTERNAL)
    return known and text[-_LONGEST_NAME - 3 :].lower().endswith((f"</{name}>", f"</{opening}>"))
