"""One message of pi's sessions, of whatever role, as pi shows it to the model."""

from hashlib import sha256
from typing import Final

from msgspec import Raw, Struct

from tenure.engine.record.entry import Block, Draft, Media, Opaque, Origin, Role, Text, Thinking, ToolCall, ToolResult, Usage
from tenure.logs.media import from_base64

# What pi puts around a summary when it builds the model's context.
COMPACTED: Final = (
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n{}\n</summary>"
)
BRANCHED: Final = "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n{}\n</summary>"

ORIGINS: Final = {"user": Origin.HUMAN, "assistant": Origin.MODEL}  # all other roles are the harness's


class Part(Struct, frozen=True, gc=False):
    """A part of a content; which fields are set depends on `type`."""

    type: str = ""
    text: str | None = ""
    thinking: str | None = ""
    thinkingSignature: str | None = None  # noqa: N815 - the log's own names, here and below
    id: str = ""
    name: str = ""
    arguments: Raw = Raw(b"{}")
    data: str = ""
    mimeType: str = ""  # noqa: N815


class _Usage(Struct, frozen=True, gc=False):
    input: int = 0
    output: int = 0
    cacheRead: int = 0  # noqa: N815
    cacheWrite: int = 0  # noqa: N815


class Message(Struct, frozen=True, gc=False):
    """A message; which fields are set depends on `role`."""

    role: str = ""
    content: str | list[Part] | None = None
    model: str | None = None
    usage: _Usage | None = None
    toolCallId: str = ""  # noqa: N815
    isError: bool | None = False  # noqa: N815
    command: str = ""
    output: str | None = ""
    exitCode: int | None = None  # noqa: N815
    cancelled: bool | None = False
    truncated: bool | None = False
    fullOutputPath: str | None = None  # noqa: N815
    excludeFromContext: bool | None = False  # noqa: N815
    summary: str = ""


def of_harness(text: str, at: str, number: int) -> Draft:
    """A draft of words that pi itself put before the model."""
    return Draft(role=Role.USER, blocks=(Text(text=text, origin=Origin.HARNESS),), at=at, line=number)


def spoken(message: Message, at: str, number: int) -> Draft | None:
    """The draft of a message; None when the model saw nothing of it."""
    match message.role:
        case "bashExecution":
            if message.excludeFromContext:
                return None
            return Draft(role=Role.USER, blocks=(Text(text=_ran(message), origin=Origin.HUMAN),), at=at, line=number)
        case "compactionSummary" | "branchSummary":
            return of_harness(
                (COMPACTED if message.role == "compactionSummary" else BRANCHED).format(message.summary), at, number
            )
        case "toolResult":
            return Draft(role=Role.TOOL, blocks=(_result(message),), at=at, line=number)
        case role:
            blocks = blocks_of(message.content, ORIGINS.get(role, Origin.HARNESS))
            if not blocks:
                return None
            speaker = Role.ASSISTANT if role == "assistant" else Role.USER
            return Draft(role=speaker, blocks=blocks, at=at, line=number, model=message.model or "", usage=_usage(message.usage))


def _ran(message: Message) -> str:
    """A command the human ran at the prompt, in the words in which pi shows it to the model."""
    text = f"Ran `{message.command}`\n" + (f"```\n{message.output}\n```" if message.output else "(no output)")
    if message.cancelled:
        text += "\n\n(command cancelled)"
    elif message.exitCode:
        text += f"\n\nCommand exited with code {message.exitCode}"
    if message.truncated and message.fullOutputPath:
        text += f"\n\n[Output truncated. Full output: {message.fullOutputPath}]"
    return text


def _result(message: Message) -> ToolResult:
    parts = [Part(type="text", text=message.content)] if isinstance(message.content, str) else message.content or []
    text = "\n".join(part.text or "" for part in parts if part.type == "text")
    media = tuple(_image(part, Origin.TOOL) for part in parts if part.type == "image")
    return ToolResult(call_id=message.toolCallId, text=text, error=bool(message.isError), media=media)


def blocks_of(content: str | list[Part] | None, origin: Origin) -> tuple[Block, ...]:
    """The blocks of a content, its texts by `origin`."""
    if isinstance(content, str):
        return (Text(text=content, origin=origin),) if content else ()
    return tuple(_block(part, origin) for part in content or ())


def _block(part: Part, origin: Origin) -> Block:
    match part.type:
        case "text":
            return Text(text=part.text or "", origin=origin)
        case "thinking":
            signature = part.thinkingSignature or ""
            return Thinking(text=part.thinking or "", seal=sha256(signature.encode()).hexdigest() if signature else "")
        case "toolCall":
            return ToolCall(call_id=part.id, name=part.name, arguments=bytes(part.arguments).decode("utf-8", "replace"))
        case "image":
            return _image(part, origin)
        case _:
            return Opaque(type=part.type, text=part.text or "")


def _image(part: Part, origin: Origin) -> Media:
    return from_base64(part.data, part.mimeType, origin)


def _usage(usage: _Usage | None) -> Usage | None:
    if usage is None:
        return None
    return Usage(uncached=usage.input, cache_write=usage.cacheWrite, cache_read=usage.cacheRead, output=usage.output)
