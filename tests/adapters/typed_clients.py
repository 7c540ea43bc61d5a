"""What type checkers see of wrapped clients: what they saw before. Checked by `make lint`, and run by nobody."""

from typing import Any, assert_type

from anthropic import Anthropic, AsyncAnthropic, AsyncStream
from anthropic.types import Message, MessageTokensCount, RawMessageStreamEvent
from google import genai
from google.genai.types import GenerateContentResponse
from openai import AsyncOpenAI, OpenAI, Stream
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response

import tenure
from tenure import Context
from tenure.context.run import RunOutcome


def blocking() -> None:
    """Clients that block."""
    claude, gpt, gemini = tenure.wrap(Anthropic()), tenure.wrap(OpenAI()), tenure.wrap(genai.Client())
    assert_type(claude, Anthropic)
    assert_type(claude.messages.create(model="m", max_tokens=1, messages=[]), Message)
    assert_type(claude.messages.count_tokens(model="m", messages=[]), MessageTokensCount)
    with claude.messages.stream(model="m", max_tokens=1, messages=[]) as stream:
        assert_type(stream.get_final_text(), str)
    assert_type(gpt.chat.completions.create(model="m", messages=[]), ChatCompletion)
    assert_type(gpt.chat.completions.create(model="m", messages=[], stream=True), Stream[ChatCompletionChunk])
    assert_type(gpt.responses.create(model="m", input="x"), Response)
    assert_type(gemini.models.generate_content(model="m", contents="x"), GenerateContentResponse)  # pyright: ignore[reportUnknownMemberType]
    assert_type(Context().run(claude, "Look.", tools={}), RunOutcome)


async def awaited() -> None:
    """Clients that are awaited."""
    claude, gpt, context = tenure.wrap(AsyncAnthropic()), tenure.wrap(AsyncOpenAI()), Context()
    assert_type(claude, AsyncAnthropic)
    assert_type(await claude.messages.create(model="m", max_tokens=1, messages=[]), Message)
    asked = claude.messages.create(model="m", max_tokens=1, messages=[], stream=True)
    assert_type(await asked, AsyncStream[RawMessageStreamEvent])
    assert_type(await gpt.chat.completions.create(model="m", messages=[]), ChatCompletion)
    assert_type((await gpt.responses.create(model="m", input="x")).output_text, str)
    assert_type(await context.aextend([]), None)
    assert_type(await context.arequest(model="m"), dict[str, Any])
