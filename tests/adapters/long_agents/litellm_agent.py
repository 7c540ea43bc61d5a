"""Calls of LiteLLM by a loop of its caller's own, which writes the history down at each step."""

import asyncio
import json
from typing import Any

import litellm

from reading import FOLDER, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.litellm import TenureCallback

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
        },
    }
    for name, description, key in (("read", "Reads a file.", "path"), ("run", "Runs a command.", "command"))
]
tenure = TenureCallback(store=STORE, budget=Budget(ceiling=30_000))
litellm.callbacks = [tenure]


async def ask(history: list[Any]) -> Any:
    given: Any = {
        "model": "anthropic/claude-opus-4-5",
        "messages": [{"role": "system", "content": WORDS}, *history],
        "tools": TOOLS,
        "max_tokens": 4096,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }
    match HOW:
        case "called":
            return await asyncio.to_thread(tenure.completion, **given)
        case "awaited":
            return await litellm.acompletion(**given)
        case _:
            chunks = [chunk async for chunk in await tenure.acompletion(**given, stream=True)]
            return litellm.stream_chunk_builder(chunks)


async def converse(name: str) -> Any:
    file = FOLDER / f"{name}.json"
    history: list[Any] = json.loads(file.read_text()) if file.exists() else [{"role": "user", "content": question(name)}]
    while history[-1]["role"] == "user" or history[-1].get("tool_calls"):
        for call in history[-1].get("tool_calls") or ():
            function = call["function"]
            given = json.loads(function["arguments"])
            text = read_file(given["path"]) if function["name"] == "read" else run_command(given["command"])
            history.append({"role": "tool", "tool_call_id": call["id"], "content": text})
        message = (await ask(history)).choices[0].message
        history.append(message.model_dump(exclude_none=True))
        new = file.with_suffix(".new")
        new.write_text(json.dumps(history))
        new.replace(file)
    return history


together(converse)
