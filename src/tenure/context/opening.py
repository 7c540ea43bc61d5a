"""Opening a conversation: what its host asks for, held against what the store keeps of it."""

from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from tenure.apis import USUAL
from tenure.apis.rules import rules_for
from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle.arms import CONTROL, arm_of
from tenure.engine.lifecycle.budget import USUAL as USUAL_BUDGET
from tenure.engine.lifecycle.budget import Budget, GateRule
from tenure.engine.lifecycle.session import Setup
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.meter.price import prices_for
from tenure.engine.planners.selfgc.setting import OURS, SelfGc
from tenure.engine.policies.policy import Policy
from tenure.errors import InputError
from tenure.models.hosts import public_url
from tenure.store.records import Conversation, Records
from tenure.store.soundness import encoded, held_to


class ContextOptions(Struct, frozen=True, kw_only=True):
    """What a host asks of a conversation; what is empty stays as it is held, and is the usual of a new one. `Context` says what each means."""

    dialect: str = ""
    budget: Budget | None = None
    policy: str | Policy | None = ""
    compat: str = ""
    model: str = ""
    provider: str = ""
    tenant: str = ""
    clip: int | None = None
    gate: str = ""
    cache_life: str = ""
    notes: bool | None = None
    markers: bool | None = None
    base_url: str = ""
    selfgc: SelfGc | None = None  # handed in each time
    holdout: float = 0.0
    account: str = ""

    def amend(self, terms: Terms, sheet: Conversation) -> Terms:
        """The terms of a conversation with what is asked for. Raises InputError for unknown names."""
        served = terms.served(
            provider=self.provider,
            base_url=self.base_url and public_url(self.base_url),
            other_model=bool(self.model and sheet.model and self.model != sheet.model),
        )
        return served.amended(
            policy=self.policy,
            compat=self.compat,
            gate=self.gate,
            clip=self.clip,
            cache_life=self.cache_life,
            notes=self.notes,
            markers=self.markers,
        )


def open_sheet(store: Records, conversation: str, options: ContextOptions) -> tuple[Conversation, Terms]:
    """The cover sheet and terms of a conversation, a new one where none is named; what is asked for is stored.

    Raises InputError for unknown names, Damaged for a stored sheet that cannot be read.
    """
    if conversation:
        return held_to(store, conversation, options.budget, options.amend, dialect=options.dialect, model=options.model)
    sheet = Conversation(id=uuid4().hex, tenant=options.tenant, model=options.model, dialect=options.dialect or USUAL)
    if not 0 <= options.holdout <= 1:
        raise InputError("holdout", repr(options.holdout), "a share from 0 to 1")
    terms = options.amend(Terms(), sheet)
    if options.holdout:
        terms = replace(terms, arm=arm_of(options.account or sheet.id, options.holdout))
    return store.create(replace(sheet, budget=encoded(options.budget or USUAL_BUDGET), terms=encoded(terms))), terms


def setup_of(store: Records, sheet: Conversation, terms: Terms, options: ContextOptions) -> Setup:
    """What the session of a conversation is held to. Raises InputError for a policy of which the store has only the name."""
    is_managed = terms.arm != CONTROL
    return Setup(
        budget=options.budget or Budget.stored(sheet.budget),
        rules=rules_for(terms.provider, sheet.model, sheet.dialect or USUAL),
        prices=prices_for(sheet.model, terms.provider, life=terms.cache_life),
        gate=GateRule(terms.gate),
        selfgc=options.selfgc or OURS,
        calls_seen=store.call_counts(sheet.tenant),
        policy=terms.policy_object(options.policy) if is_managed else None,
        clip=Clip(above=terms.clip, room=terms.clip) if terms.clip and is_managed else None,
        tenant=sheet.tenant,
    )
