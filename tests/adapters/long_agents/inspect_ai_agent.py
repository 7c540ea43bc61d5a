"""An evaluation of Inspect whose samples begin anew where they were cut off."""

import asyncio

from inspect_ai import Task, eval_async, eval_retry, task
from inspect_ai import eval as evaluate
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.log import list_eval_logs
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.tool import Tool, tool

from reading import FILES, FOLDER, HOW, STORE, WORDS, keep, question, read_file, run_command
from tenure import Budget
from tenure.adapters.inspect_ai import tenure_model


@tool
def read() -> Tool:
    async def execute(path: str) -> str:
        """Reads a file.

        Args:
            path: Which one.

        """
        return read_file(path)

    return execute


@tool
def run() -> Tool:
    async def execute(command: str) -> str:
        """Runs a command.

        Args:
            command: Which one.

        """
        return run_command(command)

    return execute


LOGS = str(FOLDER / "logs")
SETTINGS = GenerateConfig(max_tokens=4096, reasoning_tokens=1024)


@task
def reading() -> Task:
    claude = get_model("anthropic/claude-opus-4-5", config=SETTINGS, streaming=HOW == "streamed")
    model = tenure_model(claude, store=STORE, budget=Budget(ceiling=30_000))
    samples = [Sample(id=name, input=question(name)) for name in FILES]
    return Task(dataset=samples, solver=react(prompt=WORDS, tools=[read(), run()], model=model, submit=False))


def main() -> None:
    match HOW:
        case "called":
            logs = evaluate(reading(), log_dir=LOGS, display="none")
        case "awaited":
            logs = asyncio.run(eval_async(reading(), log_dir=LOGS))
        case _:
            logs = eval_retry(list_eval_logs(LOGS)[0], log_dir=LOGS, display="none")
    assert logs[0].status == "success", logs[0].error
    for sample in logs[0].samples or ():
        keep(str(sample.id), sample.messages)


if __name__ == "__main__":  # a retry imports this file again, for its task
    main()
