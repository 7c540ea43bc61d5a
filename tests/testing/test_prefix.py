from typing import Any

from msgspec.structs import replace

from tenure.apis.rules import rules_for
from tenure.engine.record.entry import Usage
from tenure.testing.prefix import PrefixCache, units

CLAUDE = replace(rules_for("anthropic", "claude-opus-5", "anthropic"), cache_min_tokens=2)
CHAT = replace(rules_for("openai", "gpt-5", "openai-chat"), cache_min_tokens=2)
MARK = {"cache_control": {"type": "ephemeral"}}


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "text", "text": text, **more}]}


def cache() -> PrefixCache:
    return PrefixCache(lambda _: 1)  # every unit is one token


def test_only_what_was_marked_is_read_again() -> None:
    provider = cache()
    first = {"messages": [said("a"), said("b", **MARK), said("c")]}
    assert provider.usage(first, CLAUDE, 0) == Usage(uncached=1, cache_write=2)
    second = {"messages": [said("a"), said("b"), said("c"), said("d", **MARK)]}
    assert provider.usage(second, CLAUDE, 1) == Usage(cache_write=2, cache_read=2)


def test_a_changed_unit_breaks_everything_after_it() -> None:
    provider = cache()
    provider.usage({"messages": [said("a"), said("b", **MARK)]}, CLAUDE, 0)
    assert provider.usage({"messages": [said("x"), said("b", **MARK)]}, CLAUDE, 1) == Usage(cache_write=2)


def test_the_cache_forgets_and_is_refreshed_by_a_hit() -> None:
    provider, body = cache(), {"messages": [said("a"), said("b", **MARK)]}
    for now, read in ((0, 0), (299, 2), (598, 2), (899, 0)):
        assert provider.usage(body, CLAUDE, now).cache_read == read


def test_an_hour_lasts_an_hour() -> None:
    provider, body = cache(), {"messages": [said("a"), said("b", cache_control={"type": "ephemeral", "ttl": "1h"})]}
    provider.usage(body, CLAUDE, 0)
    assert provider.usage(body, CLAUDE, 3000).cache_read == 2


def test_short_prefixes_are_not_cached() -> None:
    provider, body = cache(), {"messages": [said("a", **MARK)]}
    assert [provider.usage(body, CLAUDE, now) for now in (0, 1)] == [Usage(uncached=1)] * 2


def test_a_marker_looks_back_only_so_far() -> None:
    provider = cache()
    texts = [said(str(n)) for n in range(40)]
    provider.usage({"messages": [*texts[:5], said("5", **MARK)]}, CLAUDE, 0)
    assert provider.usage({"messages": [*texts[:25], said("25", **MARK)]}, CLAUDE, 1).cache_read == 6
    provider = cache()
    provider.usage({"messages": [*texts[:5], said("5", **MARK)]}, CLAUDE, 0)
    assert provider.usage({"messages": [*texts[:26], said("26", **MARK)]}, CLAUDE, 1).cache_read == 0


def test_automatic_caching_needs_no_markers_and_charges_no_writes() -> None:
    provider = cache()
    assert provider.usage({"messages": [said("a"), said("b")]}, CHAT, 0) == Usage(uncached=2)
    assert provider.usage({"messages": [said("a"), said("b"), said("c")]}, CHAT, 1) == Usage(uncached=1, cache_read=2)


def test_another_model_has_another_cache() -> None:
    provider, messages = cache(), [said("a"), said("b")]
    provider.usage({"model": "m", "messages": messages}, CHAT, 0)
    assert provider.usage({"model": "n", "messages": messages}, CHAT, 1).cache_read == 0


def test_the_order_is_tools_system_messages_and_markers_are_no_part_of_it() -> None:
    body = {"messages": [said("m", **MARK)], "system": "s", "tools": [{"name": "t"}]}
    order = units(body, CLAUDE)
    assert [unit.text.partition(":")[0] for unit in order] == ["tools", "system", "user"]
    assert [bool(unit.ttl_s) for unit in order] == [False, False, True]
    assert "cache_control" not in order[-1].text
