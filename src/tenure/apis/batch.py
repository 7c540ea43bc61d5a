"""How the files of a provider's batches spell questions and answers: a value per API, and one reader for all of them.

OpenAI: https://platform.openai.com/docs/guides/batch (JSON lines of `custom_id`, `method`, `url`, `body`). Anthropic:
https://platform.claude.com/docs/en/build-with-claude/batch-processing (one object with `requests`). Gemini: https://ai.google.dev/gemini-api/docs/batch-mode.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from tenure.apis.json_text import Json, dump, load
from tenure.errors import InputError

STREAMED: Final = ("stream", "stream_options")  # of a body, and of no use in a batch


class Batch(Struct, frozen=True, kw_only=True):
    """How an API's batch files are spelled."""

    key: str  # of an id
    body: str  # of a request
    beside: Mapping[str, str] = {}  # each request's other fields
    under: str = ""  # the field of one object that lists all requests; empty: a line for each
    without: tuple[str, ...] = STREAMED  # fields of a body that do not belong there
    reply: tuple[str, ...]  # where a whole reply stands in a line of answers
    stop: tuple[str | int, ...]  # where in a reply the provider's word for its end stands


class BatchReply(Struct, frozen=True, kw_only=True):
    """One line of answers: a whole reply as the API's `parse_reply` takes it, or why there is none."""

    id: str
    reply: bytes = b""
    stop: str = ""
    failure: str = ""


def file_of(batch: Batch, questions: Iterable[tuple[str, bytes]]) -> bytes:
    """The file of these questions, each an id and the body of its request."""
    made: list[dict[str, Json]] = []
    for key, raw in questions:
        body = load(raw.decode(), "question")
        fields = {name: value for name, value in body.items() if name not in batch.without} if isinstance(body, dict) else {}
        made.append({batch.key: key, **batch.beside, batch.body: fields})
    if batch.under:
        return (dump({batch.under: made}) + "\n").encode()
    return "".join(f"{dump(each)}\n" for each in made).encode()


def reply_of(batch: Batch, line: Mapping[str, Json], fields: frozenset[str]) -> BatchReply | None:
    """What a line of answers holds; None where it is none of this API, whose whole replies have all of `fields`."""
    key = line.get(batch.key)
    outer = line.get(batch.reply[0])
    if not isinstance(key, str) or (outer is None and "error" not in line):
        return None
    found = _at(dict(line), batch.reply)
    if not isinstance(found, dict) or not fields <= found.keys():
        why = line.get("error") or (outer if isinstance(outer, dict) else None)
        is_reply = isinstance(found, dict) and "error" not in found
        return None if is_reply or why is None else BatchReply(id=key, failure=dump(why)[:_WHY])
    end = _at(found, batch.stop)
    return BatchReply(id=key, reply=dump(found).encode(), stop=end.lower() if isinstance(end, str) else "")


def _at(value: Json, path: Iterable[str | int]) -> Json:
    """What stands at a path of keys and places; None where nothing does."""
    for name in path:
        if isinstance(name, int):
            value = value[name] if isinstance(value, list) and name < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


_WHY: Final = 300  # characters of a failure


def lines_of(raw: bytes) -> Iterable[Mapping[str, Json] | None]:
    """The objects of a file of JSON lines, or of one JSON list; None for a line that is none."""
    for line in raw.split(b"\n"):
        if not line.strip():
            continue
        try:
            value = load(line.decode(), "answers")
        except (InputError, RecursionError, UnicodeDecodeError):
            yield None
            continue
        for each in value if isinstance(value, list) else (value,):
            yield each if isinstance(each, dict) else None
