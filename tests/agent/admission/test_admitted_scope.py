from pathlib import PurePath

from hypothesis import given
from hypothesis import strategies as st
from planted import Link, Locked, MemoryTree, Plant, in_memory

from tenure.agent.admission.place import Closed, Folder, Place
from tenure.agent.admission.scope import BODY_CHARS, DEPTH, FOLDERS, Scope, scope_of, scope_section, scopes_below

API = "/home/ada/api"


def body(place: Place) -> str:
    found = scope_of(place)
    assert not isinstance(found, Closed)
    return found.body if found else ""


def page(name: str, text: str = "Text.") -> str:
    return f"---\nname: {name}\ndescription: about {name}\n---\n{text}"


def names(place: Place) -> list[str]:
    return [scope.name for scope in scopes_below(place).found]


def test_the_body_of_a_folders_page_is_admitted_without_its_frontmatter(plant: Plant) -> None:
    place = plant({f"{API}/SCOPE.md": page("api", "\nThe API.\n\n---\nStill text.\n")})
    assert body(place) == "The API.\n\n---\nStill text."
    assert scope_section(scope_of_(place)) == (
        '# This folder\n\n<scope from="/home/ada/api/SCOPE.md">\nThe API.\n\n---\nStill text.\n</scope>'
    )


def scope_of_(place: Place) -> Scope | None:
    found = scope_of(place)
    assert not isinstance(found, Closed)
    return found


def test_a_page_without_frontmatter_or_with_one_that_has_no_end_is_all_body(plant: Plant) -> None:
    assert body(plant({f"{API}/SCOPE.md": "The API.\n"})) == "The API."
    assert body(in_memory({f"{API}/SCOPE.md": "---\nname: x\nThe API."})) == "---\nname: x\nThe API."


def test_a_blank_missing_or_closed_page_is_none(plant: Plant) -> None:
    assert body(plant({})) == ""
    assert body(in_memory({f"{API}/SCOPE.md": " \n"})) == ""
    assert body(in_memory({f"{API}/SCOPE.md": "---\nname: x\n---\n \n"})) == ""
    assert scope_section(None) == ""
    assert scope_of(in_memory({f"{API}/SCOPE.md": Locked()})) == Closed(why="Permission denied")
    assert scope_of(in_memory({f"{API}/SCOPE.md": b"\0\1"})) == Closed(why="it is not text")


def test_a_page_holds_for_exactly_its_folder(plant: Plant) -> None:
    files = {"/home/ada/SCOPE.md": "home", f"{API}/src/SCOPE.md": "src"}
    assert body(plant(files)) == ""
    assert body(in_memory(files, folder=f"{API}/src")) == "src"


def test_a_long_page_is_cut_and_says_so() -> None:
    found = scope_of_(in_memory({f"{API}/SCOPE.md": "a rule\n" * 9_000}))
    assert found is not None
    assert len(found.body) <= BODY_CHARS
    assert scope_section(found).endswith("characters; read SCOPE.md for the rest]\n</scope>")


def test_pages_below_are_found_by_name_each_within_the_nearest_above(plant: Plant) -> None:
    place = plant(
        {
            f"{API}/SCOPE.md": "root, without a name",
            f"{API}/web/SCOPE.md": page("web"),
            f"{API}/web/src/forms/SCOPE.md": page("forms"),
            f"{API}/core/SCOPE.md": page("core"),
            f"{API}/other/SCOPE.md": "no name, so nobody can be sent there by it",
        }
    )
    found = scopes_below(place).found
    within = {scope.name: scope.within and scope.within.as_posix() for scope in found}
    assert within == {"core": API, "forms": f"{API}/web", "web": API}
    assert [scope.name for scope in found] == sorted(within)


def test_of_two_pages_of_one_name_the_higher_counts(plant: Plant) -> None:
    place = plant({f"{API}/z/SCOPE.md": page("web"), f"{API}/a/b/SCOPE.md": page("web")})
    assert [scope.folder.as_posix() for scope in scopes_below(place).found] == [f"{API}/z"]


def test_hidden_folders_node_modules_and_links_are_not_entered(plant: Plant) -> None:
    place = plant(
        {
            f"{API}/.venv/SCOPE.md": page("venv"),
            f"{API}/a/node_modules/x/SCOPE.md": page("module"),
            f"{API}/loop": Link(API),
            f"{API}/out": Link("/home/ada/other"),
            "/home/ada/other/SCOPE.md": page("other"),
            f"{API}/own/SCOPE.md": page("own"),
        }
    )
    assert names(place) == ["own"]


def test_the_walk_ends_at_a_depth(plant: Plant) -> None:
    files = {f"{API}{'/d' * n}/SCOPE.md": page(f"s{n}") for n in range(1, DEPTH + 3)}
    assert names(plant(files)) == sorted(f"s{n}" for n in range(1, DEPTH + 1))


def test_the_walk_ends_after_so_many_folders_with_what_it_has() -> None:
    class Endless(MemoryTree):
        """A disk of which every folder holds two hundred more."""

        def folder(self, path: PurePath, most: int, /) -> Folder:
            self.asked += 1
            return Folder(files=("SCOPE.md",), folders=tuple(f"f{n:03}" for n in range(200)))

    tree = Endless({f"{API}/f007/SCOPE.md": page("seven")})
    found = scopes_below(in_memory({}, tree=tree))
    assert [scope.name for scope in found.found] == ["seven"]
    assert found.notices == (f"scopes: only {FOLDERS:,} folders were looked into",)
    assert tree.asked <= 2 * FOLDERS


def test_a_page_below_that_cannot_be_read_is_a_notice() -> None:
    found = scopes_below(in_memory({f"{API}/a/SCOPE.md": Locked(), f"{API}/b/SCOPE.md": page("b")}))
    assert [scope.name for scope in found.found] == ["b"]
    assert found.notices == (f"{API}/a/SCOPE.md is left out: Permission denied",)


@given(st.binary(max_size=300))
def test_a_page_of_any_bytes_never_raises(data: bytes) -> None:
    place = in_memory({f"{API}/SCOPE.md": data, f"{API}/a/SCOPE.md": b"---\nname: a\ndescription: " + data})
    found = scope_of(place)
    assert found == scope_of(place)
    assert scopes_below(place) == scopes_below(place)
