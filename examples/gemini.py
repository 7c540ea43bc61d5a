"""A conversation with Gemini through Google's SDK, kept to a budget by Tenure: `GEMINI_API_KEY=… python examples/gemini.py`."""

from pathlib import Path

from google import genai
from google.genai import types

from tenure import Budget, Context

MODEL = "gemini-3-flash"
PATH = types.Schema(type=types.Type.OBJECT, properties={"path": types.Schema(type=types.Type.STRING)}, required=["path"])
TOOLS = [types.Tool(function_declarations=[types.FunctionDeclaration(name="read", description="Reads a file.", parameters=PATH)])]


def read(path: str) -> str:
    """What a file holds, or why it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return str(error)


def main() -> None:
    """Ask once, and answer calls until the model has no more."""
    client = genai.Client()
    context = Context(dialect="gemini", model=MODEL, provider="google", budget=Budget(ceiling=80_000), store="sqlite:///agent.db")
    context.extend([types.UserContent("Which tests does pyproject.toml leave out by default?")])
    while True:
        reply = client.models.generate_content(**context.request(model=MODEL, tools=TOOLS, config={"max_output_tokens": 4096}))
        context.append(reply)  # stores the content, signatures included; learns from its usage
        if not reply.function_calls:
            break
        answers = [context.call(call) or result(call) for call in reply.function_calls]  # `recall` is answered by the context
        context.extend([{"role": "user", "parts": answers}])
    print(reply.text)
    print(context.decision)


def result(call: types.FunctionCall) -> dict[str, object]:
    """The response to a call of `read`; the id is there from Gemini 3 on."""
    named = {"id": call.id} if call.id else {}
    return {"functionResponse": {**named, "name": call.name, "response": {"output": read(**(call.args or {}))}}}


if __name__ == "__main__":
    main()
