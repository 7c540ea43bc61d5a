"""What a provider would refuse in a request, by its rules. Pure: a property-based test can drive it without HTTP.

The messages are the providers' own, as far as they are known. Signatures that `tenure.testing.seals` made are checked, others pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any, Final

from tenure.apis.json_text import Json, dump, load, object_of, optional_string
from tenure.engine.view.rules import Rules
from tenure.testing.prefix import units
from tenure.testing.seals import is_ours, led_to, needs_thinking, reasoning_of, seals_prefix, seals_text

Fields = dict[str, Json]

_ROLES: Final = {
    "anthropic": ("user", "assistant", "system"),
    "openai-chat": ("system", "developer", "user", "assistant", "tool", "function"),
    "openai-responses": ("system", "developer", "user", "assistant"),
}
_THINKING: Final = ("thinking", "redacted_thinking")


def violations(body: Mapping[str, Any], rules: Rules) -> tuple[str, ...]:
    """Everything that the provider would refuse, in the order of the request; empty when it is valid."""
    fields = object_of(load(dump(body)), "request")
    messages = _objects(fields.get("input" if rules.dialect == "openai-responses" else "messages"))
    check = {"anthropic": _anthropic, "openai-chat": _chat, "openai-responses": _responses}[rules.dialect]
    return (*_roles(messages, rules), *check(fields, messages, rules), *_markers(body, rules), *_tools(fields))


def _tools(fields: Fields) -> Iterator[str]:
    declared = [tool.get("function", tool) for tool in _objects(fields.get("tools"))]
    names = [optional_string(tool, "name") for tool in declared if isinstance(tool, dict) and tool.get("name")]
    if len({*names}) < len(names):
        yield "tools: Tool names must be unique."


def _roles(messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
    roles = [optional_string(message, "role") for message in messages if "role" in message or rules.dialect != "openai-responses"]
    for n, role in enumerate(roles):
        if role not in _ROLES[rules.dialect]:
            yield f"messages.{n}.role: unexpected role {role!r}"
    if rules.dialect == "anthropic":
        yield from _systems(messages, roles, rules)
    spoken = [role for role in roles if role not in ("system", "developer")]
    if not messages:
        yield "messages: at least one message is required"
    if rules.first_user and spoken and spoken[0] != "user":
        yield 'messages: first message must use the "user" role'
    if rules.alternation and any(a == b != "tool" for a, b in pairwise(spoken)):
        yield "Please ensure that multiturn requests alternate between user and model."


def _systems(messages: Sequence[Fields], roles: Sequence[str], rules: Rules) -> Iterator[str]:
    """What is wrong with messages of a system; those without content only carry settings, and may stand anywhere."""
    if "system" in roles and not rules.system_messages:
        yield 'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an input message role.'
        return
    said = [(n, role) for n, role in enumerate(roles) if role != "system" or messages[n].get("content")]
    for place, (n, role) in enumerate(said):
        before, after = said[place - 1][1] if place else "", said[place + 1][1] if place + 1 < len(said) else "assistant"
        if role != "system":
            continue
        if not before:
            yield f"messages.{n}: use the top-level 'system' parameter for the initial system prompt"
        elif before != "user" or after != "assistant":
            yield f"messages.{n}: a system message must follow a user message and precede an assistant message or end the array"


def _markers(body: Mapping[str, Any], rules: Rules) -> Iterator[str]:
    if not rules.cache_markers:
        return
    marked = sum(1 for unit in units({key: body[key] for key in body if key != "cache_control"}, rules) if unit.ttl_s)
    marked += "cache_control" in body
    if marked > rules.cache_markers:
        yield f"A maximum of {rules.cache_markers} blocks with cache_control may be provided. Found {marked}."
    lives = [unit.ttl_s for unit in units(body, rules) if unit.ttl_s]
    if lives != sorted(lives, reverse=True):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."


# --- Messages


def _anthropic(fields: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
    for n, message in enumerate(messages):
        yield from _anthropic_content(n, message, last=n == len(messages) - 1)
    runs = [(role, [part for message in run for part in _parts(message)]) for role, run in groupby(messages, key=_role_of)]
    yield from _anthropic_pairs([run for run in runs if run[0] != "system"])
    yield from _anthropic_thinking(fields, runs, rules)


def _anthropic_content(n: int, message: Fields, *, last: bool) -> Iterator[str]:
    parts = _parts(message)
    assistant = message.get("role") == "assistant"
    if not parts and not (last and assistant) and message.get("role") != "system":
        yield f"messages.{n}: all messages must have non-empty content except for the optional final assistant message"
    for m, part in enumerate(parts):
        if part.get("type") == "text" and not optional_string(part, "text").strip():
            yield f"messages.{n}.content.{m}: text content blocks must contain non-whitespace text"
        if part.get("type") in _THINKING and "cache_control" in part:
            yield f"messages.{n}.content.{m}: thinking blocks cannot have cache_control set"
    if assistant and parts and parts[-1].get("type") in _THINKING:
        yield f"messages.{n}: The final block in an assistant message cannot be `thinking`."


def _anthropic_pairs(runs: Sequence[tuple[str, list[Fields]]]) -> Iterator[str]:
    seen: set[str] = set()
    open_ids: list[str] = []
    for n, (role, parts) in enumerate(runs):
        results = [optional_string(part, "tool_use_id") for part in parts if part.get("type") == "tool_result"]
        first = [part.get("type") == "tool_result" for part in parts]
        missing = [call for call in open_ids if call not in results]
        if missing or (open_ids and role == "user" and first != sorted(first, reverse=True)):
            yield (
                f"messages.{n}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing or open_ids)}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
            )
        for m, call in enumerate(results):
            if call not in open_ids or call in results[:m]:
                yield (
                    f"messages.{n}.content.{m}: unexpected `tool_use_id` found in `tool_result` blocks: {call}. "
                    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
                )
        open_ids = [optional_string(part, "id") for part in parts if part.get("type") == "tool_use"]
        if role != "assistant" and open_ids:
            yield f"messages.{n}: `tool_use` blocks can only be in `assistant` messages"
        if len({*open_ids} - seen) < len(open_ids):
            yield f"messages.{n}: `tool_use` ids must be unique"
        seen.update(open_ids)
    if open_ids:
        yield f"messages: `tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(open_ids)}."


def _anthropic_thinking(fields: Fields, runs: Sequence[tuple[str, list[Fields]]], rules: Rules) -> Iterator[str]:
    texts = [unit.text for unit in units({key: fields[key] for key in fields if key != "cache_control"}, rules)]
    at = len(texts) - sum(len(parts) for _, parts in runs)
    for n, (_, parts) in enumerate(runs):
        for m, part in enumerate(parts):
            signature = optional_string(part, "signature") or optional_string(part, "data")
            if part.get("type") not in _THINKING or not is_ours(signature):
                at += 1
                continue
            if part.get("type") == "thinking" and not seals_text(signature, optional_string(part, "thinking")):
                yield f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block"
            elif rules.thinking == "prefix_bound" and not seals_prefix(signature, texts[:at]):
                yield f"messages.{n}.content.{m}: Invalid `signature` in `thinking` block. The block is bound to a different conversation."
            at += 1
    enabled = fields.get("thinking")
    must = isinstance(enabled, dict) and enabled.get("type") == "enabled"
    for n in _kept_whole(runs, rules):
        yield from _anthropic_missing(n, runs[n][1], must=must and n == len(runs) - 2)


def _kept_whole(runs: Sequence[tuple[str, list[Fields]]], rules: Rules) -> list[int]:
    """The runs of the assistant whose thinking must stay, by the rule."""
    assistants = [n for n, (role, _) in enumerate(runs) if role == "assistant"]
    if rules.thinking == "last_message":
        return assistants[-1:]
    spoken = [parts for role, parts in runs if role != "system"]
    is_open = bool(spoken) and any(part.get("type") == "tool_result" for part in spoken[-1])
    if rules.thinking != "open_loop" or not is_open:
        return []
    human = [
        n for n, (role, parts) in enumerate(runs) if role == "user" and not any(p.get("type") == "tool_result" for p in parts)
    ]
    return [n for n in assistants if n > max(human, default=-1)]


def _anthropic_missing(n: int, parts: Sequence[Fields], *, must: bool) -> Iterator[str]:
    signatures = [
        optional_string(part, "signature") or optional_string(part, "data") for part in parts if part.get("type") in _THINKING
    ]
    calls = [optional_string(part, "id") for part in parts if part.get("type") == "tool_use"]
    cut = [call for call in calls if needs_thinking(call) and not any(led_to(signature, call) for signature in signatures)]
    if cut or (must and calls and parts[0].get("type") not in _THINKING):
        yield (
            f"messages.{n}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{optional_string(parts[0], 'type')}`. "
            "When `thinking` is enabled, a final `assistant` message must start with a thinking block "
            "(preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
        )


# --- Chat Completions


def _chat(_: Fields, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
    open_ids: list[str] = []
    for n, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        if role == "tool":
            call = optional_string(message, "tool_call_id")
            if call in open_ids:
                open_ids.remove(call)
            else:
                yield f"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' ({call})."
        elif open_ids:
            yield _unanswered(open_ids)
            open_ids = []
        calls = message.get("tool_calls")
        if calls == []:
            yield f"Invalid 'messages[{n}].tool_calls': empty array. Expected an array with minimum length 1, but got an empty array."
        said = calls or message.get("function_call") or message.get("refusal") or message.get("audio")
        if content == [] or (content is None and not (role == "assistant" and said)):
            yield f"Invalid value for 'content': expected a string, got null (messages[{n}])."
        if role == "assistant":
            open_ids = [optional_string(call, "id") for call in _objects(calls)]
            if calls and rules.call_reasoning and not isinstance(message.get("reasoning_content"), str):
                yield "The reasoning_content in the thinking mode must be passed back to the API."
    if open_ids:
        yield _unanswered(open_ids)


def _unanswered(ids: Sequence[str]) -> str:
    return (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(ids)}"
    )


# --- Responses


def _responses(_: Fields, items: Sequence[Fields], rules: Rules) -> Iterator[str]:
    calls: list[str] = []
    answered: set[str] = set()
    for n, item in enumerate(items):
        kind, call = optional_string(item, "type"), optional_string(item, "call_id")
        if kind in ("function_call", "custom_tool_call"):
            calls.append(call)
        elif kind in ("function_call_output", "custom_tool_call_output"):
            if call not in calls or call in answered:
                yield f"No tool call found for function call output with call_id {call}."
            answered.add(call)
        elif "role" in item and item.get("content") in (None, []):
            yield f"Missing required parameter: 'input[{n}].content'."
    yield from (f"No tool output found for function call {call}." for call in calls if call not in answered)
    if rules.reasoning_unit:
        yield from _reasoning_units(items)


def _reasoning_units(items: Sequence[Fields]) -> Iterator[str]:
    seen: set[str] = set()
    for n, item in enumerate(items):
        kind, item_id = optional_string(item, "type"), optional_string(item, "id")
        needed = reasoning_of(item_id)
        if needed and needed not in seen:
            yield f"Item '{item_id}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."
        if item_id and item_id in seen:
            yield f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
        seen.add(item_id)
        if kind != "reasoning":
            continue
        follower = items[n + 1] if n + 1 < len(items) else {}
        if not _is_model_made(follower) or reasoning_of(optional_string(follower, "id")) not in ("", item_id):
            yield f"Item '{item_id}' of type 'reasoning' was provided without its required following item."
        sealed = optional_string(item, "encrypted_content")
        text = "".join(optional_string(part, "text") for part in _objects(item.get("summary")))
        if is_ours(sealed) and not seals_text(sealed, text):
            yield f"The encrypted content for item {item_id} could not be verified."


def _is_model_made(item: Fields) -> bool:
    kind = optional_string(item, "type") or "message"
    return bool(item) and not kind.endswith("_output") and (kind != "message" or item.get("role") == "assistant")


def _parts(message: Fields) -> list[Fields]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return _objects(content)


def _objects(value: Json) -> list[Fields]:
    return [part for part in value if isinstance(part, dict)] if isinstance(value, list) else []


def _role_of(message: Fields) -> str:
    return optional_string(message, "role")
