"""One peer's eviction pass, timed; run by the peers' own interpreter, which knows nothing of this project.

`measure.py RULE TARGET` reads drafts as JSON on stdin and prints JSON: the median seconds of one pass over the untouched transcript,
and the tokens (characters / 4) that it leaves.
"""

import asyncio
import json
import statistics
import sys
import time
from types import SimpleNamespace

RUNS = 3
ENOUGH_S = 10  # a rule that has taken this long is not run again
CALL, RESULT = "tool_call", "tool_result"


def langchain_clear(drafts, target):
    """`ContextEditingMiddleware` over its own `ClearToolUsesEdit`."""
    from langchain.agents.middleware import ClearToolUsesEdit

    return _langchain_editing(drafts, ClearToolUsesEdit(trigger=target))


def langchain_clear_at_least(drafts, target):
    """The same, told how much to clear: it counts everything again after each result."""
    from langchain.agents.middleware import ClearToolUsesEdit

    size = sum(len(block.get("text") or block.get("arguments", "")) for draft in drafts for block in draft["blocks"]) // 4
    return _langchain_editing(drafts, ClearToolUsesEdit(trigger=target, clear_at_least=size - target))


def langchain_trim(drafts, target):
    """`trim_messages` to the newest that fit."""
    from langchain_core.messages import trim_messages
    from langchain_core.messages.utils import count_tokens_approximately

    messages = _langchain_messages(drafts)

    def run():
        return trim_messages(messages, max_tokens=target, token_counter=count_tokens_approximately, start_on="human")

    return run, _langchain_texts


def haystack_prune(drafts, target):
    """`ToolResultPruningCompactor`, told to prune small results too; its default skips those under 200 tokens."""
    from haystack.hooks.compaction import ToolResultPruningCompactor
    from haystack.token_counters import ApproximateTokenCounter

    messages = _haystack_messages(drafts)
    compactor, counter = ToolResultPruningCompactor(min_tokens=1), ApproximateTokenCounter()

    def run():
        return compactor.compact(messages, target, counter) or messages

    return run, _haystack_texts


def harness_tiers(drafts, target):
    """`TieredCompaction`: clear tool results, then slide the window."""
    from pydantic_ai import RunContext, RunUsage
    from pydantic_ai.models.test import TestModel
    from pydantic_ai_harness.compaction import ClearToolResults, SlidingWindowCompaction, TieredCompaction

    messages = _pydantic_messages(drafts)
    keep = target * 9 // 10  # the window keeps at least this much, in whole messages
    tiers = [ClearToolResults(max_tokens=1), SlidingWindowCompaction(max_messages=1, keep_tokens=keep)]
    compaction = TieredCompaction(tiers=tiers, target_tokens=target)

    def run():
        context = RunContext(deps=None, model=TestModel(), usage=RunUsage(), messages=messages)
        return asyncio.run(compaction.compact(messages, context))

    return run, _pydantic_texts


def strands_window(drafts, target):  # noqa: ARG001 - it counts messages
    """`SlidingWindowConversationManager`, which counts messages: a tenth of them stays."""
    from strands.agent.conversation_manager import SlidingWindowConversationManager

    messages = _strands_messages(drafts)

    def run():
        agent = SimpleNamespace(messages=list(messages))
        SlidingWindowConversationManager(window_size=len(messages) // 10).apply_management(agent)
        return agent.messages

    return run, _strands_texts


def _langchain_editing(drafts, edit):
    from langchain.agents.middleware import ContextEditingMiddleware
    from langchain.agents.middleware.types import ModelRequest

    request = ModelRequest(model=None, messages=_langchain_messages(drafts))
    middleware = ContextEditingMiddleware(edits=[edit])

    def run():
        return middleware.wrap_model_call(request, lambda edited: edited.messages)

    return run, _langchain_texts


def _langchain_messages(drafts):
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    messages = []
    for draft in drafts:
        blocks = draft["blocks"]
        if draft["role"] == "user":
            messages.append(HumanMessage(content=_text(blocks)))
        elif draft["role"] == "assistant":
            calls = [{"id": b["call_id"], "name": b["name"], "args": json.loads(b["arguments"])} for b in _of(CALL, blocks)]
            messages.append(AIMessage(content=_text(blocks), tool_calls=calls))
        else:
            messages.extend(ToolMessage(content=b["text"], tool_call_id=b["call_id"]) for b in _of(RESULT, blocks))
    return messages


def _langchain_texts(messages):
    for message in messages:
        yield message.content
        for call in getattr(message, "tool_calls", ()):
            yield json.dumps(call["args"])


def _haystack_messages(drafts):
    from haystack.dataclasses import ChatMessage, ToolCall

    messages, calls = [], {}
    for draft in drafts:
        blocks = draft["blocks"]
        if draft["role"] == "user":
            messages.append(ChatMessage.from_user(_text(blocks)))
        elif draft["role"] == "assistant":
            made = [ToolCall(b["name"], json.loads(b["arguments"]), id=b["call_id"]) for b in _of(CALL, blocks)]
            calls.update((call.id, call) for call in made)
            messages.append(ChatMessage.from_assistant(_text(blocks) or None, tool_calls=made))
        else:
            messages.extend(ChatMessage.from_tool(b["text"], origin=calls[b["call_id"]]) for b in _of(RESULT, blocks))
    return messages


def _haystack_texts(messages):
    for message in messages:
        yield from message.texts
        yield from (json.dumps(call.arguments) for call in message.tool_calls)
        yield from (result.result for result in message.tool_call_results)


def _pydantic_messages(drafts):
    from pydantic_ai import messages as m

    messages, names = [], {}
    for draft in drafts:
        blocks = draft["blocks"]
        if draft["role"] == "user":
            messages.append(m.ModelRequest(parts=[m.UserPromptPart(_text(blocks))]))
        elif draft["role"] == "assistant":
            names.update((b["call_id"], b["name"]) for b in _of(CALL, blocks))
            said = [m.TextPart(_text(blocks))] if _text(blocks) else []
            calls = [m.ToolCallPart(b["name"], b["arguments"], b["call_id"]) for b in _of(CALL, blocks)]
            messages.append(m.ModelResponse(parts=said + calls))
        else:
            parts = [m.ToolReturnPart(names[b["call_id"]], b["text"], b["call_id"]) for b in _of(RESULT, blocks)]
            messages.append(m.ModelRequest(parts=parts))
    return messages


def _pydantic_texts(messages):
    for message in messages:
        for part in message.parts:
            yield str(part.args if part.part_kind == "tool-call" else part.content)


def _strands_messages(drafts):
    return [
        {
            "role": "assistant" if draft["role"] == "assistant" else "user",
            "content": [_strands_block(block) for block in draft["blocks"]],
        }
        for draft in drafts
    ]


def _strands_block(block):
    if block["kind"] == CALL:
        return {"toolUse": {"toolUseId": block["call_id"], "name": block["name"], "input": json.loads(block["arguments"])}}
    if block["kind"] == RESULT:
        return {"toolResult": {"toolUseId": block["call_id"], "status": "success", "content": [{"text": block["text"]}]}}
    return {"text": block["text"]}


def _strands_texts(messages):
    for block in (block for message in messages for block in message["content"]):
        if "toolUse" in block:
            yield json.dumps(block["toolUse"]["input"])
        elif "toolResult" in block:
            yield from (part["text"] for part in block["toolResult"]["content"])
        else:
            yield block["text"]


def _text(blocks):
    """Words and reasoning of a message; all peers get reasoning as text, so that all carry the same characters."""
    return "\n".join(block["text"] for block in blocks if block["kind"] in ("text", "thinking"))


def _of(kind, blocks):
    return [block for block in blocks if block["kind"] == kind]


def main(rule, target):
    """Time a few passes. The messages are made outside the clock, and no pass changes what the next one sees."""
    drafts = json.load(sys.stdin)
    run, texts = globals()[rule](drafts, target)
    seconds = []
    while len(seconds) < RUNS and sum(seconds) < ENOUGH_S:
        start = time.perf_counter()
        left = run()
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"seconds": statistics.median(seconds), "tokens": sum(map(len, texts(left))) // 4}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
