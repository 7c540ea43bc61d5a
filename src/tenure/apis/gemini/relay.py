"""A reply of the Gemini API for a client that does not know all tools: https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from tenure.apis.gemini.messages import member
from tenure.apis.json_text import number_of
from tenure.apis.relay import ReplyRelay, with_output
from tenure.apis.reply import fields_in, fields_of

_OUTPUT = "candidatesTokenCount"


class GeminiRelay(ReplyRelay):
    """Parts of hidden calls are left out."""

    _is_open = False  # the arguments of a hidden call are still to come

    def _shown(self, event: dict[str, Any]) -> Iterator[dict[str, Any]]:
        candidates = list(fields_in(event.get("candidates")))
        content = fields_of(candidates[0].get("content")) if candidates else {}
        parts = list(fields_in(content.get("parts")))
        kept = [part for part in parts if not self._hides(part)]
        if len(kept) == len(parts):
            yield event
        elif kept or candidates[0].get("finishReason"):
            yield {**event, "candidates": [{**candidates[0], "content": {**content, "parts": kept}}, *candidates[1:]]}

    def _hides(self, part: Mapping[str, Any]) -> bool:
        call = member(part, "functionCall")
        if call is None:
            return False
        fields = fields_of(call)
        name = fields.get("name")
        if not name and self._is_open:  # more of its arguments
            self._is_open = bool(member(fields, "willContinue"))
            return True
        if name in self._hidden:
            self._has_hidden, self._is_open = True, bool(member(fields, "willContinue"))
            return True
        self._has_own = True
        return False

    def _is_ending(self, event: Mapping[str, Any]) -> bool:
        return any(candidate.get("finishReason") for candidate in fields_in(event.get("candidates")))

    def _ending(self, event: dict[str, Any], *, alone: bool) -> Mapping[str, Any]:
        if not self._output or "usageMetadata" not in event:
            return event
        return {**event, "usageMetadata": with_output(event["usageMetadata"], _OUTPUT, self._output)}


def without_calls(replies: Sequence[Mapping[str, Any]], hidden: Collection[str]) -> dict[str, Any]:
    """One response of the parts of several, in order, without calls of hidden tools."""
    last = replies[-1]
    candidates = list(fields_in(last.get("candidates")))
    parts = [part for reply in replies for part in _parts(reply) if not _is_hidden(part, hidden)]
    more = sum(number_of(fields_of(reply.get("usageMetadata")), _OUTPUT) for reply in replies[:-1])
    usage = {"usageMetadata": with_output(last["usageMetadata"], _OUTPUT, more)} if "usageMetadata" in last else {}
    content = {**fields_of(candidates[0].get("content")), "parts": parts} if candidates else {}
    shown = [{**candidates[0], "content": content}, *candidates[1:]] if candidates else []
    return {**last, "candidates": shown, **usage}


def _parts(reply: Mapping[str, Any]) -> list[dict[str, Any]]:
    first = next(iter(fields_in(reply.get("candidates"))), fields_of(None))
    return list(fields_in(fields_of(first.get("content")).get("parts")))


def _is_hidden(part: Mapping[str, Any], hidden: Collection[str]) -> bool:
    return fields_of(member(part, "functionCall")).get("name") in hidden
