"""The official SDKs as an agent uses them: send the whole history, take the reply as it comes, append it, answer its calls."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import anthropic
import openai

History = list[Any]
Step = Callable[[History], tuple[History, list[tuple[str, str]]]]  # history -> history with the reply, and its calls (id, name)

TOOLS = ("read",)


@contextmanager
def anthropic_step(url: str, *, stream: bool, mark: bool = False) -> Iterator[Step]:
    with anthropic.Anthropic(base_url=url, api_key="-", max_retries=0) as client:

        def step(history: History) -> tuple[History, list[tuple[str, str]]]:
            sent: History = [*history[:-1], marked(history[-1])] if mark else history
            fields: dict[str, Any] = {"model": "claude-opus-5", "max_tokens": 9, "system": "be brief", "messages": sent}
            if stream:
                with client.messages.stream(**fields) as events:
                    message: Any = events.get_final_message()
            else:
                message = client.messages.create(**fields)
            calls = [(part.id, part.name) for part in message.content if part.type == "tool_use"]
            return [*history, {"role": "assistant", "content": message.content}], calls

        yield step


def marked(message: Any) -> Any:
    """The message with a cache marker on its last part, as clients set it for one call only."""
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return message | {"content": [*parts[:-1], parts[-1] | {"cache_control": {"type": "ephemeral"}}]}


@contextmanager
def chat_step(url: str, *, stream: bool) -> Iterator[Step]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client:

        def step(history: History) -> tuple[History, list[tuple[str, str]]]:
            fields: dict[str, Any] = {"model": "gpt-5", "messages": history}
            if stream:
                with client.chat.completions.stream(**fields) as events:
                    completion: Any = events.get_final_completion()
            else:
                completion = client.chat.completions.create(**fields)
            message = completion.choices[0].message
            return [*history, message], [(call.id, call.function.name) for call in message.tool_calls or []]

        yield step


@contextmanager
def responses_step(url: str, *, stream: bool) -> Iterator[Step]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="-", max_retries=0) as client:

        def step(history: History) -> tuple[History, list[tuple[str, str]]]:
            fields: dict[str, Any] = {"model": "gpt-5", "input": history, "store": False}
            if stream:
                with client.responses.stream(**fields) as events:
                    response: Any = events.get_final_response()
            else:
                response = client.responses.create(**fields)
            calls = [(item.call_id, item.name) for item in response.output if item.type == "function_call"]
            return [*history, *response.output], calls

        yield step


STEPS: dict[str, Callable[..., AbstractContextManager[Step]]] = {
    "anthropic": anthropic_step,
    "openai-chat": chat_step,
    "openai-responses": responses_step,
}


def user(text: str) -> Any:
    return {"role": "user", "content": text}


def results(dialect: str, calls: list[tuple[str, str]]) -> History:
    """The messages that answer calls."""
    match dialect:
        case "anthropic":
            return [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": call, "content": f"body of {call}"} for call, _ in calls],
                }
            ]
        case "openai-responses":
            return [{"type": "function_call_output", "call_id": call, "output": f"body of {call}"} for call, _ in calls]
        case _:
            return [{"role": "tool", "tool_call_id": call, "content": f"body of {call}"} for call, _ in calls]


def without_reasoning(history: History) -> History:
    """The history as a client sends it that keeps no reasoning."""
    plain = [message if isinstance(message, dict) else message.model_dump(mode="json", exclude_none=True) for message in history]
    for message in plain:
        message.pop("reasoning_content", None)
        if message.get("role") == "assistant" and not isinstance(message.get("content"), str | None):
            parts = [
                part if isinstance(part, dict) else part.model_dump(mode="json", exclude_none=True) for part in message["content"]
            ]
            message["content"] = [part for part in parts if part["type"] != "thinking"]
    return [message for message in plain if message.get("type") != "reasoning"]
