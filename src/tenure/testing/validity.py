"""What a provider would refuse in a request, by its rules. Pure: a property-based test can drive it without HTTP.

The messages are the providers' own, as far as they are known. Signatures that `tenure.apis.seals` made are checked, others pass.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from tenure.apis import APIS
from tenure.apis.api import Api
from tenure.apis.json_text import dump, load, object_of
from tenure.apis.server import Fields, Server, objects
from tenure.engine.view.rules import Rules
from tenure.testing.prefix import units


def violations(body: Mapping[str, Any], rules: Rules) -> tuple[str, ...]:
    """Everything that the provider would refuse, in the order of the request; empty when it is valid."""
    server = APIS[rules.dialect].server()
    fields = object_of(load(dump(body)), "request")
    messages = objects(fields.get(server.body_key))
    return (
        *_roles(server, messages, rules),
        *server.violations(fields, messages, rules),
        *_markers(body, rules),
        *_tools(APIS[rules.dialect], fields),
    )


def _tools(api: Api, fields: Fields) -> Iterator[str]:
    declared = [tool.get("function") or tool for tool in api.declarations(objects(fields.get("tools")))]
    names = [str(tool["name"]) for tool in declared if tool.get("name")]
    if len({*names}) < len(names):
        yield "tools: Tool names must be unique."


def _roles(server: Server, messages: Sequence[Fields], rules: Rules) -> Iterator[str]:
    roles = server.roles_of(messages)
    for n, role in enumerate(roles):
        if role not in server.roles:
            yield f"messages.{n}.role: unexpected role {role!r}"
    yield from server.role_errors(messages, roles, rules)
    spoken = [role for role in roles if role not in ("system", "developer")]
    if not messages:
        yield "messages: at least one message is required"
    if rules.first_user and spoken and spoken[0] != "user":
        yield 'messages: first message must use the "user" role'
    if rules.alternation and any(a == b != "tool" for a, b in pairwise(spoken)):
        yield "Please ensure that multiturn requests alternate between user and model."


def _markers(body: Mapping[str, Any], rules: Rules) -> Iterator[str]:
    if not rules.cache_markers:
        return
    every = units(body, rules)
    own = units({key: body[key] for key in body if key != "cache_control"}, rules) if "cache_control" in body else every
    marked = sum(1 for unit in own if unit.ttl_s) + ("cache_control" in body)
    if marked > rules.cache_markers:
        yield f"A maximum of {rules.cache_markers} blocks with cache_control may be provided. Found {marked}."
    lives = [unit.ttl_s for unit in every if unit.ttl_s]
    if lives != sorted(lives, reverse=True):
        yield "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block."
