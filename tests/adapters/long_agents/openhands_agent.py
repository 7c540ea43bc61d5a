"""Conversations of OpenHands' SDK that go on by their folder."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Self
from uuid import NAMESPACE_URL, uuid5

from openhands.sdk import LLM, Agent, Conversation, Tool, register_tool
from openhands.sdk.tool import Action, Observation, ToolDefinition, ToolExecutor

from reading import FOLDER, HOW, STORE, question, read_file, run_command, together
from tenure import Budget
from tenure.adapters.openhands import TenureCondenser


class ReadAction(Action):
    """Which file to read."""

    path: str


class RunAction(Action):
    """What to run."""

    command: str


class TextObservation(Observation):
    """What came of it."""


class TextExecutor(ToolExecutor[Any, TextObservation]):
    """Answers with a text."""

    def __init__(self, text: Callable[[Any], str]) -> None:
        self.text = text

    def __call__(self, action: Any, conversation: Any = None) -> TextObservation:
        return TextObservation.from_text(text=self.text(action))


class ReadTool(ToolDefinition[ReadAction, TextObservation]):
    """A tool named `read`."""

    @classmethod
    def create(cls, *args: Any, **params: Any) -> Sequence[Self]:
        executor = TextExecutor(lambda action: read_file(action.path))
        return [cls(description="Reads a file.", action_type=ReadAction, observation_type=TextObservation, executor=executor)]


class RunTool(ToolDefinition[RunAction, TextObservation]):
    """A tool named `run`."""

    @classmethod
    def create(cls, *args: Any, **params: Any) -> Sequence[Self]:
        executor = TextExecutor(lambda action: run_command(action.command))
        return [cls(description="Runs a command.", action_type=RunAction, observation_type=TextObservation, executor=executor)]


register_tool("read", ReadTool)
register_tool("run", RunTool)
tenure = TenureCondenser(
    store=STORE, budget=Budget(ceiling=17_000)
)  # with room for what a condenser does not see: tools, and how the provider counts


async def converse(name: str) -> Any:
    llm = LLM(model="openai/gpt-5.1", api_mode="chat", stream=HOW == "streamed")
    agent = Agent(llm=llm, tools=[Tool(name="read"), Tool(name="run"), Tool(name="tenure_recall")], condenser=tenure)
    pieces: list[Any] = []
    listened: Any = {"token_callbacks": [pieces.append]} if HOW == "streamed" else {}
    conversation: Any = Conversation(
        agent=agent,
        workspace=FOLDER,
        persistence_dir=str(FOLDER / "state"),
        conversation_id=uuid5(NAMESPACE_URL, name),
        max_iteration_per_run=10_000,
        visualizer=None,
        **listened,
    )
    if not any(event.source == "user" for event in conversation.state.events):
        conversation.send_message(question(name))
    if HOW == "awaited":
        await conversation.arun()
    else:
        await asyncio.to_thread(conversation.run)
    return [event.model_dump(mode="json") for event in conversation.state.events]


together(converse)
