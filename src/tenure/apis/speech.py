"""How a model is spoken with over one API: where a request goes, how its reply is put together, how a question is asked, and how it fails."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tenure.apis.batch import Batch
from tenure.apis.prefix import Opening, QuestionSettings
from tenure.apis.reply import ReplyStream, UsageParser
from tenure.errors import Failure


class Errors(Struct, frozen=True, kw_only=True):
    """What an API's errors say: by their code or type, by sentences with figures, and by words without."""

    codes: Mapping[str, Failure]
    overflows: tuple[
        str, ...
    ] = ()  # of a request that is too long; `<allowed>`, `<prompt>` and `<reply>` stand for numbers, `…` for a few words
    too_long: tuple[str, ...] = ()  # words of such an error, in lower case
    retry_after_s: Callable[[Mapping[str, Any]], float | None] = lambda _error: None  # what an error's own fields say of waiting


class Speech(Struct, frozen=True, kw_only=True):
    """What speaking with a model over one API takes."""

    sdk: str  # the module that sends the requests, of those that `tenure.models.clients` knows
    path: str  # behind the base URL; `{model}` stands for the model's name
    stream: Callable[[UsageParser], ReplyStream]  # for one reply
    is_request: Callable[[Opening], bool]  # whether a request that begins like this can be one of this API
    settings: Callable[
        [QuestionSettings], Mapping[str, object]
    ]  # of a question; None takes one out of a prefix. Raises InputError
    answer_settings: tuple[
        str, ...
    ]  # of a request, which hold for its answer and not for a question's behind it: "stop", "text.format"
    choices: tuple[str, ...]  # settings that may force the model to call tools
    errors: Errors
    batch: Batch
