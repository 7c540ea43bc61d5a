import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.admission.wording import front


def fields(*lines: str) -> dict[str, str]:
    found = front("\n".join(("---", *lines, "---", ""))).fields
    assert found is not None
    return dict(found)


@pytest.mark.parametrize(
    ("lines", "value"),
    [
        (["key: plain"], "plain"),
        (["key:close"], "close"),
        (["key: a: b: c"], "a: b: c"),
        (["key: not # a comment"], "not # a comment"),
        (['key: "quoted"'], "quoted"),
        (['key: "it\'s"'], "it's"),
        (['key: "say \\"yes\\""'], 'say "yes"'),
        (["key: 'it''s'"], "it's"),
        (['key: "'], '"'),
        (["key: goes", "  on", "\there"], "goes on here"),
        (["key: >", "  folded", "  lines"], "folded lines"),
        (["key: >-", "  folded", "", "  lines"], "folded lines"),
        (["key: |", "  kept", "", "  lines"], "kept\n\nlines"),
        (["key: |2-", "  kept"], "kept"),
        (["key: > more"], "> more"),
        (["key:", "  - a", "  - b"], "- a - b"),
        (["key: first", "key: second"], "first"),
        (["# key: no", "key: yes", "# and", "  lost"], "yes"),
        (["key:"], ""),
    ],
)
def test_values_are_read_as_they_are_written(lines: list[str], value: str) -> None:
    assert fields(*lines)["key"] == value


def test_what_is_no_field_is_passed_over() -> None:
    assert fields("just words", "- a: b", "{x: y}", ": z", "a b: c", "key: v") == {"key": "v"}


@pytest.mark.parametrize("text", ["", "text", " ---\na: b\n---\n", "----\na: b\n----\n", "\n---\na: b\n---"])
def test_without_a_fence_on_the_first_line_all_is_body(text: str) -> None:
    assert (front(text).fields, front(text).body, front(text).unended) == (None, text, False)


def test_without_an_end_all_is_body_and_that_is_said() -> None:
    assert (front("---\na: b\n").fields, front("---\na: b\n").unended) == (None, True)


def test_later_fences_belong_to_the_body() -> None:
    assert front("---\na: b\n---\none\n---\ntwo").body == "one\n---\ntwo"
    assert front("--- \na: b\n...\none").body == "one"


@given(st.text(alphabet=st.sampled_from(list("ab:-#>|'\" \t\n.")), max_size=200))
def test_the_body_is_always_an_end_of_the_text(text: str) -> None:
    found = front(f"---\n{text}")
    assert f"---\n{text}".endswith(found.body)
