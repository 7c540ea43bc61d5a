"""A session, or one task of it, as an ATIF trajectory: what harnesses read. Pure.

ATIF-v1.7, as `harbor.models.trajectories` of Harbor 0.25.0 takes it: forbidding unknown fields, steps counted from 1, results only of calls of their step.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from tenure.engine.meter.ledger import Spent
from tenure.engine.record.entry import Block, Entry, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult

VERSION: Final = "ATIF-v1.7"
NAME: Final = "tenure"
_SOURCES: Final = {Role.SYSTEM: "system", Role.USER: "user", Role.ASSISTANT: "agent"}

Step = dict[str, Any]


def trajectory(
    entries: Sequence[Entry], spent: Mapping[int, Spent], *, session: str, model: str, version: str, extra: Mapping[str, Any]
) -> dict[str, Any]:
    """The entries as steps. `spent` has what was reported, by entry; `extra` goes with the whole."""
    steps: list[Step] = []
    open_calls: dict[str, Step] = {}
    for entry in entries:
        if entry.role is Role.TOOL or _only_results(entry):
            _answered(entry, open_calls, steps)
            continue
        step = _step(entry, spent.get(entry.n), model)
        steps.append(step)
        for call in step.get("tool_calls", ()):
            open_calls[call["tool_call_id"]] = step
        _answered(entry, open_calls, steps)
    for number, step in enumerate(steps, 1):
        step["step_id"] = number
    found = [each for entry in entries if (each := spent.get(entry.n)) is not None]
    return {
        "schema_version": VERSION,
        "session_id": session,
        "agent": {"name": NAME, "version": version, "model_name": model},
        "steps": steps or [{"step_id": 1, "source": "user", "message": ""}],
        "final_metrics": {
            "total_prompt_tokens": sum(each.usage.prompt for each in found),
            "total_completion_tokens": sum(each.usage.output for each in found),
            "total_cached_tokens": sum(each.usage.cache_read for each in found),
            "total_cost_usd": sum((each.usd or 0.0 for each in found), 0.0),
            "total_steps": max(1, len(steps)),
        },
        "extra": dict(extra),
    }


def _step(entry: Entry, spent: Spent | None, model: str) -> Step:
    step: Step = {"step_id": 0, "source": _SOURCES.get(entry.role, "system"), "message": _words(entry.blocks)}
    if entry.at:
        step["timestamp"] = entry.at
    if entry.role is not Role.ASSISTANT:
        return step
    step["model_name"] = entry.model or model
    if thought := "\n".join(block.text for block in entry.blocks if isinstance(block, Thinking) and block.text):
        step["reasoning_content"] = thought
    if calls := [block for block in entry.blocks if isinstance(block, ToolCall)]:
        step["tool_calls"] = [
            {"tool_call_id": call.call_id, "function_name": call.name, "arguments": _arguments(call.arguments)} for call in calls
        ]
    if spent is not None:
        used = spent.usage
        step["metrics"] = {
            "prompt_tokens": used.prompt,
            "completion_tokens": used.output,
            "cached_tokens": used.cache_read,
            **({"cost_usd": spent.usd} if spent.usd is not None else {}),
            **({"extra": {"cache_write_tokens": used.cache_write}} if used.cache_write else {}),
        }
    return step


def _answered(entry: Entry, open_calls: dict[str, Step], steps: list[Step]) -> None:
    """Results go to the step that made the call; a result of no call stands at the newest step."""
    for block in entry.blocks:
        if not isinstance(block, ToolResult):
            continue
        step = open_calls.pop(block.call_id, None)
        result: dict[str, Any] = {"content": block.text}
        if step is not None:
            result["source_call_id"] = block.call_id
        elif steps:
            step = steps[-1]
        if step is not None:
            if block.error:
                result["extra"] = {"is_error": True}
            step.setdefault("observation", {"results": []})["results"].append(result)


def _only_results(entry: Entry) -> bool:
    return bool(entry.blocks) and all(isinstance(block, ToolResult) for block in entry.blocks)


def _words(blocks: Sequence[Block]) -> str:
    said = [block.text for block in blocks if isinstance(block, Text | Media | Opaque) and block.text]
    return "\n".join(said)


def _arguments(text: str) -> dict[str, Any]:
    """A call's arguments as an object, which is what the format takes; what is none stands under `raw`."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {"raw": text}
    return cast(dict[str, Any], found) if isinstance(found, dict) else {"raw": text}
