"""The official SDKs as an agent uses them: send the whole history, take the reply as it comes, append it, answer its calls."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import anthropic
import openai
from google import genai

from tenure.apis import APIS
from tenure.apis.gemini import Gemini, whole
from tenure.engine.record.entry import ToolCall

History = list[Any]
Step = Callable[[History], tuple[History, list[tuple[str, str]]]]  # history -> history with the reply, and its calls (id, name)

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL: Any = {"type": "function", "name": "read", "description": "Reads.", "parameters": SCHEMA, "strict": False}


@contextmanager
def anthropic_step(url: str, *, stream: bool, mark: bool = False) -> Iterator[Step]:
    with anthropic.Anthropic(base_url=url, api_key="-", max_retries=0) as client:

        def step(history: History) -> tuple[History, list[tuple[str, str]]]:
            sent: History = [*history[:-1], marked(history[-1])] if mark else history
            fields: dict[str, Any] = {
                "model": "claude-opus-5",
                "max_tokens": 9,
                "system": "be brief",
                "messages": sent,
                "tools": [{"name": "read", "description": "Reads.", "input_schema": SCHEMA}],
            }
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
            tool = {"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": SCHEMA}}
            fields: dict[str, Any] = {"model": "gpt-5", "messages": history, "tools": [tool]}
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
            fields: dict[str, Any] = {"model": "gpt-5", "input": history, "store": False, "tools": [TOOL]}
            if stream:
                with client.responses.stream(**fields) as events:
                    response: Any = events.get_final_response()
            else:
                response = client.responses.create(**fields)
            calls = [(item.call_id, item.name) for item in response.output if item.type == "function_call"]
            return [*history, *response.output], calls

        yield step


@contextmanager
def gemini_step(url: str, *, stream: bool) -> Iterator[Step]:
    client = genai.Client(api_key="-", http_options=genai.types.HttpOptions(base_url=url))
    declared = [{"function_declarations": [{"name": "read", "description": "Reads.", "parameters_json_schema": SCHEMA}]}]

    def step(history: History) -> tuple[History, list[tuple[str, str]]]:
        fields: dict[str, Any] = {
            "model": "gemini-3-pro",
            "contents": history,
            "config": {"tools": declared, "system_instruction": "be brief"},
        }
        if stream:
            reply = Gemini().parse_reply(whole(client.models.generate_content_stream(**fields)))
        else:
            reply = Gemini().parse_reply(
                client.models.generate_content(**fields).model_dump_json(by_alias=True, exclude_none=True).encode()
            )
        calls = [(block.call_id, block.name) for block in reply.blocks if isinstance(block, ToolCall)]
        return [*history, json.loads(reply.payload)], calls

    yield step


STEPS: dict[str, Callable[..., AbstractContextManager[Step]]] = {
    "anthropic": anthropic_step,
    "openai-chat": chat_step,
    "openai-responses": responses_step,
    "gemini": gemini_step,
}


def user(text: str, dialect: str = "") -> Any:
    return APIS[dialect].user(text) if dialect else {"role": "user", "content": text}


def results(dialect: str, calls: list[tuple[str, str]], text: str = "") -> History:
    """The messages that answer calls."""
    api = APIS[dialect]
    made = [ToolCall(call_id=call, name=name, arguments="{}") for call, name in calls]
    return api.results([api.result(call, f"body of {call.call_id}\n{text}") for call in made])
