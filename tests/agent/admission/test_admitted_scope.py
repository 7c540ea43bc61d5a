import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import Locked, Node, Plant, in_memory

from tenure.agent.admission.instructions import SCOPE_CHARS, scope_section
from tenure.agent.admission.place import Closed

API = "/home/ada/api"


def framed(body: str) -> str:
    return f'# This folder\n\n<scope from="{API}/SCOPE.md">\n{body}\n</scope>'


@pytest.mark.parametrize(
    ("page", "body"),
    [
        ("---\nname: api\n---\n\nThe API.\n\n---\nStill text.\n", "The API.\n\n---\nStill text."),
        ("The API.\n", "The API."),
        ("---\nname: x\nThe API.", "---\nname: x\nThe API."),
    ],
    ids=["frontmatter is removed", "none", "one that has no end is body"],
)
def test_the_body_of_a_folders_page_is_admitted(page: str, body: str, plant: Plant) -> None:
    assert scope_section(plant({f"{API}/SCOPE.md": page})) == framed(body)


@pytest.mark.parametrize("page", [None, " \n", "---\nname: x\n---\n \n"], ids=["missing", "blank", "nothing but frontmatter"])
def test_a_page_without_words_is_none(page: str | None, plant: Plant) -> None:
    assert scope_section(plant({} if page is None else {f"{API}/SCOPE.md": page})) == ""


@pytest.mark.parametrize(("node", "why"), [(Locked(), "Permission denied"), (b"\0\1", "it is not text")])
def test_a_page_that_cannot_be_read_says_why(node: Node, why: str) -> None:
    assert scope_section(in_memory({f"{API}/SCOPE.md": node})) == Closed(why=why)


def test_a_page_holds_for_exactly_its_folder(plant: Plant) -> None:
    files = {"/home/ada/SCOPE.md": "home", f"{API}/src/SCOPE.md": "src"}
    assert scope_section(plant(files)) == ""
    assert "\nsrc\n" in str(scope_section(in_memory(files, folder=f"{API}/src")))


def test_a_long_page_is_cut_and_says_so() -> None:
    section = str(scope_section(in_memory({f"{API}/SCOPE.md": "a rule\n" * 9_000})))
    assert SCOPE_CHARS - 10 < len(section) <= SCOPE_CHARS + 200
    assert section.endswith("characters; read SCOPE.md for the rest]\n</scope>")


@given(st.binary(max_size=300))
def test_a_page_of_any_bytes_never_raises(data: bytes) -> None:
    place = in_memory({f"{API}/SCOPE.md": data})
    assert scope_section(place) == scope_section(place)
