import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaping import COUNT, kept, lawful, shaped, shown, text_of

from tenure.engine.clip import json_shape
from tenure.engine.clip.shape import Keep, Note, Shaped

LEFT_OUT = re.compile(r"([\d,]+) of ([\d,]+) (?:items?|members?|documents?) left out")

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=12), inner, max_size=8),
    max_leaves=30,
)
LAYOUTS = st.sampled_from([{"indent": 2}, {"indent": 1}, {}, {"separators": (",", ":")}, {"indent": "\t", "ensure_ascii": False}])


def issue(n: int, **more: object) -> dict[str, object]:
    return {"id": n, "title": f"Issue number {n}", "open": n % 2 == 0, **more}


def pretty(value: object) -> str:
    return json.dumps(value, indent=2)


def mini(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def clip(text: str, room: int = 300) -> Shaped:
    lines = text.split("\n")
    assert json_shape.fits(lines)
    return shaped(json_shape, lines, room)


def read(text: str, room: int = 300) -> str:
    return shown(json_shape, text.split("\n"), room)[1]


def whole(text: str, room: int = 300) -> str:
    lines = text.split("\n")
    return "\n".join(lines[at] for at in kept(clip(text, room)))


@pytest.mark.parametrize(
    "text",
    [
        pretty([issue(n) for n in range(40)]),
        mini([issue(n) for n in range(40)]),
        "\n".join(mini(issue(n)) for n in range(40)),
        "\n".join(pretty(issue(n)) for n in range(40)),
        "HTTP/2 200\ncontent-type: application/json\n\n" + pretty([issue(n) for n in range(40)]),
        "Output:\n" + mini({"items": [issue(n) for n in range(40)]}),
        pretty([issue(n) for n in range(40)]) + "\n\n[exit code: 0]",
        pretty([issue(n) for n in range(40)])[:-300],
        "\ufeff" + mini({"a": [float("nan"), float("inf")] * 20}),
        '{"a": 1, "a": 2, "a": 3}',
    ],
    ids=["pretty", "minified", "lines", "stream", "headers", "prelude", "tail", "breaks off", "nan", "repeated keys"],
)
def test_json_is_recognised(text: str) -> None:
    assert json_shape.fits(text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n\n",
        "  1→{\n  2→  \"a\": 1\n  3→}",
        "     1\t{\n     2\t  \"a\": 1\n     3\t}",
        "{\n  const a = 1;\n  return { a };\n}",
        "{ pkgs, lib, ... }:\n{\n  home = 1;\n}",
        "{{ template }}\n" * 20,
        "[package]\nname = \"x\"\nversion = \"1\"",
        "[INFO] started\n" + '[INFO] got {"a": 1}\n' * 30,
        '{"level":"info"}\nserver started on port 80\n' * 30,
        '2026-01-01 {"level":"info"}\n' * 30,
        "The answer is\n\n{\"a\": 1}\n\nand it means that\n" + "more prose here\n" * 30,
        "[1] 12345\n[2] 23456\n" * 10,
        "[a link](https://example.org) and prose",
        '"only a string"',
        "1\n2\n3",
        "src/a.json:1:{\nsrc/a.json:2:  \"a\": 1",
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=[
        "empty", "blank", "numbered", "cat -n", "JavaScript", "Nix", "template", "TOML", "log", "log between", "log with JSON", "prose",
        "jobs", "link", "string", "numbers", "search hits", "deep", "deep and open",
    ],
)  # fmt: skip
def test_what_is_no_json_is_left_to_others(text: str) -> None:
    lines = text.split("\n")
    assert not json_shape.fits(lines)
    assert json_shape.choose(lines, 300, COUNT) is None


def test_pretty_printed_lines_are_kept_as_they_are() -> None:
    text = pretty({"total": 1e100, "items": [issue(n, ratio=1.50) for n in range(200)], "next": None})
    lines = text.replace("1.5,", "1.50,").split("\n")
    found, text = shown(json_shape, lines, 300)
    assert kept(found)
    assert text.startswith('{\n  "total": 1e+100,\n  "items": [\n    {\n      "id": 0,')


def test_the_first_and_the_last_item_are_shown() -> None:
    assert '"id": 0,' in whole(pretty([issue(n) for n in range(200)]))
    assert '"id": 199,' in whole(pretty([issue(n) for n in range(200)]))


def test_an_item_with_other_keys_is_shown() -> None:
    items = [issue(n) for n in range(200)]
    items[77] = {"id": 77, "moved_to": "elsewhere"}
    assert '"moved_to": "elsewhere"' in whole(pretty(items))
    assert '"moved_to":"elsewhere"' in read(mini(items))


def test_an_item_with_another_type_is_shown() -> None:
    items = [issue(n) for n in range(200)]
    items[77]["title"] = ["odd"]
    assert '"odd"' in whole(pretty(items))


def test_an_extreme_number_is_shown_as_it_is_spelled() -> None:
    lines = [f'{{"name": "step {n}", "took": {n % 7}.50}}' for n in range(300)]
    lines[123] = '{"name": "step 123", "took": 9.7000E4}'
    text = read("\n".join(lines))
    assert lines[123] in text
    assert "took number 0.50 to 9.7000E4" in text


def test_an_ascending_id_is_no_outlier() -> None:
    assert '"id": 100,' not in read(pretty([issue(n) for n in range(200)]))


@pytest.mark.parametrize(
    "flaw",
    [
        '"error": {"code": "E42"}', '"error": "boom"', '"errors": ["boom"]', '"error": true', '"status": 500', '"status": "404"',
        '"status": "failed"', '"isError": true', '"is_error": true', '"success": false', '"ok": false', '"exitCode": 1',
        '"exit_code": -9', '"statusCode": 503', '"conclusion": "failure"', '"level": "ERROR"', '"severity": "critical"',
    ],
)  # fmt: skip
@pytest.mark.parametrize("layout", ["pretty", "mini", "lines"])
def test_an_item_with_an_error_is_shown(flaw: str, layout: str) -> None:
    key = json.loads("{" + flaw + "}")
    items = [issue(n) for n in range(300)]
    items[123] = issue(123) | key
    items += [issue(n) | dict.fromkeys(key) for n in range(300, 600)]
    text = "\n".join(map(mini, items)) if layout == "lines" else (pretty if layout == "pretty" else mini)(items)
    assert "Issue number 123" in read(text)


@pytest.mark.parametrize(
    "harmless",
    [
        '"error": null', '"error": ""', '"error": false', '"error": []', '"error": {}', '"error": [ ]', '"errors": 0', '"status": 200',
        '"status": "ok"', '"isError": false', '"success": true', '"exitCode": 0', '"level": "info"', '"status": 5', '"id": 500',
        '"text": "{\\"error\\": true}"', '"error": "none"', '"status": 4041',
    ],
)  # fmt: skip
def test_what_is_no_error_is_not_preferred(harmless: str) -> None:
    fixed = json.loads("{" + harmless + "}")
    items = ["  " + json.dumps(issue(n) | fixed).replace(json.dumps(fixed)[1:-1], harmless) for n in range(300)]
    assert "error" not in clip("[\n" + ",\n".join(items) + "\n]").why


def test_a_minified_document_is_shown_in_slices_that_are_said_to_be_slices() -> None:
    text = mini({"total": 300, "items": [issue(n, score=n * 1.50) for n in range(300)]})
    shaped = clip(text)
    assert all(isinstance(each, Note) for each in shaped.pieces)
    assert "slices" in shaped.why
    note = read(text)
    assert '"total":300' in note
    assert re.search(r'\.items\[0\] to \.items\[\d\] = {"id":0,"title":"Issue number 0","open":true,"score":0.0}', note)
    assert ".items: array of 300 items, each id number 0 to 299, title string of 14 to 16 characters, open boolean" in note
    assert "of 300 items left out" in note


def test_every_quoted_slice_stands_in_the_text() -> None:
    text = mini({"meta": {"x" * 30: "y" * 3_000, "n": 1.0}, "items": [[issue(n, body="z" * 900)] for n in range(30)]})
    for line in read(text, 600).split("\n"):
        slice_ = line.partition(" = ")[2].partition("… (the first")[0]
        assert slice_ in text


def test_a_long_string_is_cut_and_said_to_be() -> None:
    text = read(mini({"name": "a.txt", "content": "word " * 5_000}), 200)
    assert '"name":"a.txt"' in text
    assert re.search(r'\.content = "word word .*… \(the first [\d,]+ of 25,002 characters\)', text)


def test_an_error_deep_in_a_long_line_is_quoted() -> None:
    text = mini({"log": [{"step": n, "text": "x" * 300} for n in range(100)] + [{"step": 100, "error": "out of memory"}]})
    assert '"error":"out of memory"' in read(text, 200)


def test_members_left_out_are_named() -> None:
    text = read(pretty({"id": 1, "readme": ["line"] * 900, "history": {f"k{n}": n for n in range(900)}}), 120)
    assert '"id": 1' in text
    assert "readme" in text
    assert "history" in text


def test_a_text_that_breaks_off_says_so() -> None:
    text = pretty([issue(n) for n in range(200)])[:-1_000]
    assert read(text).endswith("The JSON breaks off here, without its end.")


def test_what_follows_the_document_is_kept() -> None:
    assert whole(pretty([issue(n) for n in range(200)]) + "\n[exit code: 3]").endswith("]\n[exit code: 3]")


def test_a_text_that_fits_is_kept_whole() -> None:
    text = pretty([issue(n) for n in range(3)])
    assert clip(text, 500).pieces == (Keep(0, text.count("\n") + 1),)


def test_keys_are_not_reordered_and_numbers_not_reformatted() -> None:
    item = '{"z":1E2,"a":-0.0,"m":12345678901234567890.10,"z":1}'
    assert item in read("[" + ",".join([item] * 400) + "]")


@pytest.mark.parametrize("room", [0, 1, 5, 15])
def test_too_small_a_room_shows_nothing(room: int) -> None:
    assert json_shape.choose(pretty([issue(n) for n in range(50)]).split("\n"), room, COUNT) is None


@pytest.mark.parametrize(
    "text",
    [
        '["' + "x" * 1_000_000 + '"]',
        "[" + "1," * 300_000 + "1]",
        "[" + ",".join(["1" * 5_000] * 20) + "]",
        "[" + "NaN," * 100_000 + "1]",
        "{" + '"a":1,' * 100_000 + '"a":2}',
        '{"a":' * 700 + "[" + "1," * 100_000 + "1]" + "}" * 700,
        json.dumps([{f"k{n}": n} for n in range(20_000)]),
        json.dumps([{"error": n + 1} for n in range(20_000)]),
        "[\n" + "1,\n" * 100_000 + "1]",
        '["\x00\ud800", ' + '"\\ud800",' * 50_000 + "1]",
        '["' + "\\" * 500_000,
        "{" + '"' * 500_000,
        "[[" * 400 + "]]" * 400 + "," + "x" * 1_000,
    ],
    ids=[
        "string", "numbers", "digits", "nan", "repeated", "chain", "unlike", "errors", "lines", "surrogates", "slashes", "quotes", "broken",
    ],
)  # fmt: skip
def test_hostile_text_is_harmless(text: str) -> None:
    lines = text.split("\n")
    json_shape.fits(lines)
    found = json_shape.choose(lines, 400, COUNT)
    if found is not None:
        assert COUNT(text_of(found, lines)) <= 440


def _lawful(text: str, room: int) -> None:
    lines = text.split("\n")
    found = lawful(json_shape, lines, room)
    assert found == lawful(json_shape, lines, room)
    for left, total in LEFT_OUT.findall(text_of(found, lines) if found else ""):
        assert 0 < int(left.replace(",", "")) <= int(total.replace(",", ""))


@given(
    value=st.lists(VALUES, max_size=20) | st.dictionaries(st.text(max_size=8), VALUES), layout=LAYOUTS, room=st.integers(0, 400)
)
@settings(max_examples=60)
def test_documents_of_any_form_are_shown_within_the_room(value: object, layout: dict[str, object], room: int) -> None:
    text = json.dumps(value, **layout)
    assert json_shape.fits(text.split("\n"))
    _lawful(text, room)


@given(value=st.lists(VALUES, max_size=20), layout=LAYOUTS, room=st.integers(0, 200), data=st.data())
@settings(max_examples=60)
def test_documents_that_break_off_or_go_wrong_are_shown_within_the_room(
    value: object, layout: dict[str, object], room: int, data: st.DataObject
) -> None:
    text = json.dumps(value, **layout)
    at = data.draw(st.integers(0, len(text)))
    _lawful(text[:at], room)
    _lawful(text[:at] + data.draw(st.text(max_size=5)) + text[at:], room)


@given(text=st.text(alphabet='{}[]",:\\ \n01aeE-.é\x00\ud800', max_size=200), room=st.integers(0, 100))
@settings(max_examples=100)
def test_any_text_is_harmless(text: str, room: int) -> None:
    _lawful(text, room)


@given(size=st.integers(20, 200), flawed=st.lists(st.integers(0, 199), max_size=5), layout=LAYOUTS, room=st.integers(500, 900))
def test_every_item_with_an_error_is_shown_while_room_lasts(
    size: int, flawed: list[int], layout: dict[str, object], room: int
) -> None:
    items = [issue(n) for n in range(size)]
    wrong = {n for n in flawed if n < size}
    for n in wrong:
        items[n]["error"] = {"code": f"E{n}!"}
    text = read(json.dumps(items, **layout), room)
    assert all(f'"E{n}!"' in text for n in wrong)


@given(size=st.integers(30, 400), room=st.integers(200, 500))
def test_the_counts_of_what_is_left_out_add_up(size: int, room: int) -> None:
    for text in (
        "[\n" + ",\n".join(mini(issue(n)) for n in range(size)) + "\n]",
        mini([issue(n) for n in range(size)]),
        "\n".join(mini(issue(n)) for n in range(size)),
    ):
        output = read(text, room)
        left = [(int(a.replace(",", "")), int(b.replace(",", ""))) for a, b in LEFT_OUT.findall(output)]
        assert all(total == size for _, total in left)
        assert sum(n for n, _ in left) + output.count('"title":') == size


def test_of_items_with_thousands_of_keys_the_commonest_are_described() -> None:
    text = "[" + ",\n".join(f'{{"own{n}": 1, "shared": "x"}}' for n in range(2_000)) + "]"
    assert "shared string of 1 characters" in read(text)
    assert "1,985 more keys" in read(text, 2_000)


def test_items_that_share_no_key_are_said_to() -> None:
    text = "[" + ",\n".join(f'{{"own{n}": 1}}' for n in range(2_000)) + "]"
    assert "array of 2,000 items, each with keys of its own, 2,000 in all" in read(text)


def test_every_error_among_thousands_is_counted() -> None:
    text = "[" + ",\n".join(f'{{"id": {n}, "error": "bad {n}"}}' for n in range(3_000)) + "]"
    note = read(text)
    left = [
        (int(a.replace(",", "")), int(b.replace(",", "")))
        for a, b in re.findall(r"([\d,]+) of 3,000 items left out, ([\d,]+) of", note)
    ]
    assert left
    assert all(items == errors for items, errors in left)


def package(n: int) -> dict[str, object]:
    return {"metadata": {"name": f"package-{n}", "version": f"{n}.1", "description": "words " * 300}, "installer": "pip"}


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_large_objects_names_all_of_them_first(indent: int | None) -> None:  # pip inspect
    text = json.dumps({"version": "1", "installed": [package(n) for n in range(60)]}, indent=indent)
    note = read(text, 1_200)
    assert f"names of 60 items: {', '.join(f'package-{n} {n}.1' for n in range(60))}" in note


def test_names_that_do_not_fit_are_counted() -> None:
    note = read(json.dumps([{"name": f"thing-{n}", "body": "x y " * 200} for n in range(5_000)]), 600)
    named = re.search(r"all, names of 5,000 items: (.*), and ([\d,]+) more$", note, re.MULTILINE)
    assert named is not None
    assert len(named[1].split(", ")) + int(named[2].replace(",", "")) == 5_000


def test_members_of_an_object_are_named_with_their_versions() -> None:  # npm ls --json
    pinned = {f"pkg-{n}": {"version": f"{n}.0.1", "resolved": "https://registry.example.org/" + "x" * 300} for n in range(40)}
    assert "names of 40 members: pkg-0 0.0.1, pkg-1 1.0.1" in read(json.dumps({"dependencies": pinned}, indent=1), 1_200)


def test_small_items_are_shown_rather_than_named() -> None:
    assert "names of" not in read(json.dumps([{"id": n, "name": f"n{n}"} for n in range(900)]), 600)
