import re
from html import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shaping import COUNT

from tenure.engine.clip import html
from tenure.engine.clip.shape import Note, Shaped

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="description" content="How to boil an egg.">
  <title>Eggs &amp; more</title>
  <link rel="stylesheet" href="style.css">
  <style>p { color: red } /* not <b>text</b> */</style>
  <script>if (a < b) { document.write("<p>not text</p>") }</script>
</head>
<body class="page">
<nav><ul><li><a href="/">Home</a></li><li><a href="/about">About us</a></li></ul></nav>
<main>
<h1>Boiling <em>an</em> egg</h1>
<p class="lead">Eggs are <b>boiled</b> in
   <a href="https://example.org/water?a=1&amp;b=2">hot water</a>, see <a href="#top">above</a>.</p>
<h2>Times</h2>
<ul><li>soft: 4 minutes</li><li>hard: 9 minutes<ul><li>at sea level</li></ul></li></ul>
<table><tr><th>Size</th><th>Minutes</th></tr><tr><td>S</td><td>3 | 4</td></tr></table>
<pre><code>def boil(egg):
    if egg.raw &lt; 1 and egg:
        return  "done"
</code></pre>
<aside>Mind the steam.</aside>
</main>
<footer>Copyright <a href="/imprint">Imprint</a></footer>
</body></html>"""


def clip(text: str, room: int = 1_000) -> Shaped | None:
    return html.choose(text.split("\n"), room, COUNT)


def read(text: str, room: int = 1_000) -> str:
    shaped = clip(text, room)
    assert shaped is not None
    (note,) = shaped.pieces
    assert isinstance(note, Note)
    return note.text


def page(body: str) -> str:
    return f"<!doctype html><html><body><h1>The page that is being tested here</h1><p>It has {'some ' * 20}words.</p>{body}"


@pytest.mark.parametrize(
    "text",
    [
        PAGE,
        "\n\n" + PAGE.lower(),
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n" + PAGE,
        "<?xml version='1.0'?>\n<!-- a comment -->\n" + PAGE,
        "<html><body>old",
        "<?xml version='1.0'?><rss version='2.0'><channel>",
        "<feed xmlns='http://www.w3.org/2005/Atom'>",
    ],
    ids=["page", "lower case", "headers", "xhtml", "old", "rss", "atom"],
)
def test_a_page_is_recognised(text: str) -> None:
    assert html.fits(text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n".join(f"{n:6}→{line}" for n, line in enumerate(PAGE.split("\n"), 1)),
        "\n".join(f"{n:6}\t{line}" for n, line in enumerate(PAGE.split("\n"), 1)),
        "\n".join(f"index.html:{n}:{line}" for n, line in enumerate(PAGE.split("\n"), 1)),
        "<!doctype html>\n<html>{% block a %}{{ title }}{% endblock %}</html>",
        "<html>\n<?php echo 1 ?>\n<?php echo 2 ?><?= $x ?>",
        "<path>/a/b.html</path>\n<type>file</type>\n<content>\n" + PAGE,
        "<persisted-output>\nOutput too large\n" + PAGE,
        "<svg xmlns='http://www.w3.org/2000/svg'><path d='M0'/></svg>",
        "<project><modelVersion>4.0.0</modelVersion></project>",
        "<template><div>{{ a }}</div></template>",
        "I fetched this:\n" + PAGE,
        "diff --git a/a.html b/a.html\n+<html>",
        "<div>only a fragment</div>",
    ],
    ids=[
        "empty", "numbered", "cat -n", "search hits", "template", "PHP", "file read", "harness", "svg", "xml", "vue", "prose", "diff",
        "fragment",
    ],
)  # fmt: skip
def test_what_is_no_page_is_left_to_others(text: str) -> None:
    assert not html.fits(text.split("\n"))


def test_a_page_is_shown_as_its_text() -> None:
    assert (
        read(PAGE)
        == """(text of a page of 1,016 characters; dropped: 1 style, 1 script, navigation with 3 links)
How to boil an egg.
Title: Eggs & more
# Boiling an egg
Eggs are boiled in [hot water](https://example.org/water?a=1&b=2), see above.
## Times
- soft: 4 minutes
- hard: 9 minutes
  - at sea level
| Size | Minutes |
| S | 3 \\| 4 |
```
def boil(egg):
    if egg.raw < 1 and egg:
        return  "done"
```
Mind the steam."""
    )


def test_the_marker_says_that_it_is_the_text_of_the_page() -> None:
    shaped = clip(PAGE)
    assert shaped is not None
    assert shaped.why == "the page's text, without markup and navigation"


def test_what_does_not_fit_is_counted() -> None:
    text = page("".join(f"<h2>Part {n}</h2><p>{f'word{n} ' * 30}</p><p>more {n} {'x ' * 60}</p>" for n in range(40)))
    shown = read(text, 400)
    assert "# The page that is being tested here" in shown
    assert "## Part 39" not in shown or "## Part 1" in shown
    assert re.search(r"… .*\d+ paragraphs?.* left out \([\d,]+ characters\)", shown)


def test_title_and_headings_come_before_paragraphs() -> None:
    text = page("".join(f"<h2>Part {n}</h2><p>{f'word{n} ' * 200}</p>" for n in range(10)))
    assert all(f"## Part {n}" in read(text, 1_200) for n in range(10))


def test_a_paragraph_larger_than_the_room_is_cut_and_said_to_be() -> None:
    assert re.search(
        r"… \(the first \d+ of [\d,]+ characters\)", read(f"<html><title>Words</title><p>{'word ' * 9_000}</p>", 200)
    )


def test_an_error_page_keeps_its_words() -> None:
    text = "<html><head><title>502 Bad Gateway</title></head><body><center><h1>502 Bad Gateway</h1></center><hr>"
    assert "# 502 Bad Gateway" in read(
        text + f"<center>nginx</center><!-- {'padding ' * 500} --><p>{'try again later ' * 9}</p>", 100
    )


def test_a_page_that_is_all_navigation_keeps_it() -> None:
    links = "".join(f"<li><a href='/{n}.html'>Chapter number {n}</a></li>" for n in range(30))
    assert "[Chapter number 7](/7.html)" in read(f"<html><title>Contents</title><body><nav><ul>{links}</ul></nav>")


def test_a_shell_for_a_script_has_no_text() -> None:
    assert (
        clip("<!doctype html><html><head><title>App</title></head><body><div id=root></div><script>x</script></body></html>")
        is None
    )


def test_a_feed_lists_its_entries() -> None:
    items = "".join(
        f"<item><title>News {n}</title><link>https://example.org/{n}</link><description><![CDATA[<p>It is <b>{n}</b> o'clock.</p>]]>"
        "</description></item>"
        for n in range(5)
    )
    shown = read(f"<?xml version='1.0'?><rss><channel><title>Clock</title>{items}</channel></rss>")
    assert "Title: Clock" in shown
    assert "## News 3" in shown
    assert "https://example.org/3" in shown
    assert "It is 3 o'clock." in shown


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("<p>one<p>two <b>bold</p></b> three", "two bold"),
        ("<ul><li>first<li>second</ul>", "- first\n- second"),
        ("<table><tr><td>a<td>b<tr><td>c<td>d", "| a | b |\n| c | d |"),
        ("a < b and c > d &amp &lt;x&gt;", "a < b and c > d & <x>"),
        ("<a href='/x' title='1 > 0'>link</a> after", "[link](/x) after"),
        ("<a href=/unquoted>link</a>", "[link](/unquoted)"),
        ("<div <p>text after a broken tag", "text after a broken tag"),
        ("<title>Never closed <p>but the text goes on", "but the text goes on"),
        ("<textarea>Never closed <p>but the text goes on", "but the text goes on"),
        ("<script>never closed <p>but the text goes on", "but the text goes on"),
        ("<!-- never closed <p>but the text goes on", "but the text goes on"),
        ("</p></div></nav></ul></table>text after ends", "text after ends"),
        ("<nav>menu<main><h2>In the main part</h2>", "## In the main part"),
        ("<pre>  kept\n\n   as it is</pre>", "```\n  kept\n\n   as it is\n```"),
        ("before<br>after", "before after"),
        ("x &#0; &#xD800; &#99999999999999; y", "y"),
    ],
)
def test_broken_markup_is_read_as_far_as_it_goes(broken: str, said: str) -> None:
    assert said in read(page(broken))


@pytest.mark.parametrize(
    "part",
    [
        "<div>", "<b>", "<a ", '<a href="', "<!--", "<![CDATA[", "<script>", "<style ", "<", "</", "&", "&#", "<?", "<!", "<a \"'",
        "<title>", "<textarea>", "<svg>", "<td>", "<pre>", "<a href=x>y", "<li>x", "x=", "\0", "<ul>", "<nav>", "&lol;", " ", "\n",
    ],
)  # fmt: skip
def test_hostile_markup_is_harmless(part: str) -> None:
    shaped = clip(page(part * 20_000), 300)
    assert shaped is None or COUNT("\n".join(each.text for each in shaped.pieces if isinstance(each, Note))) <= 330


def test_entities_that_a_page_declares_are_not_expanded() -> None:
    declared = "".join(f"<!ENTITY e{n} '&e{n - 1};&e{n - 1};'>" for n in range(1, 60))
    assert len(read(f"<?xml version='1.0'?><!DOCTYPE html [{declared}]><html><p>{'word ' * 40}&e59;</p>")) < 5_000


def test_a_reference_of_a_million_digits_is_one_character() -> None:
    assert "before \ufffd after" in read(page(f"<p>before &#{'9' * 1_000_000}; after</p>"))


@given(
    parts=st.lists(
        st.sampled_from(re.findall(r"<[^>]*>|[^<]{1,20}|<", PAGE))
        | st.text(alphabet="<>/!-[]&;#\"'= ab\n\x00é\ud800", max_size=12),
        max_size=60,
    ),
    room=st.integers(0, 300),
)
@settings(max_examples=150)
def test_any_markup_is_shown_within_the_room(parts: list[str], room: int) -> None:
    lines = ("<html>" + "".join(parts)).split("\n")
    shaped = html.choose(lines, room, COUNT)
    if shaped is not None:
        (note,) = shaped.pieces
        assert isinstance(note, Note)
        assert note.text.strip()
        assert COUNT(note.text) <= 1.1 * room
        assert shaped == html.choose(lines, room, COUNT)


WORDS = st.text(alphabet="abcdefgh <>&\"'é", min_size=1, max_size=30).filter(lambda words: bool(words.strip()))


@given(paragraphs=st.lists(WORDS, min_size=1, max_size=20))
def test_every_paragraph_of_a_page_that_fits_is_shown_word_for_word(paragraphs: list[str]) -> None:
    shown = read(page("".join(f"<p>{escape(words)}</p>" for words in paragraphs)), 5_000).split("\n")
    assert all(" ".join(words.split()) in shown for words in paragraphs)


@given(size=st.integers(1, 60), room=st.integers(120, 600))
def test_the_counts_of_what_is_left_out_add_up(size: int, room: int) -> None:
    shown = read(page("".join(f"<p>Paragraph {n} {'words ' * 12}</p>" for n in range(size))), room)
    left = sum(int(n) for n in re.findall(r"(\d+) paragraphs? left out", shown))
    assert left + len(re.findall(r"Paragraph \d+ words|It has some", shown)) == size + 1


def large(rows: int) -> str:
    """A page of more than is read closely, with a heading far behind."""
    table = "".join(f"<tr><td>{n}</td><td>value {n}</td></tr>" for n in range(rows))
    return page(f"<table>{table}</table><h2>Far behind</h2><p>A paragraph under the last heading.</p><p>The end.</p>")


def test_of_a_large_page_the_beginning_and_what_follows_headings_is_read() -> None:
    text = read(large(20_000))
    assert "The page that is being tested here" in text
    assert "## Far behind" in text
    assert "A paragraph under the last heading." in text


def test_what_was_passed_over_in_a_large_page_is_counted() -> None:
    text = read(large(20_000), 3_000)
    passed = re.search(r"([\d,]+) characters of its source were passed over, with ([\d,]+) table rows", text)
    assert passed is not None
    rows = [int(row) for row in re.findall(r"^\| (\d+) \| value", text, re.MULTILINE)]
    assert rows == list(range(len(rows)))
    gap = re.search(r"([\d,]+) table rows left out", text)
    assert gap is not None
    assert len(rows) + int(gap[1].replace(",", "")) + int(passed[2].replace(",", "")) in (20_000, 20_001)  # a row may be cut


def test_the_main_part_of_a_large_page_is_read_however_far_behind() -> None:
    menu = "".join(f"<div><span>menu {n}</span></div>" for n in range(20_000))
    assert "What it is about" in read(page(f"{menu}<main><h1>What it is about</h1><p>{'word ' * 50}</p></main>"))


def test_a_page_that_is_not_large_is_read_wholly() -> None:
    assert "passed over" not in read(large(2_000))
