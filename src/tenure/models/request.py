"""A question as the body of a request. Pure, and byte-stable: what a cache has read is sent as it was."""

from collections.abc import Sequence

from tenure.apis import APIS
from tenure.apis.api import Head
from tenure.apis.json_text import dump, load, source
from tenure.apis.prefix import QuestionSettings, allow, continued, opening, without
from tenure.apis.rules import rules_for
from tenure.engine.record.entry import NEUTRAL, Draft, Origin, Role, Text
from tenure.engine.view.piece import Piece
from tenure.errors import InputError
from tenure.models.question import Question

SCHEMA_IN_WORDS = (
    "Answer with one JSON value and nothing else: no words around it, no code fence. This JSON schema describes it:\n"
)


def question_body(
    question: Question, model: str, api: str, *, limit: str = "", structured: bool = True, is_at_home: bool = True
) -> bytes:
    """The body of a request to `model` over this API.

    With `structured` a schema is given as a setting, without it, and behind a prefix, in words. `limit` is the key by which a server knows the output
    limit, where that is not the usual one; `is_at_home`: the request goes to the provider whose API it is. Raises InputError for a question without
    words, and for a prefix that cannot be continued by this model.
    """
    in_settings = structured and not question.prefix
    tail = _messages(_drafts(question, in_words=not in_settings), model, api)
    fields = None
    if question.prefix:
        allow(apis_of(question.prefix), (api,))
        fields = opening(question.prefix).fields
    settings = APIS[api].speech.settings(
        QuestionSettings(
            max_output=question.max_output,
            schema=question.schema if in_settings else None,
            prefix=fields,
            limit=limit,
            is_at_home=is_at_home,
        )
    )
    if fields is None:
        system = (
            (Draft(role=Role.SYSTEM, blocks=(Text(text=question.system, origin=Origin.HARNESS),)),) if question.system else ()
        )
        return APIS[api].join(Head(system=system, fields={"model": model, **settings}), tail)
    if "model" in fields and (named := load(fields["model"], "prefix")) != model:
        raise InputError("prefix", f"model {named!r}", f"{model!r}: a cache belongs to one model")
    own = {} if "model" in fields else {"model": model}
    return continued(question.prefix, APIS[api].body_key, [source(each, "message") for each in tail], {**own, **settings})


def apis_of(prefix: bytes) -> tuple[str, ...]:
    """The APIs that a request can have been made for, as far as its head and its first message show. Raises InputError when it is no request."""
    begins = opening(prefix)
    return tuple(name for name, api in APIS.items() if api.speech.is_request(begins))


def is_of(prefix: bytes, model: str, apis: Sequence[str]) -> bool:
    """Whether a request was rendered for this model, and can be one of these APIs, so that its cache is read by a question behind it."""
    if not set(apis_of(prefix)) & set(apis):
        return False
    fields = opening(prefix).fields
    return "model" not in fields or load(fields["model"], "prefix") == model


def forked(prefix: bytes) -> bytes:
    """The request without what would bend or cut the answer to another question: stops, formats, forced calls, sampling that bans words.

    What else the model reads before that question stays byte for byte, so that the provider's cache is read; a format is part of the prompt's
    beginning at OpenAI and at Anthropic, and is dropped all the same: a plan that is no plan is worth no cache. Raises InputError for no request.
    """
    paths = [path for api in APIS.values() for path in api.speech.answer_settings]
    return without(prefix, paths, {name for api in APIS.values() for name in api.speech.choices})


def in_words(question: Question) -> str:
    """The question as one text, for whatever takes no more than that."""
    texts = [question.system, *(block.text for draft in _drafts(question, in_words=True) for block in draft.blocks)]
    return "\n\n".join(text for text in texts if text)


def _messages(drafts: Sequence[Draft], model: str, api: str) -> tuple[bytes, ...]:
    pieces = [_piece(draft) for draft in drafts]
    messages = tuple(APIS[api].ordered(APIS[api].render(pieces), pieces, rules_for("", model, api)))
    if not messages:
        raise InputError("question", "messages without a word", "something to ask")
    return messages


def _drafts(question: Question, *, in_words: bool) -> list[Draft]:
    drafts = [_draft(message) if isinstance(message, str) else message for message in question.messages]
    return drafts + ([_draft(SCHEMA_IN_WORDS + dump(question.schema))] if in_words and question.schema is not None else [])


def _draft(text: str) -> Draft:
    return Draft(role=Role.USER, blocks=(Text(text=text, origin=Origin.HARNESS),))


def _piece(draft: Draft) -> Piece:
    if draft.dialect == NEUTRAL:
        return Piece(role=draft.role, blocks=draft.blocks)
    kept = tuple(range(len(draft.blocks)))
    return Piece(role=draft.role, blocks=draft.blocks, dialect=draft.dialect, payload=draft.payload, kept=kept)
