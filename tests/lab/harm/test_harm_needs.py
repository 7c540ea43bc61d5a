import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scenes import messages

from tenure.lab.harm.holdings import Field, plain
from tenure.lab.harm.names import AnchorForm, names_of
from tenure.lab.harm.use import verbatim_of
from tenure.testing.builders import call, human, reply


def named(text: str, form: AnchorForm, field: str = "") -> set[str]:
    return {anchor.text for anchor in names_of(field, text) if anchor.form is form}


def lines(field: str, text: str) -> list[list[str]]:
    return [[anchor.text for anchor in stretch] for stretch in verbatim_of(Field(field, text)) if stretch]


@pytest.mark.parametrize(
    ("text", "form", "found"),
    [
        ("look at src/app/main.py:12, please", AnchorForm.PATH, {"src/app/main.py"}),
        ("/srv/data/users and ~/notes/todo", AnchorForm.PATH, {"/srv/data/users", "~/notes/todo"}),
        ("from '../../core/session.js'", AnchorForm.PATH, {"core/session.js"}),
        ("edit config.toml and run it", AnchorForm.FILE, {"config.toml"}),
        ("see https://example.org/a/b?x=1.", AnchorForm.URL, {"https://example.org/a/b?x=1"}),
        (
            "commit 3fa9c1d, 550e8400-e29b-41d4-a716-446655440000",
            AnchorForm.HASH,
            {"3fa9c1d", "550e8400-e29b-41d4-a716-446655440000"},
        ),
        ("job run-2931-77ab is done in #A1B2C3", AnchorForm.ID, {"run-2931-77ab", "#A1B2C3"}),
        ("order 48213 of 11,000", AnchorForm.NUMBER, {"48213"}),
        ("call parse_row and toJson(nextRow)", AnchorForm.NAME, {"parse_row", "toJson", "nextRow"}),
    ],
)
def test_a_text_names_what_its_forms_say(text: str, form: AnchorForm, found: set[str]) -> None:
    assert named(text, form) == found or named(text, form) == {each for each in found if len(each) > 5}


@pytest.mark.parametrize(
    "text",
    ["and/or, TCP/IP, 12/04/2024 and 1/2", "ls > /dev/null", "#!/usr/bin/env python", "read/write", "in 2024, 4096 or 1200"],
)
def test_what_everybody_knows_names_nothing(text: str) -> None:
    assert not list(names_of("", text))


@pytest.mark.parametrize("text", ["console.log(x)", "response.json()", "GitHub and JavaScript", "the quick brown fox"])
def test_what_only_looks_like_a_name_is_none(text: str) -> None:
    assert not list(names_of("", text))


def test_a_place_is_a_path_as_it_stands() -> None:
    assert named("D:\\work\\new plan.txt", AnchorForm.PATH, "file_path") == {"D:\\work\\new plan.txt"}


def test_what_an_edit_must_find_is_one_need_of_all_its_lines() -> None:
    assert lines("old_string", "def area(width):\n    return width * 2\n\nx") == [["def area(width):", "return width * 2"]]
    assert lines("old_string", "x = 1 + y") == [["x = 1 + y"]]


def test_a_patch_must_find_what_it_removes_and_what_it_leaves_around() -> None:
    patch = (
        "*** Begin Patch\n@@\n def area(width: int):\n-    return width * 2\n+    return width * 3\n@@\n last_line_of_the_file()"
    )
    assert lines("patchText", patch) == [["def area(width: int):", "return width * 2"], ["last_line_of_the_file()"]]


def test_lines_count_from_24_to_240_characters() -> None:
    assert lines("content", "short\n" + "a " * 12 + "b\n" + "c" * 241) == [["a " * 12 + "b"]]


def test_a_quotation_has_several_words() -> None:
    assert ["no such table here"] in lines("", 'it said "no such table here" twice')
    assert not [stretch for stretch in lines("", 'said "unanswerable"') if stretch]


def test_a_call_is_read_as_the_strings_in_it_and_escapes_as_what_they_stand_for() -> None:
    (message,) = messages(reply(call("edit", path="a.py", edits=[{"old": 'say "hi"\nnow'}], count=3)))
    assert [(field.name, field.text) for field in message.passages[0].fields] == [
        ("path", "a.py"),
        ("old", 'say "hi"\nnow'),
        ("count", "3"),
    ]
    assert plain(json.dumps('say "hi"\nnow')[1:-1]) == 'say "hi"\nnow'


HOSTILE = (
    "/" * 5_000,
    "a/" * 5_000,
    "." * 5_000,
    '"' * 5_000,
    "-" * 5_000,
    "_" * 5_000,
    "../" * 3_000,
    "a-" * 5_000,
    "\x00\ud7ff" * 900,
)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("field", ["", "old_string", "patchText", "file_path", "command"])
def test_hostile_text_is_read_to_its_end(text: str, field: str) -> None:
    for each in (text, text + " https://" + text, "*** Begin Patch\n-" + text):
        assert all(anchor.text for anchor in names_of(field, each))
        assert all(anchor.text for stretch in verbatim_of(Field(field, each)) for anchor in stretch)


def test_arguments_nested_without_end_are_read_as_far_as_they_go() -> None:
    (_, message) = messages(human("go"), reply(call("write", content=json.loads("[" * 90 + "1" + "]" * 90))))
    assert message.passages[0].text == ""


@given(st.text(max_size=400), st.sampled_from(["", "old_string", "content", "command", "pattern", "patchText"]))
def test_every_anchor_stands_in_its_text(text: str, field: str) -> None:
    for anchor in names_of(field, text):
        assert anchor.text in text
    for stretch in verbatim_of(Field(field, text)):
        assert all(anchor.text in text for anchor in stretch)
