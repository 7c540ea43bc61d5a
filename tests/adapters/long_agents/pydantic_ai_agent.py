"""An agent of Pydantic AI that goes on by the messages that its caller wrote down at each step."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelResponse
from pydantic_ai.models.anthropic import AnthropicModelSettings
from pydantic_ai.usage import UsageLimits

from reading import FOLDER, HOW, STORE, WORDS, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.pydantic_ai import TenureCapability


def read(path: str) -> str:
    """Reads a file."""
    return read_file(path)


def run(command: str) -> str:
    """Runs a command."""
    return run_command(command)


tenure: Any = TenureCapability(store=STORE, budget=Budget(ceiling=30_000))
settings = AnthropicModelSettings(max_tokens=4096, anthropic_thinking={"type": "enabled", "budget_tokens": 1024})
agent = Agent("anthropic:claude-opus-4-5", instructions=WORDS, tools=[read, run], capabilities=[tenure], model_settings=settings)
LIMITS = UsageLimits(request_limit=None)


async def converse(name: str) -> Any:
    file = FOLDER / f"{name}.json"
    held = ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else None
    if held and isinstance(held[-1], ModelResponse) and not held[-1].tool_calls:
        return held  # it was done before the process was killed
    async with agent.iter(None if held else question(name), message_history=held, usage_limits=LIMITS) as steps:
        async for node in steps:
            if HOW == "streamed" and Agent.is_model_request_node(node):
                async with node.stream(steps.ctx) as stream:
                    async for _ in stream:
                        pass
            new = file.with_suffix(".new")
            new.write_bytes(ModelMessagesTypeAdapter.dump_json(steps.all_messages()))
            new.replace(file)
    return steps.all_messages()


together(converse)
