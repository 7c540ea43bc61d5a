"""The lines of Codex's rollouts, as far as they matter, and which kinds of them never were conversation."""

import re
from typing import Final

import msgspec
from msgspec import Raw, Struct

from tenure.logs.codex.item import Item
from tenure.logs.codex.usage import Tokens
from tenure.logs.shape import keys

# Lines that never were conversation.
NOTES: Final = frozenset(
    "world_state retained_context security_risk_score realtime_item session_state inter_agent_communication_metadata".split()
)

# Events: what the screen showed, and how the run went.
EVENTS: Final = frozenset(
    "user_message agent_message agent_message_delta agent_message_content_delta agent_reasoning agent_reasoning_delta "
    "agent_reasoning_raw_content agent_reasoning_raw_content_delta agent_reasoning_section_break reasoning_content_delta "
    "reasoning_raw_content_delta raw_response_item session_configured thread_name_updated thread_goal_updated task_complete "
    "turn_complete error warning guardian_warning stream_error background_event deprecation_notice shutdown_complete "
    "exec_command_begin exec_command_end exec_command_output_delta terminal_interaction exec_approval_request "
    "apply_patch_approval_request request_user_input request_permissions elicitation_request dynamic_tool_call_request "
    "dynamic_tool_call_response patch_apply_begin patch_apply_updated patch_apply_end turn_diff mcp_tool_call_begin "
    "mcp_tool_call_end mcp_startup_update mcp_startup_complete mcp_list_tools_response web_search_begin web_search_end "
    "image_generation_begin image_generation_end view_image_tool_call plan_update plan_delta item_started item_completed "
    "context_compacted entered_review_mode exited_review_mode undo_started undo_completed hook_started hook_completed "
    "guardian_assessment sub_agent_activity collab_agent_spawn_begin collab_agent_spawn_end collab_agent_interaction_begin "
    "collab_agent_interaction_end collab_waiting_begin collab_waiting_end collab_close_begin collab_close_end "
    "collab_resume_begin collab_resume_end model_reroute model_verification safety_buffering turn_moderation_metadata "
    "get_history_entry_response list_custom_prompts_response conversation_path skills_update_available".split()
)

# Of the items, those that stand on a line of their own in the older generations.
BARE: Final = frozenset({"message", "reasoning", "web_search_call", "compaction", "agent_message", "ghost_snapshot"})

_STAMP: Final = re.compile(rb'\s*\{\s*"timestamp"\s*:\s*"[^"\\]*"\s*,')
_LINE_TYPES: Final = ("session_meta", "response_item", "event_msg", "turn_context", "compacted")
_LINE_TYPE: Final = re.compile(rf'"type"\s*:\s*"({"|".join(_LINE_TYPES)})"'.encode())
_OF_META: Final = (b'"cli_version"', b'"originator"', b'"base_instructions"')


class Words(Struct, frozen=True, gc=False):
    """A text in an object."""

    text: str | None = None


class Meta(Struct, frozen=True, gc=False):
    """The header; in the oldest generations a line without a type, or a member of the document."""

    id: str | None = None
    timestamp: str | int | float | None = None
    instructions: str | None = None  # the user's; versions that sent them as a message have them there too
    base_instructions: Words | str | None = None
    model: str | None = None
    parent_thread_id: str | None = None
    thread_source: Raw = Raw(b"null")
    source: Raw = Raw(b"null")
    history_base: Raw = Raw(b"null")


class Settings(Struct, frozen=True, gc=False):
    """Of a turn, or as changed between turns."""

    model: str | None = None


class Info(Struct, frozen=True, gc=False):
    """What a `token_count` tells; both are missing when only the rate limits changed."""

    last_token_usage: Tokens | None = None
    total_token_usage: Tokens | None = None


class RolloutEvent(Struct, frozen=True, gc=False):
    """An event; which fields are set depends on `type`."""

    type: str = ""
    info: Info | None = None
    num_turns: int | None = None
    thread_settings: Settings | None = None


class Counted(Struct, frozen=True, gc=False):
    """A `token_usage_record`, which newer versions write beside `token_count`."""

    usage: Tokens | None = None
    thread_token_usage: Tokens | None = None


class Compacted(Struct, frozen=True, gc=False):
    """A compaction: the summary, and since 0.6x the whole window as it was afterwards."""

    message: str | None = None
    replacement_history: list[Raw] | None = None


class Letter(Struct, frozen=True, gc=False):
    """What another agent wrote to this one."""

    author: str = ""
    recipient: str = ""
    content: str | None = None
    encrypted_content: str | None = None
    trigger_turn: bool | None = False


class Line(Struct, frozen=True, gc=False):
    """A line of any generation."""

    timestamp: str | int | float | None = None
    type: str = ""
    payload: Raw = Raw(b"")
    metadata: Raw = Raw(b"")
    record_type: str | None = None  # "state" in the oldest generation: says nothing
    role: str | None = None
    id: str | None = None


LINE: Final = msgspec.json.Decoder(Line)
ITEM: Final = msgspec.json.Decoder(Item)
META: Final = msgspec.json.Decoder(Meta)
EVENT: Final = msgspec.json.Decoder(RolloutEvent)
COUNTED: Final = msgspec.json.Decoder(Counted)
SETTINGS: Final = msgspec.json.Decoder(Settings)
COMPACTED: Final = msgspec.json.Decoder(Compacted)
LETTER: Final = msgspec.json.Decoder(Letter)


class _Probe(Struct, frozen=True, gc=False):
    type: str = ""
    payload: Raw = Raw(b"")
    record_type: str | None = None
    id: str | None = None
    timestamp: str | None = None
    instructions: Raw = Raw(b"")
    cli_version: str | None = None
    originator: str | None = None

    @property
    def fits(self) -> bool:
        if bytes(self.payload):
            return self.type in _LINE_TYPES
        if self.type:
            return self.type == "session_meta" and (self.cli_version is not None or self.originator is not None)
        return self.record_type == "state" or bool(self.id and self.timestamp and bytes(self.instructions))


_probe: Final = msgspec.json.Decoder(_Probe)


def is_document(head: bytes) -> bool:
    """Whether the head is one of the document of the first versions."""
    top = keys(head)
    if not top or not set(top) <= {"session", "items"}:
        return False
    return (b'"instructions"' in head and b'"timestamp"' in head) if "session" in top else b'put_text"' in head


def is_line(line: bytes) -> bool:
    """Whether this is one of the lines that only rollouts have; it may be cut off."""
    try:
        return _probe.decode(line).fits
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        named = {"type", "payload"} <= set(keys(line))
        return named and (_LINE_TYPE.search(line) is not None or any(mark in line for mark in _OF_META))


def unstamped(line: bytes) -> bytes:
    """An item that stands on a line of its own, without the time that some versions wrote before it."""
    stamp = _STAMP.match(line)
    return b"{" + line[stamp.end() :] if stamp else line
