from pathlib import Path

import pytest

from tenure.agent.catalogue import OUTPUT, UNKNOWN_WINDOW, chosen, fields_of, listed, spec_of
from tenure.errors import InputError


@pytest.mark.parametrize(
    ("spec", "base_url", "api", "provider"),
    [
        ("openai:gpt-5", "", "openai-responses", "openai"),
        ("openai:gpt-5", "https://openrouter.ai/api/v1", "openai-chat", "openrouter"),
        ("openai-chat:gpt-5", "", "openai-chat", "openai"),
        ("openai-responses:qwen3", "http://127.0.0.1:8000/v1", "openai-responses", ""),
        ("anthropic:claude-opus-4-5", "", "anthropic", "anthropic"),
        ("google:gemini-3-pro", "", "gemini", "google"),
        ("gemini:gemini-3-pro", "", "gemini", "google"),
        ("gemini:gemini-3-pro", "http://127.0.0.1:8000", "gemini", ""),
    ],
)
def test_a_name_says_which_api_is_spoken_and_with_whom(spec: str, base_url: str, api: str, provider: str) -> None:
    choice = chosen(spec, base_url=base_url)
    assert (choice.api, choice.provider) == (api, provider)


@pytest.mark.parametrize("spec", ["", "gpt-5", "bard:x", "openai:", "anthropic: "])
def test_another_name_is_refused_with_what_there_is(spec: str) -> None:
    with pytest.raises(InputError, match="openai:NAME or anthropic:NAME"):
        chosen(spec)


def test_windows_come_from_the_price_list_and_what_nobody_knows_is_assumed_small() -> None:
    assert (chosen("anthropic:claude-opus-4-5").window, chosen("openai:gpt-5").window) == (200_000, 400_000)
    unknown = chosen("openai:mine", base_url="http://localhost:1/v1")
    assert (unknown.window, unknown.known) == (UNKNOWN_WINDOW, False)
    assert unknown.output + 1_000 < unknown.window


def test_a_reply_is_not_allowed_more_than_the_model_takes() -> None:
    assert chosen("anthropic:claude-3-haiku-20240307").output == 4_096
    assert chosen("anthropic:claude-opus-4-5").output == OUTPUT
    assert chosen("openai:gpt-4").output <= chosen("openai:gpt-4").window // 4


def test_requests_say_what_each_api_wants_and_stream() -> None:
    chat = fields_of(chosen("openai:m", base_url="http://localhost:1/v1"), "s1")
    assert (chat["max_tokens"], chat["stream_options"], "prompt_cache_key" in chat) == (OUTPUT, {"include_usage": True}, False)
    own = fields_of(chosen("openai:gpt-5"), "s1")
    assert (own["store"], own["include"], own["prompt_cache_key"]) == (False, ["reasoning.encrypted_content"], "s1")
    assert "include" not in fields_of(chosen("openai:gpt-4o"))
    assert "max_completion_tokens" in fields_of(chosen("openai-chat:gpt-5"))
    assert fields_of(chosen("anthropic:claude-opus-4-5")) == {"model": "claude-opus-4-5", "max_tokens": OUTPUT, "stream": True}


def test_the_models_to_pick_from_have_windows_and_can_be_chosen() -> None:
    models = list(listed())
    assert len(models) > 20
    assert all(model.known and chosen(model.spec) == model for model in models)
    assert {model.kind for model in listed("anthropic")} == {"anthropic"}


def test_the_newest_models_come_first_and_those_without_a_version_last() -> None:
    names = [model.name for model in listed()]
    in_order = ("claude-opus-4-5", "claude-opus-4-1", "claude-3-7-sonnet-latest", "claude-3-haiku", "claude-2")
    assert [name for name in names if name in in_order] == list(in_order)
    in_order = ("gpt-5.1", "gpt-5", "gpt-4.1", "gpt-4o-2024-05-13", "gpt-3.5-turbo-16k", "gpt-oss-20b")
    assert [name for name in names if name in in_order] == list(in_order)


def test_a_session_says_how_its_model_is_asked_for_again() -> None:
    for spec in ("openai:gpt-5", "openai-chat:gpt-5", "anthropic:claude-opus-4-5", "groq:llama", "ollama:qwen3"):
        choice = chosen(spec)
        url = choice.url(Path("/"))
        assert spec_of(choice.api, choice.name, url) == spec
        assert chosen(spec_of(choice.api, choice.name, url), base_url=url).api == choice.api
    assert spec_of("anthropic", "m", "https://api.openai.com/v1") == "anthropic:m"
    assert spec_of("openai-responses", "m", "http://127.0.0.1:11434/v1") == "openai-responses:m"
    assert spec_of("", "gpt-5", "https://h") == spec_of("openai-chat", "", "https://h") == ""
