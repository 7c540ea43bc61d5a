"""Calls of LiteLLM whose conversations are kept to a budget: `ANTHROPIC_API_KEY=… python examples/frameworks/litellm_calls.py`."""

import asyncio
import json
from pathlib import Path
from typing import Any

import litellm

from tenure import Budget
from tenure.adapters.litellm import TenureCallback

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [{"type": "function", "function": {"name": "read", "description": "Reads a text file.", "parameters": PATH}}]


async def main() -> None:
    """Ask, and answer calls until the model has no more; the history is whole, what is sent is managed."""
    litellm.callbacks = [TenureCallback(store="sqlite:///agent.db", budget=Budget(ceiling=80_000))]
    history: list[Any] = [{"role": "user", "content": "What does pyproject.toml leave out of the tests?"}]
    while True:
        reply: Any = await litellm.acompletion(model="anthropic/claude-opus-4-5", messages=history, tools=TOOLS)
        message = reply.choices[0].message
        history.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            path = json.loads(call.function.arguments)["path"]
            history.append({"role": "tool", "tool_call_id": call.id, "content": Path(path).read_text(encoding="utf-8")})
    print(message.content)


if __name__ == "__main__":
    asyncio.run(main())
