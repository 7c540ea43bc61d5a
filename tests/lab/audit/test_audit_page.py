"""The page of an audit: nothing that a session says can act in it, it asks for nothing, and it tells what was counted."""

import json
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markupsafe import Markup
from page_reports import EDITS, READ, audit, need, removal, run, series

from tenure.engine.record.visible import visible as clean
from tenure.lab.audit.island import Texts, detail_for
from tenure.lab.audit.page import page, verdict
from tenure.lab.audit.report import Audit, Harm, UnreadSession
from tenure.lab.audit.text import change, line, percent, slug, tokens, usd
from tenure.lab.audit.text import shown as put_in

LINES = frozenset("title p h1 h2 h3 h4 tr li nav svg caption div summary button".split())
VOID = frozenset({"meta", "input", "br"})
HOSTILE = (
    "</script><script>alert(1)</script>",
    "</style><img src=https://example.org/x onerror=alert(1)>",
    "\" onmouseover='alert(1)' x=\"",
    "<!--<script>",
    "]]>&lt;b&gt;&amp;",
    "a\x00b\x1b[2J\x1b]8;;https://example.org\x07c",
    "\u202egnp.exe\u2066\u200f",
    "half \ud83d of a pair",
    "\u2028\u2029\ufeff\uffff",
    "javascript:alert(1)",
    "../../etc/passwd\nX: y\r\n",
)
TEXTS = st.sampled_from(HOSTILE) | st.text(min_size=1, max_size=40)


class Read(HTMLParser):
    """A page as a browser's parser takes it in."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, tuple[str, ...]]] = []  # of titles apart, which only long texts have
        self.attributes: list[tuple[str, str, str]] = []
        self.within: dict[str, list[str]] = {}
        self.said: list[str] = []
        self.lines = ""  # what is said, a line for each row, paragraph or heading
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs if name != "title")))
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)
            self.within.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        if tag in LINES and self.lines and not self.lines.endswith("\n"):
            self.lines = self.lines.rstrip(" |") + "\n"
        self.tags.append((f"/{tag}", ()))

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] in ("script", "style"):
            self.within[self._open[-1]][-1] += data
        elif data.strip():
            self.said.append(data)
            self.lines += data + (" | " if self._open[-1] in ("td", "th", "span", "a", "text", "b", "dt", "small") else " ")

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


def data_of(shown: str) -> list[dict]:
    return json.loads(Read(shown).within["script"][0])


@cache
def plain_tags(one: int, other: int | None = None, *, same: bool = False) -> list[tuple[str, tuple[str, ...]]]:
    """The tags of a page on which every text is so many harmless letters."""
    if other is None:
        return Read(page([audit("x" * one)])).tags
    second = ("x" if same else "y") * other
    return Read(page([audit("x" * one), audit(second)], [UnreadSession(path="x" * one, why=second)])).tags


@given(TEXTS)
@example(HOSTILE[0])
@settings(max_examples=15)
def test_no_text_leaves_its_place_or_acts_on_a_screen(text: str) -> None:
    shown = page([audit(text)])
    assert Read(shown).tags == plain_tags(len(text))
    assert shown.encode().decode() == shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]", shown)


@given(TEXTS, TEXTS)
@settings(max_examples=6)
def test_no_text_leaves_its_place_among_several_sessions(one: str, other: str) -> None:
    shown = page([audit(one), audit(other)], [UnreadSession(path=one, why=other)])
    assert Read(shown).tags == plain_tags(len(one), len(other), same=one == other)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_data_cannot_end_its_element_and_says_what_the_session_said(text: str) -> None:
    shown = page([audit(text)])
    assert Read(shown).tags == plain_tags(len(text))
    start = shown.index('id="data">') + len('id="data">')
    assert not set("<>&") & set(shown[start : shown.index("</script>", start)])
    session = data_of(shown)[0]
    assert f"replace {clean(text)} now" in session["texts"]
    assert session["runs"][1]["name"] == clean(f"policy {text}")


def test_controls_are_shown_by_their_pictures() -> None:
    assert clean("a\x00\x1b[1m\x7f\u202e\ud800\tb\n") == "a␀␛[1m␡<U+202E><U+D800>\tb\n"


def test_a_value_is_put_in_as_text_unless_it_is_markup() -> None:
    assert [put_in(value) for value in ("\u202e<b>", '\x1b"&', 7, None, Markup("<i>"))] == [
        "&lt;U+202E&gt;&lt;b&gt;",
        "␛&quot;&amp;",
        "7",
        "",
        "<i>",
    ]


@given(st.text())
def test_clean_text_is_clean_already(text: str) -> None:
    assert clean(clean(text)) == clean(text)


def test_a_line_of_megabytes_is_cut_and_its_length_is_said() -> None:
    huge = "a<" * 5_000_000
    shown = page([audit(huge)])
    assert len(shown) < 300_000
    assert "(10,000,000 characters)" in shown


def test_nothing_is_asked_for_from_anywhere() -> None:
    read = Read(page([audit(), audit()]))
    links = [value for name in ("href", "src", "srcset", "action", "xlink:href", "data", "poster") for value in read.values(name)]
    assert links
    assert all(link.startswith("#") for link in links)
    assert not [name for _, name, _ in read.attributes if name.startswith("on") or name == "style"]
    assert not re.search(r"url\(|@import|@font-face", read.within["style"][0])
    called = r"fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\b|innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\("
    assert not re.search(called, read.within["script"][1])
    assert "</" not in read.within["script"][1]


def test_the_policy_allows_this_style_and_this_script_and_nothing_else() -> None:
    read = Read(page([audit()]))
    allowed = next(value for value in read.values("content") if "default-src" in value)
    hashes = {name: b64encode(sha256(read.within[name][-1].encode()).digest()).decode() for name in ("style", "script")}
    assert allowed == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; base-uri 'none'; form-action 'none'"
    )


def test_the_same_audits_give_the_same_bytes() -> None:
    report = audit("src/a.py")
    again = msgspec.json.decode(msgspec.json.encode(report), type=Audit)
    assert page([report]) == page([again])


@pytest.mark.parametrize("sessions", [1, 2, 40])
def test_every_link_leads_somewhere_and_every_name_is_given_once(sessions: int) -> None:
    read = Read(page([audit("/logs/same.jsonl")] * sessions))
    names = read.values("id")
    assert len(names) == len(set(names))
    assert {value[1:] for value in read.values("href")} <= set(names)


def test_needs_and_commits_have_links_that_a_script_knows() -> None:
    drawn = series((1, 1), (2, 2))
    needs = need("a", 1), need("b", 1), need("c", 2)
    shown = page([audit("/s.jsonl", run("none", drawn), run("cwl+clip", drawn, *needs, commits=(removal(7, 1, 5),)))])
    assert {"s/cwl-clip/1.1", "s/cwl-clip/1.2", "s/cwl-clip/2.1", "s/cwl-clip/commit-7"} <= set(Read(shown).values("id"))
    session = data_of(shown)[0]
    assert session["runs"][1]["id"] == "cwl-clip"
    assert [row[0] for row in session["runs"][1]["needs"]] == ["1.1", "1.2", "2.1"]
    assert [row[0] for row in session["runs"][1]["commits"]] == [7]


@given(st.lists(st.text(max_size=80), max_size=8))
def test_names_in_links_are_plain_and_different(texts: list[str]) -> None:
    taken: set[str] = set()
    names = [slug(text, taken) for text in texts]
    assert len({name.lower() for name in names}) == len(texts)
    assert all(re.fullmatch(r"[A-Za-z0-9._-]{1,70}", name) for name in names)


def test_an_excerpt_points_at_what_was_needed_in_the_units_of_a_script() -> None:
    texts = Texts(10_000)
    found = texts.excerpt("🙂" * 500 + "\x1b[1mneedle🙂" + "after" * 200, "needle🙂")
    units = texts.all[found.text].encode("utf-16-le")
    assert units[2 * found.start : 2 * (found.start + found.length)].decode("utf-16-le") == "needle🙂"
    assert (found.before, found.after) == (504 - 360, 1_000 - 360)


def test_an_excerpt_that_holds_only_the_start_of_what_was_needed_points_at_that() -> None:
    texts = Texts(10_000)
    wanted = "".join(f"line {n}\n" for n in range(500))
    found = texts.excerpt(f"head {wanted[:600]}", wanted)
    assert texts.all[found.text][found.start :].startswith("line 0\nline 1")
    assert found.length >= 120


def test_an_excerpt_without_what_was_needed_is_the_start() -> None:
    texts = Texts(10_000)
    found = texts.excerpt("something else", "needle")
    assert (texts.all[found.text], found.length) == ("something else", 0)


def test_where_there_is_no_room_for_all_excerpts_the_lost_come_first() -> None:
    drawn = series((1, 1))
    needs = [
        need("v", n, verdict="visible", step="a" * 900 + f"{n} v" + "a" * 900, held="b" * 900 + f"{n} v" + "b" * 900)
        for n in range(900)
    ] + [need("lost", 901)]
    rows = data_of(page([audit("s", run("none", drawn), run("cwl", drawn, *needs))]))[0]["runs"][1]["needs"]
    told = {row[0]: row[18][0] >= 0 for row in rows}
    assert told["901.1"]
    assert not all(told.values())


def test_needs_that_the_page_leaves_out_are_counted() -> None:
    drawn = series((1, 1))
    needs = [need("visible", n, verdict="visible") for n in range(500)] + [need("lost", 501)]
    known = data_of(page([audit("s", run("none", drawn), run("cwl", drawn, *needs))]))[0]["runs"][1]
    assert len(known["needs"]) + known["more_needs"] == 501
    assert known["needs"][-1][0] == "501.1"


def heights(shown: str, class_: str) -> list[int]:
    """How high a band's upper edge stands at each of its steps, in provider tokens, in the drawing of the second run."""
    drawing = shown.split('class="drawing"')[2]
    top = int(re.search(r'data-own="(\d+)"', drawing)[1])
    found = re.search(rf'<path class="{class_}" d="M\d+ (\d+)([^"]+)z"', drawing)
    ground, at, reached = int(found[1]), int(found[1]), []
    for step in re.findall(r"v(-?\d+)", found[2]):
        at += int(step)
        reached.append(round((ground - at) / ground * top))
    return reached


def test_bands_stand_as_high_as_their_tokens_and_those_below() -> None:
    report = audit(
        "s", run("none", series((100, 20))), run("cwl", series((100, 20), (150, 30), (50, 20))), drawn=series((100, 20))
    )
    shown = page(
        [msgspec.structs.replace(report, window=msgspec.structs.replace(report.window, head=report.window.by_kind.rows[0]))]
    )
    head = 120 * 2
    assert heights(shown, "k-head") == pytest.approx([head], abs=1)
    assert heights(shown, "k-read") == pytest.approx([head + 200, head + 300, head + 100], abs=1)
    assert heights(shown, "k-write") == pytest.approx([head + 240, head + 360, head + 140], abs=1)


def test_a_drawing_is_there_without_a_script_and_says_its_kinds_in_words() -> None:
    said = Read(
        page([audit("s", run("none", series(*[(100, 20)] * 60, kinds=(READ, EDITS))), drawn=series(*[(100, 20)] * 60))])
    ).said
    assert "reads and command output" in said
    assert "edits and writes" in said


def test_a_page_of_many_sessions_tells_less_of_each_and_keeps_the_largest_requests() -> None:
    few, many = detail_for(1, 6), detail_for(60, 6)
    assert few.points == 400
    assert many.points == 100
    steps = [(10, 1)] * 300 + [(999, 1)] + [(10, 1)] * 99
    drawn = series(*steps, ratio=1.0)
    known = data_of(page([audit("s", run("none", drawn), drawn=drawn)] * 60))[0]
    assert len(known["runs"][0]["calls"]) == 100
    assert max(map(sum, known["runs"][0]["tokens"])) == 999 + 1 + 30


def test_policies_are_compared_over_the_sessions_that_have_them() -> None:
    drawn = series((1, 1))
    both = audit("a", run("none", drawn, usd=10.0), run("cwl", drawn, usd=5.0))
    alone = audit("b", run("none", drawn, usd=90.0))
    said = Read(page([both, alone])).said
    assert "−50\u202f%" in said
    assert "$100.00" in said


@pytest.mark.parametrize(
    ("usd_", "needs", "ending"),
    [
        (
            0.75,
            (),
            "The cheapest policy tried, cwl under a ceiling of 400, would have saved 25\u202f% and lost nothing that later steps used.",
        ),
        (
            0.75,
            (need("a"), need("b", verdict="routed")),
            "would have saved 25\u202f%; of the strings that later steps used, 1 is lost and 1 is one recall away.",
        ),
        (1.5, (), "No policy tried would have cost less."),
    ],
)
def test_the_verdict_says_what_was_paid_and_what_the_cheapest_policy_would_have_saved_and_missed(
    usd_: float, needs: tuple[Harm, ...], ending: str
) -> None:
    drawn = series((1, 1))
    report = audit("s", run("none", drawn), run("cwl", drawn, *needs, usd=usd_), run("tiered", drawn, usd=2.0))
    assert verdict([report]).startswith("This session cost $1.00, simulated. 9.1\u202f% of the tokens sent")
    assert verdict([report]).endswith(ending)


def test_there_is_no_verdict_on_nothing() -> None:
    assert verdict([]) == ""


def test_sessions_that_were_not_read_are_named_with_their_reasons() -> None:
    said = " ".join(Read(page([audit()], [UnreadSession(path="gone.jsonl", why="no such file")])).said)
    assert "1 session not read" in said
    assert "gone.jsonl : no such file" in said


def test_a_page_without_sessions_says_so() -> None:
    assert "Audit of 0 sessions" in Read(page([])).said


def test_a_session_in_which_nothing_happened_has_a_page() -> None:
    empty = audit("s", run("none", series()), drawn=series())
    assert Read(page([msgspec.structs.replace(empty, session=msgspec.structs.replace(empty.session, calls=0))])).tags


def test_what_the_page_says_reads_well(golden: Callable[[str, str], None]) -> None:
    drawn = series((300, 40), (420, 60), (100, 20), (380, 40))
    taken = removal(0, 2, 380, why="24 tokens over the ceiling of 400"), removal(1, 3, 20, moment="recorded", why="compaction")
    report = audit(
        "src/parser.py",
        run("none", series((300, 40), (420, 60), (500, 80), (900, 90))),
        run("cwl", drawn, need("def parse(text)"), need("src/a.py", 2, verdict="routed"), commits=taken, left=380, usd=0.6),
        drawn=drawn,
    )
    session = msgspec.structs.replace(
        report.session,
        path="logs/parser.jsonl",
        format="claude-code",
        model="claude-sonnet-4-5",
        sha256="ab" * 32,
        started="2026-02-01T10:00:00Z",
        ended="2026-02-01T12:30:00Z",
    )
    golden("audit-page.txt", Read(page([msgspec.structs.replace(report, session=session)])).lines)


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0"),
        (9_812, "9,812"),
        (41_230, "41.2k"),
        (99_960, "100k"),
        (999_499, "999k"),
        (999_600, "1.00M"),
        (1_234_567, "1.23M"),
        (-12_000, "−12.0k"),
    ],
)
def test_tokens_are_told_in_three_digits(count: int, shown: str) -> None:
    assert tokens(count) == shown


@pytest.mark.parametrize(
    ("amount", "shown"), [(0, "$0.00"), (4.114, "$4.11"), (0.0912, "$0.091"), (0.00321, "$0.0032"), (-2.5, "−$2.50")]
)
def test_small_sums_keep_the_digits_that_count(amount: float, shown: str) -> None:
    assert usd(amount, assumed=False) == shown
    assert usd(amount, assumed=True) in (f"~{shown}", f"~{shown}".replace("~\u2212", "~\u2212"))


def test_shares_and_changes_are_told_in_percent() -> None:
    assert [percent(share).replace("\u202f", " ") for share in (0, 0.0004, 0.013, 0.5)] == ["0 %", "< 0.1 %", "1.3 %", "50 %"]
    assert [change(value, 100).replace("\u202f", " ") for value in (62, 104.2, 100.001)] == ["−38 %", "+4.2 %", "±0 %"]
    assert change(5, 0) == ""


def test_a_long_text_in_a_line_says_how_long_it_is() -> None:
    assert line("ab\ncd", 10) == "ab⏎cd"
    assert line("a" * 1_500, 10) == f"{'a' * 10}… (1,500 characters)"
