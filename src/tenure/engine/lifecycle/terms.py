"""What a conversation is held to beside its budget, as a store keeps it, so that it goes on under the same."""

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenure.engine.clip.setting import FEWEST, Clip
from tenure.engine.lifecycle.arms import Arm
from tenure.engine.lifecycle.budget import GateRule
from tenure.engine.policies import DEFAULT, UNBOUNDED, policy_named
from tenure.engine.policies.policy import Policy
from tenure.errors import InputError


class Terms(Struct, frozen=True, kw_only=True):
    """Names and numbers; empty where a store of an older version kept nothing, which means the usual."""

    policy: str = ""  # several are joined by +
    own: bool = False  # the policy is an object of the host's, of which only the name is kept
    compat: str = ""
    gate: str = ""
    tools: dict[str, int] = {}  # the host's own that have names of ours, each with the entry from which on
    clip: int | None = None  # o200k tokens above which results are shown clipped; 0: none
    provider: str = ""  # whose prices and rules hold
    base_url: str = ""  # where requests go, without what may be secret in it; empty: not known
    cache_life: str = ""
    notes: bool = False
    markers: bool = True
    arm: Arm = ""  # of an experiment that holds some conversations out

    @classmethod
    def stored(cls, text: str) -> "Terms":
        """What a store keeps as JSON. Raises InputError when it cannot be read."""
        try:
            return msgspec.json.decode(text, type=cls) if text else cls()
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise InputError("terms", f"the stored ones cannot be read ({error})", "policy, gate and clip by name") from error

    def amended(
        self,
        *,
        policy: str | Policy | None = "",
        compat: str = "",
        gate: str = "",
        clip: int | None = None,
        cache_life: str = "",
        notes: bool | None = None,
        markers: bool | None = None,
    ) -> "Terms":
        """These with what a host asks for; an empty text, and None but for `policy`, ask for nothing. Raises InputError for unknown names."""
        terms = replace(
            self,
            gate=gate or self.gate or GateRule.PRICED,
            clip=next(n for n in (clip, self.clip, Clip().above) if n is not None),
            cache_life=cache_life or self.cache_life,
            notes=self.notes if notes is None else notes,
            markers=self.markers if markers is None else markers,
        )
        if terms.clip is not None and 0 < terms.clip < FEWEST:
            raise InputError(
                "clip", f"{terms.clip} tokens", f"0 for none, or at least {FEWEST}: the mark of a clip alone takes about 110"
            )
        if terms.gate not in list(GateRule):
            raise InputError("gate", repr(terms.gate), "one of " + ", ".join(GateRule))
        if compat:
            policy_named("", compat)
            return replace(terms, policy="", own=False, compat=compat)
        if policy == "":
            return terms if terms.policy or terms.compat else replace(terms, policy=DEFAULT)
        if isinstance(policy, str):
            policy_named(policy)
        elif policy is not None and not (callable(policy) and hasattr(policy, "name") and hasattr(policy, "conduct")):
            raise InputError("policy", repr(policy), "a callable with a name and a conduct (tenure.engine.policies.policy)")
        name = policy if isinstance(policy, str) else UNBOUNDED if policy is None else policy.name
        return replace(terms, policy=name, own=not isinstance(policy, str) and policy != _named_policy(name), compat="")

    def served(self, *, provider: str, base_url: str, other_model: bool) -> "Terms":
        """These with a provider and where it is, which belong together; unless given they stay, but those of another model."""
        if provider in ("", self.provider) and base_url in ("", self.base_url) and not other_model:
            return self
        return replace(self, provider=provider, base_url=base_url)

    def policy_object(self, policy: str | Policy | None) -> Policy | None:
        """The policy to use: the host's own object where it hands one in. Raises InputError for one of which only the name is kept."""
        if not isinstance(policy, str | None):
            return policy
        if self.own:
            raise InputError(
                "policy",
                f"{self.policy!r}, an object of the host's of which the store keeps only the name",
                "the same object again, as Context(policy=…), or the name of another policy",
            )
        return policy_named(self.policy, self.compat)


def _named_policy(name: str) -> Policy | None:
    """The policy of that name; None where there is none such."""
    try:
        return policy_named(name)
    except InputError:
        return None
