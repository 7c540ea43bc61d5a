"""Every request that a session sends is one that its provider takes: driven through the fake provider's rules."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pytest
from driving import NAMED, Case, Run, cases, proposal_of, quick
from hypothesis import given
from msgspec.structs import replace

from tenure.apis import APIS
from tenure.apis.api import Head
from tenure.apis.rules import rules_for
from tenure.apis.seals import seal, sealed_call_id
from tenure.engine.policies.policy import Policy
from tenure.engine.record.chain import Pairing
from tenure.engine.record.entry import Block, Draft, Media, Opaque, Role, Text, Thinking, ToolCall, ToolResult
from tenure.engine.view.rules import Rules
from tenure.testing.prefix import units
from tenure.testing.validity import violations

Body = dict[str, Any]
every_policy = pytest.mark.parametrize("policy", NAMED.values(), ids=NAMED)
HEAD = Head(fields={"model": "m", "max_tokens": 100})


def body_of(run: Run, dialect: str, rules: Rules) -> Body:
    """The request as it goes out."""
    api, pieces = APIS[dialect], run.pieces()
    return json.loads(api.join(HEAD, api.ordered(api.render(pieces), pieces, rules)))


def carry_out(run: Run) -> None:
    if proposal := proposal_of(run.session.decide(extra=run.case.extra)):
        run.session.commit(proposal.commit)


@every_policy
@pytest.mark.parametrize("dialect", sorted(APIS))
@given(case=cases(longest=16))
@quick
def test_a_record_of_no_provider_makes_valid_requests_in_every_dialect(dialect: str, policy: Policy, case: Case) -> None:
    rules = rules_for(APIS[dialect].server().provider, "", dialect)
    run = Run(Case(case.drafts, case.budget, replace(rules, reasoning_unit=False), case.extra, case.ratio), policy)
    for _ in run.replies():
        if run.entries[-1].role is Role.ASSISTANT:
            continue  # its results are still to come
        carry_out(run)
        assert not violations(body_of(run, dialect, rules), rules)


class Speaker:
    """Puts drafts as Anthropic's API would, with signatures that check themselves."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._pairing = Pairing()
        self._ids: dict[int, str] = {}
        self._messages = 0

    def spoken(self, draft: Draft, request: Body) -> Body:
        """The message of a draft; a reply answers `request`."""
        self._messages += 1
        content: list[Body] = []
        signature = ""
        for block in draft.blocks:
            if isinstance(block, Thinking):
                signature = seal(block.text, self._prefix(request, content))
                content.append({"type": "thinking", "thinking": block.text, "signature": signature})
            elif part := self._part(block, signature):
                content.append(part)
        content = content or [{"type": "text", "text": "…"}]
        return {"role": "assistant" if draft.role is Role.ASSISTANT else "user", "content": content}

    def _prefix(self, request: Mapping[str, Any], content: list[Body]) -> list[str] | None:
        if self._rules.thinking != "prefix_bound":
            return None
        said = [{"role": "assistant", "content": content}] if content else []
        return [unit.text for unit in units({**request, "messages": [*request["messages"], *said]}, self._rules)]

    def _part(self, block: Block, signature: str) -> Body | None:
        match block:
            case ToolCall(call_id=call_id, name=name):
                ordinal = self._pairing.call(call_id, self._messages)
                self._ids[ordinal] = sealed_call_id(signature, ordinal) if signature else f"toolu_{ordinal}"
                return {"type": "tool_use", "id": self._ids[ordinal], "name": name, "input": arguments(block)}
            case ToolResult(call_id=call_id, text=text):
                ordinal = self._pairing.result(call_id)
                answered = "toolu_nobody" if ordinal is None else self._ids[ordinal]
                return {"type": "tool_result", "tool_use_id": answered, "content": text}
            case Text(text=text) | Opaque(text=text):
                return {"type": "text", "text": text} if text.strip() else None
            case Media():
                return None
            case _:
                raise AssertionError(block)


def whole_replies(drafts: Sequence[Draft]) -> Iterator[Draft]:
    """As this API says it: a reply is one message, and instructions are no messages."""
    spoken = [draft for draft in drafts if draft.role is not Role.SYSTEM]
    for role, run in groupby(spoken, key=lambda draft: draft.role):
        if role is Role.ASSISTANT:
            yield Draft(role=role, blocks=tuple(block for draft in run for block in draft.blocks))
        else:
            yield from run


def arguments(call: ToolCall) -> object:
    try:
        found = json.loads(call.arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@every_policy
@pytest.mark.parametrize("thinking", ["none", "last_message", "open_loop", "prefix_bound"])
@given(case=cases(longest=16))
@quick
def test_signed_reasoning_is_sent_as_its_provider_wants_it(thinking: Any, policy: Policy, case: Case) -> None:
    rules = replace(rules_for("anthropic", "claude-sonnet-4-5", "anthropic"), thinking=thinking)
    run = Run(Case((), case.budget, rules, case.extra, case.ratio), policy)
    speaker = Speaker(rules)
    request: Body = {}
    for draft in whole_replies(case.drafts):
        if draft.role is Role.ASSISTANT:
            carry_out(run)
            request = body_of(run, "anthropic", rules)
            assert not violations(request, rules)
        message = speaker.spoken(draft, request)
        run.entries += run.session.append(*APIS["anthropic"].parse([message])).entries
