"""Chat messages with notes of the tool that logged them: read as they were sent, by the dialect."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Raw

from tenure.apis.openai_chat import OpenAIChat
from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.logs.document import Element
from tenure.logs.mend import Damaged, cut, decode
from tenure.logs.reader import Skipped

_dialect: Final = OpenAIChat()
_fields: Final = msgspec.json.Decoder(dict[str, Raw])


def chat_message(element: Element, sent: Sequence[str]) -> Draft | Skipped:
    """The message of which only the fields named `sent` went to the model, in that order; its own bytes when it holds no others."""
    try:
        return _dialect.parse([_as_sent(element, sent)])[0]
    except Damaged as damage:
        found = damage.found
    except InputError as error:
        found = str(error)[:200]
    reason = f"damaged message: found {found}, expected a chat message"
    return Skipped(line=element.line, bytes=len(element.faithful), reason=reason)


def _as_sent(element: Element, sent: Sequence[str]) -> bytes:
    fields = decode(element.source, _fields)
    if all(key in sent for key in fields):
        return element.faithful
    shown = (
        b'"%s":%s' % (key.encode(), cut(bytes(fields[key]), element.source, element.faithful)) for key in sent if key in fields
    )
    return b"{" + b",".join(shown) + b"}"
