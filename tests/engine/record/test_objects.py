import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenure.engine.record.objects import RESERVED, Handle, parse_handle, tool_key
from tenure.errors import InputError
from tenure.testing.builders import call, human, indexed, reply, start_expl

HASHES = st.text("0123456789abcdef", min_size=4, max_size=64)


@given(tool=st.one_of(st.text(min_size=1), st.sampled_from(sorted(RESERVED))), number=st.integers(1, 10**6), hash_=HASHES)
def test_a_tools_handle_is_read_as_it_was_printed(tool: str, number: int, hash_: str) -> None:
    handle = Handle(object=f"{tool_key(tool)}:{number}", hash=hash_)
    assert parse_handle(str(handle)) == handle
    assert parse_handle(handle.object).object == handle.object


@given(name=st.text(min_size=1, max_size=100), hash_=HASHES)
def test_an_episodes_handle_is_read_as_it_was_printed(name: str, hash_: str) -> None:
    assume(name.isprintable() and name.strip() == name)
    handle = Handle(object=f"episode:{name}", hash=hash_)
    assert parse_handle(str(handle)) == handle


@given(text=st.text())
def test_any_text_is_a_handle_or_is_refused_with_what_is_allowed(text: str) -> None:
    try:
        handle = parse_handle(text)
    except InputError as error:
        handle = None
        refused = str(error)
    assert (handle.kind and handle.name) if handle else "read:12@3fa9" in refused


@pytest.mark.parametrize(
    ("text", "object_"),
    [
        ("function:read:12", "read:12"),
        ("conversation:user:3", "user:3"),
        ("conversation:episode:a", "episode:a"),
        ("function:user:3", "function:user:3"),
        ("function:episode:1@3fa9", "function:episode:1"),
        ("[read:12@3fa9]", "read:12"),
        (" `read:12` ", "read:12"),
    ],
)
def test_long_forms_are_shortened_unless_the_name_is_reserved(text: str, object_: str) -> None:
    assert parse_handle(text).object == object_


@pytest.mark.parametrize("text", ["", "read", ":", "read:", ":12", "read:" + "1" * 500])
def test_what_has_no_kind_and_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="handle"):
        parse_handle(text)


def test_reserved_tool_names_get_objects_of_their_own() -> None:
    index = indexed(human("go"), reply(call("user"), call("episode"), call("Read"), call("read"), start_expl("user:1")))
    assert [span.object for span in index.spans] == [
        "function:user:1", "function:episode:1", "read:1", "read:2", "delimiter:1",
    ]  # fmt: skip
    assert index.span("function:user", 1) is index.spans[0]
    assert index.span("read", 2) is index.spans[3]
    assert index.span("read", 3) is None


def test_a_handle_prints_the_start_of_the_hash_of_its_entry() -> None:
    index = indexed(human("go"), reply(call("read")))
    assert index.handle("read:1", 1) == f"read:1@{index.entries[1].hash.hex()[:4]}"
