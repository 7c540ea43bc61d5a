"""Taking messages and replies in: read by their API, refused or placed, digested, stored."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from tenure.apis.api import Api
from tenure.apis.foreign import refuse_foreign, refuse_stream
from tenure.apis.json_text import Message, source
from tenure.apis.json_text import encoded as utf8
from tenure.apis.sdk import plain, reply_id, storable
from tenure.context.durable_session import DurableSession
from tenure.context.refusals import Refusals
from tenure.engine.meter.ledger import Spent
from tenure.engine.meter.ratio import Ratio
from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.models.helpers import HelperModels
from tenure.store.records import Now


class Intake:
    """What comes into one conversation. Mutable: it learns from reported usage how the provider counts."""

    def __init__(self, durable: DurableSession, api: Api, helpers: HelperModels, refusals: Refusals, clock: Now) -> None:
        self._durable, self._api, self._helpers, self._refusals, self._clock = durable, api, helpers, refusals, clock
        self._ratio = Ratio(head_counted=True)

    def take_messages(self, messages: Iterable[Message | object]) -> None:
        """Take messages in. Raises InputError naming the first that cannot be understood, or that another API made."""
        batch: Any = messages
        if isinstance(batch, str | bytes | Mapping) or callable(getattr(batch, "model_dump", None)):
            kind = type(cast(object, batch)).__name__
            raise InputError("messages", f"a {kind}", "a list of messages; a whole reply is taken by `append`")
        if isinstance(batch, Iterable) and not hasattr(cast(object, batch), "response"):
            drafts = self._drafts(list(messages))
            self._take(drafts)
        else:
            refuse_stream(messages, self._api, "messages")

    def take_reply(self, reply: Message | object) -> None:
        """Take in a whole API response. Raises InputError for what is none, and for one that is in the record already."""
        refuse_stream(reply, self._api, "reply")
        durable, bare = self._durable, plain(reply)
        draft = self._api.parse_reply(bare)
        self._refusals.again(draft, reply_id(bare))
        if draft.usage is not None and draft.usage.prompt and durable.sent:
            self._ratio = self._ratio.learn(draft.usage.prompt, durable.sent)
        at, ratio = self._clock(), self._ratio.value if self._ratio.growths else None
        usage = draft.usage
        if usage is not None and not durable.believes(usage):
            usage = None  # billed as reported; of the window and the cache it says nothing
        if draft.usage is None:
            self._take((draft,))
        else:
            spent = durable.accounts.priced(Spent(model=draft.model, usage=draft.usage, at=at))
            self._take((draft,), spent)
            durable.report(spent, draft.usage)
        durable.session.observe(at=at, ratio=ratio, usage=usage)
        self._helpers.reported(usage.prompt if usage is not None else durable.gauge.tokens if draft.usage is not None else 0)

    def _drafts(self, batch: list[Message | object]) -> Iterable[Draft]:
        own = [storable(each) for each in batch if isinstance(each, Draft)]
        if len(own) == len(batch):
            return own
        drafts = self._api.parse([self._message(message, f"message {n}") for n, message in enumerate(batch)])
        for n, draft in enumerate(drafts):
            self._refusals.repeated(draft, f"message {n}")
        return drafts

    def _message(self, message: Message | object, where: str) -> Message:
        """A message as it is recorded. Raises InputError for what is none, or is one of another API."""
        bare = plain(message)
        refuse_foreign(bare, self._api, where)
        if not self._durable.terms.markers:
            return bare
        return self._api.unmarked(bare if isinstance(bare, bytes) else utf8(source(bare, where)))

    def _take(self, drafts: Iterable[Draft], reply: Spent | None = None) -> None:
        self._durable.accept(self._helpers.digested(self._durable.session.propose(drafts)), reply)
