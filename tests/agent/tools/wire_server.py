"""An MCP server that speaks the wire format itself, line by line, and misbehaves on demand. Started by the tests as a program of its own."""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {
        "name": "echo",
        "description": "Says it again \x1b[31m",
        "inputSchema": {"$schema": "x", "type": "object", "properties": {"text": {"type": "string"}}},
    },
    {"name": "die", "inputSchema": {"type": "object"}},
    {"name": "hang", "inputSchema": {"type": "object"}},
    {"name": "mixed", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "structured", "inputSchema": {"type": "object", "x-tenure-kind": "bulk"}},
    {"name": "junk", "inputSchema": {"type": "object"}},
    {"name": "far too long a name for any provider " * 4, "inputSchema": {"type": "object", "description": "d" * 50_000}},
    {"name": "env", "inputSchema": {"type": "object"}},
]
TOOLS += [
    {"name": f"z{n:03}", "inputSchema": {"type": "object", "description": "d" * 900}}
    for n in range(int(os.environ.get("MANY", "0")))
]
if "WORDY" in os.environ:
    TOOLS.append({"name": "wordy", "description": "w" * 2_500, "inputSchema": {"type": "object"}})
if "ODD" in os.environ:
    TOOLS.append({"name": "odd", "inputSchema": {"type": "object", "properties": {"filter[id]": {"type": "string"}}}})
if "BAD" in os.environ:
    TOOLS += [
        {"name": "no schema"},
        {"name": "schema of words", "inputSchema": "text"},
        {"inputSchema": {"type": "object"}},
        {"name": "good", "inputSchema": {"type": "object"}},
    ]
MIXED = [
    {"type": "text", "text": "\x1b[31mred\x1b[0m"},
    {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"},
    {"type": "image", "data": "AAAA", "mimeType": "image/tiff"},
    {"type": "resource_link", "name": "doc", "uri": "file:///doc"},
    {"type": "resource", "resource": {"uri": "file:///note", "text": "noted"}},
]


def answered(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """What a call gives; None for no answer."""
    match name:
        case "echo":
            return {"content": [{"type": "text", "text": arguments.get("text", "")}]}
        case "mixed":
            return {"content": MIXED}
        case "odd":
            return {"content": [{"type": "text", "text": json.dumps(arguments)}]}
        case "fail":
            return {"content": [{"type": "text", "text": "it failed"}], "isError": True}
        case "structured":
            texts = arguments.get("texts", [])
            return {
                "content": [{"type": "text", "text": text} for text in texts],
                "structuredContent": arguments.get("data", {"n": 1}),
            }
        case "junk":
            return {"content": "no list"}
        case "env":
            return {"content": [{"type": "text", "text": "\n".join(sorted(os.environ))}]}
        case "die":
            os._exit(3)
        case _:
            return None


def main() -> None:
    """Serve until the input ends."""
    time.sleep(float(os.environ.get("SLOW_S", "0")))
    while "GATE" in os.environ and not Path(os.environ["GATE"]).exists():
        time.sleep(0.01)
    sys.stderr.write("a word for the log\n" + "x" * int(os.environ.get("LOUD", "0")))
    for line in sys.stdin:
        asked = json.loads(line)
        result: dict[str, Any] | None = None
        match asked.get("method"):
            case "initialize":
                version = asked["params"]["protocolVersion"]
                result = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "wire", "version": "1"},
                }
            case "tools/list":
                page = asked.get("params", {}).get("cursor")
                result = {"tools": TOOLS[4:]} if page else {"tools": TOOLS[:4], "nextCursor": "2"}
            case "tools/call":
                result = answered(asked["params"]["name"], asked["params"].get("arguments", {}))
                if result is None and "SAYS" not in os.environ:
                    continue
            case _ if "id" not in asked:
                continue
            case _:
                pass
        reply = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
        if "RUBBISH" in os.environ:
            sys.stdout.write('Loading...\n\x1b[31m{"jsonrpc": 7}\n[]\n{"jsonrpc": "2.0", "id": 99, "result": {}}\n')
        said = Path(
            os.environ.get("SAYS", "-"), asked["method"].replace("/", "-")
        )  # a message as it is to be said, its id left open
        whole = (
            said.read_text().replace("ID", json.dumps(asked["id"]))
            if said.exists()
            else json.dumps({"jsonrpc": "2.0", "id": asked["id"], **reply})
        )
        sys.stdout.write(whole + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
