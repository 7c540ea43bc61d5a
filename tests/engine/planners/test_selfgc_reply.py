"""Replies as models write them, and as nobody should."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.planners.loose_json import Node, loose
from tenure.engine.planners.selfgc.prompt import EXAMPLES, REPLY
from tenure.engine.planners.selfgc.reply import TARGETS, Proposed, read

CONTRACT = """\
<above_conversation_summary>
Mending a flaky test; the log may be wanted again.
</above_conversation_summary>
<gc_plan>
<fold>
read:12 | schema of orders; recall before changing a column
user:5 | how the port was chosen
</fold>
<mask>
browser:4
</mask>
<prune>
exec:9
exec:11-13
</prune>
</gc_plan>"""


def named(reply: str) -> list[tuple[str, str]]:
    return [(target.action, target.name) for target in read(reply).targets]


PLAN = [("fold", "read:12"), ("prune", "exec:9")]


def test_the_contract_itself_is_read_to_the_letter() -> None:
    proposed = read(CONTRACT)
    assert [(t.action, t.name, t.words) for t in proposed.targets] == [
        ("fold", "read:12", "schema of orders; recall before changing a column"),
        ("fold", "user:5", "how the port was chosen"),
        ("mask", "browser:4", ""),
        *(("prune", f"exec:{number}", "") for number in (9, 11, 12, 13)),
    ]
    assert proposed.summary == "Mending a flaky test; the log may be wanted again."
    assert proposed.has_plan
    assert proposed.whole
    assert not proposed.unread


def test_the_papers_own_schema_is_read() -> None:
    reply = """<gc_plan>
  <fold kind="conversation"
  reason="resolved_turn">
    user:5
  </fold>
  <fold kind="function"
  reason="stable_artifact">
    read:12
  </fold>
  <prune kind="function"
  reason="obsolete_trace">
    exec:9
  </prune>
</gc_plan>"""
    assert named(reply) == [("fold", "user:5"), *PLAN]


@pytest.mark.parametrize(
    "reply",
    [
        '{"above_conversation_summary": "x", "gc_plan": {"fold": ["read:12"], "mask": [], "prune": ["exec:9"]}}',
        '```json\n{"gc_plan": {"fold": ["read:12"], "prune": ["exec:9"]}}\n```',
        'Here you are:\n{"fold": ["read:12",], "prune": ["exec:9",],}\nAnything else?',
        "{'fold': ['read:12'], 'mask': None, 'prune': ['exec:9']}",
        "{\u201cfold\u201d: [\u201cread:12\u201d], \u201cprune\u201d: [\u201cexec:9\u201d]}",
        '{"fold": [ // the schema\n "read:12" /* large */ ], # and\n "prune": ["exec:9"]}',
        "{fold: [read:12], prune: [exec:9]}",
        '{"fold": ["read:12"] "prune": ["exec:9"]}',
        '{"fold": "read:12", "prune": "exec:9"}',
        '{"fold": {"read:12": "the schema"}, "prune": {"exec:9": null}}',
        '{"fold": [{"id": "read:12", "pointer": "the schema"}], "prune": [{"target": "exec:9", "reason": "old"}]}',
        '{"fold": {"conversation": [], "function": ["read:12"]}, "prune": {"function": ["exec:9"]}}',
        '{"gc_plan": [{"action": "fold", "target": "read:12"}, {"action": "prune", "target": "exec:9"}]}',
        '{"actions": [{"op": "fold", "id": "read:12"}, {"op": "PRUNE", "id": "exec:9"}]}',
        '{"gc_plan": "<fold>read:12</fold><prune>exec:9</prune>"}',
        '{"fold": ["read:12", 7, null, true, {}, []], "prune": ["exec:9"], "mask": 3.5}',
        '<gc_plan>{"fold": ["read:12"], "prune": ["exec:9"]}</gc_plan>',
        '<gc_plan>\n```json\n{"fold": ["read:12"],\n "prune": ["exec:9"]}\n```\n</gc_plan>',
        "<gc_plan><fold>[\"read:12\"]</fold><prune>['exec:9']</prune></gc_plan>",
        "<GC_Plan >\n<Fold>\n- read:12\n</ Fold>\n<PRUNE>* `exec:9`</PRUNE></GC_PLAN>",
        "<gc-plan><fold><target>read:12</target></fold><prune><item id='exec:9' reason='old'/></prune></gc-plan>",
        '<gc_plan><fold targets="read:12" reason="schema"/><prune targets="exec:9"/></gc_plan>',
        "<gc_plan><!-- <mask>read:3</mask> --><fold>read:12</fold><prune>exec:9</prune></gc_plan>",
        "<gc_plan><fold>read:12<prune>exec:9</gc_plan>",
        "<fold>read:12</fold>\n<prune>exec:9</prune>",
        "I looked at it.\n\nfold: read:12 | the schema\nprune: exec:9\n\nread:5 stays.",
        "gc_plan:\n- fold read:12\n- prune exec:9 (old)",
        "## Fold\n\n- read:12 — the schema\n\n## Mask\n\nnone\n\n## Prune (1 object)\n1. `exec:9`\n\n## Keep\n- read:5",
        "**Fold:** read:12\n**Mask:** none\n**Prune:** exec:9",
        "read:12 -> fold\nexec:9 -> prune",
        "| read:12 | fold | the schema |\n| exec:9 | prune | old |",
        "Fold targets: function:read:12\nPruned: function:exec:9",
        "<think>Perhaps <gc_plan><fold>read:3</fold></gc_plan>?</think><gc_plan><fold>read:12</fold><prune>exec:9</prune></gc_plan>",
        "\ufeff\0<gc_plan>\r\n<fold>\r\nread:12\r\n</fold>\r\n<prune>\r\nexec:9\r\n</prune>\r\n</gc_plan>\0",
        "<gc_plan><fold>read:12@3fa9</fold><prune>[exec:9@00ff]</prune></gc_plan>",
    ],
)  # fmt: skip
def test_the_plan_is_understood_however_it_is_dressed(reply: str) -> None:
    assert named(reply) == PLAN


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I would leave everything as it is; read:12 and exec:9 are needed.",
        "Fold is not the right thing for read:12 here.\nPrune seems wrong for exec:9.",
        "Do not fold read:12.\nDo not prune exec:9.",
        "Fold - nothing safe:\n- read:12 holds the port\n- exec:9 is live",
        "<gc_plan></gc_plan>",
        "<gc_plan/>",
        '{"fold": [], "mask": [], "prune": []}',
        '{"fold": null, "mask": "none", "prune": "n/a"}',
        '{"keep": ["read:12"], "notes": {"why": "exec:9"}}',
        "<keep>read:12</keep>",
        "<think><gc_plan><fold>read:12</fold></gc_plan>",
        '["read:12", "exec:9"]',
        "\ud800<fold",
    ],
)
def test_nothing_is_taken_from_a_reply_that_names_nothing(reply: str) -> None:
    assert named(reply) == []


def test_an_empty_plan_is_told_from_no_plan() -> None:
    assert read("<gc_plan></gc_plan>").has_plan
    assert not read("Nothing to say.").has_plan


def test_of_several_plans_the_last_whole_one_counts() -> None:
    first, second = "<gc_plan><fold>read:1</fold></gc_plan>", "<gc_plan><prune>read:2</prune></gc_plan>"
    assert named(f"{first} or rather\n{second}") == [("prune", "read:2")]
    assert named(f"{first} or rather\n<gc_plan><prune>\nread:2\nrea") == [("fold", "read:1")]
    assert named('{"gc_plan": {"fold": ["read:1"]}}\n{"gc_plan": {"prune": ["read:2"]}}') == [("prune", "read:2")]
    assert named('{"gc_plan": {"fold": ["read:1"]}}\n{"gc_plan": {"prune": ["read:2", "re') == [("fold", "read:1")]
    assert named('{"fold": ["read:1"]}\n{"prune": ["read:2"]}') == [("prune", "read:2")]


@pytest.mark.parametrize(
    "reply",
    [
        "<gc_plan>\n<fold>\nread:12 | x\n</fold>\n<prune>\nexec:9\nexec:1",
        '{"gc_plan": {"fold": ["read:12"], "prune": ["exec:9", "exec:1',
        "{fold: [read:12], prune: [exec:9, exec:1",
        '<gc_plan>{"fold": ["read:12"], "prune": ["exec:9", "exec:1',
    ],
)
def test_a_name_that_was_cut_off_is_not_taken_for_a_shorter_one(reply: str) -> None:
    proposed = read(reply)
    assert [(t.action, t.name) for t in proposed.targets] == PLAN
    assert [(unread.text, unread.why) for unread in proposed.unread] == [("exec:1", "cut off")]
    assert not proposed.whole


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("bash:1-3, 7, 9-10", ["bash:1", "bash:2", "bash:3", "bash:7", "bash:9", "bash:10"]),
        ("bash:1–3", ["bash:1", "bash:2", "bash:3"]),
        ("bash:1-bash:3", ["bash:1", "bash:2", "bash:3"]),
        ("bash:3-1", ["bash:3-1"]),
        ("bash:1-999999999", ["bash:1-999999999"]),
        ("read:1, read:2 and read:3", ["read:1", "read:2", "read:3"]),
        ("read:1: read:2 says the same", ["read:1"]),
        ("read:1 (see read:2)", ["read:1"]),
        ("read:1 | as in read:2, read:3", ["read:1"]),
        ("read:1 superseded by read:2", ["read:1"]),
        ("read:1, 300 lines of it", ["read:1"]),
        ("read:1, read:2 has it too", ["read:1"]),
        ("skill:release-1-2", ["skill:release-1-2"]),
        ("skill:office:tables", ["skill:office:tables"]),
        ("conversation:user:3", ["user:3"]),
        ("function:skill:1", ["function:skill:1"]),
        ("mcp__files__read:4", ["mcp__files__read:4"]),
        ("naïve:2", ["naïve:2"]),
        ("**read:1**.", ["read:1"]),
    ],
)
def test_a_line_names_what_stands_before_its_words(line: str, names: list[str]) -> None:
    assert [target.name for target in read(f"<gc_plan><prune>\n{line}\n</prune></gc_plan>").targets] == names


def test_what_is_no_name_is_kept_apart_with_a_reason() -> None:
    proposed = read("<gc_plan><prune>\nall the old reads\nread:1\n</prune></gc_plan>")
    assert [target.name for target in proposed.targets] == ["read:1"]
    assert [(unread.text, unread.why) for unread in proposed.unread] == [("all the old reads", "no object's name")]


def test_a_tool_that_is_called_user_is_no_turn() -> None:
    assert named('<gc_plan><prune kind="function">user:5</prune></gc_plan>') == [("prune", "function:user:5")]


def test_another_container_ends_an_action_that_was_not_closed() -> None:
    assert named("<gc_plan><prune>\nread:1\n<keep>\nread:2\n</keep></gc_plan>") == [("prune", "read:1")]


def test_words_and_summary_are_bounded_and_of_one_line() -> None:
    proposed = read(f"<above_conversation_summary>{'a b ' * 900}</above_conversation_summary><fold>read:1 | {'x' * 9000}</fold>")
    assert len(proposed.summary) == 600
    assert len(proposed.targets[0].words) == 300


@pytest.mark.parametrize(
    "reply",
    [
        "[" * 1_000_000,
        '{"fold":' * 400_000,
        '{"gc_plan":' * 300_000,
        "x" * 10_000_000,
        '"' * 300_000,
        "'" * 300_000,
        "<" + " " * 300_000,
        "<gc_plan>" * 40_000,
        "<fold>" * 50_000,
        "<!--" * 60_000,
        "gc_plan: [a," * 20_000,
        "prune: " + "read:1-1999, " * 20_000,
        "fold: read:" + "1-" * 100_000,
        '{"fold":"' + "\\" * 200_000,
        "\0" * 200_000,
        "\ud800" * 200_000,
    ],
    ids=range(16),
)
def test_a_hostile_reply_is_harmless(reply: str) -> None:
    proposed = read(reply)
    assert len(proposed.targets) + len(proposed.unread) <= TARGETS + 2


def test_the_plan_at_the_end_of_a_gigantic_reply_is_read() -> None:
    assert len(read("x " * 5_000_000 + CONTRACT).targets) == 7


WILD = st.lists(
    st.one_of(
        st.sampled_from(
            '<gc_plan> </gc_plan> <fold> </fold> <prune kind="function"> </prune> <mask/> { } [ ] " \' : , \n | - ``` // /* */ <!-- -->'
            " fold prune mask gc_plan read:1 read:1-4 user:2 conversation:user:1 function:read:1 null \\ \\u12 </think> \x00 \ud800".split(
                " "
            )
        ),
        st.text(max_size=6),
        st.text(string.punctuation + " \n", max_size=4),
    ),
    max_size=40,
).map("".join)


@given(reply=WILD)
def test_no_reply_raises_and_every_name_is_one(reply: str) -> None:
    proposed: Proposed = read(reply)
    assert all(":" in target.name and target.name.strip() == target.name for target in proposed.targets)
    assert proposed.has_plan or not proposed.targets


@given(names=st.lists(st.from_regex(r"[a-z_][a-z0-9_.\-]{0,12}:[1-9][0-9]{0,3}", fullmatch=True), unique=True, max_size=12))
def test_names_come_back_from_json_and_tags_alike(names: list[str]) -> None:
    expected = list(dict.fromkeys(names))
    quoted = ", ".join(f'"{name}"' for name in names)
    lines = "\n".join(names)
    assert [t.name for t in read(f'{{"gc_plan": {{"prune": [{quoted}]}}}}').targets] == expected
    assert [t.name for t in read(f"<gc_plan>\n<prune>\n{lines}\n</prune>\n</gc_plan>").targets] == expected


@given(text=WILD)
def test_loose_json_reads_any_text(text: str) -> None:
    found = loose(text)
    assert 0 <= found.end <= len(text)


def test_loose_json_reads_json() -> None:
    found = loose(' {"a": ["b", {"c": "d\\n\\u00e9"}], "e": -1.5e3} ')
    assert found.whole
    assert isinstance(found.value, Node)
    assert [key for key, _ in found.value.items] == ["a", "e"]
    assert found.value.items[1] == ("e", "-1.5e3")


REAL = "<gc_plan>\n<fold>\nread:12\n</fold>\n<prune>\nexec:9\n</prune>\n</gc_plan>"
OTHER = "<gc_plan><prune>read:3</prune></gc_plan>"


@pytest.mark.parametrize(
    "quotation",
    [
        f"The form I was given:\n```xml\n{OTHER}\n```\n",
        f"~~~~\n{OTHER}\n~~~\nstill in it\n~~~~\n",
        f'A tool printed "{OTHER}", which is no plan of mine.\n',
        f"Such as `{OTHER}`.\n",
        f"Such as `the form {OTHER}`.\n",
        f"> {OTHER}\n",
        '```json\n{"gc_plan": {"prune": ["read:3"]}}\n```\n',
        "```\n<prune>read:3</prune>\n```\n",
        f"The prompt says: <example>{OTHER}</example>\n",
        f"<blockquote>\n{OTHER}\n</blockquote>\n",
        f"<pre><code>{OTHER}</code></pre>\n",
        f"Its form is «{OTHER}».\n",
        "As in <gc_plan>\n<fold>\nID | what it holds; when to recall it\n</fold>\n<mask>\nID\n</mask>\n<prune>\nID\n</prune>\n</gc_plan>.\n",
    ],
)
def test_a_quoted_plan_never_wins_over_the_one_that_is_meant(quotation: str) -> None:
    assert named(f"{quotation}\n{REAL}") == PLAN
    assert named(f"{REAL}\n{quotation}") == PLAN
    assert read(f"{REAL}\n{quotation}").whole


@pytest.mark.parametrize(
    "quotation",
    [
        f"```\n{OTHER}\n```\n",
        f'"{OTHER}"\n',
        f"`{OTHER}`\n",
        f"> {OTHER}\n",
        f"<code>{OTHER}</code>\n",
        '```\n{"gc_plan": {"prune": ["read:3"]}}\n```\n',
    ],
)
@pytest.mark.parametrize(
    "begun", ["<gc_plan>\n<fold>\nread:12\n</fold>\n", '{"gc_plan": {"fold": ["read:12"], ', "<fold>\nread:12\n"]
)
def test_a_plan_that_was_cut_off_is_not_replaced_by_a_quoted_one(quotation: str, begun: str) -> None:
    assert named(f"{quotation}\n{begun}") == [("fold", "read:12")]
    if not begun.startswith("{"):
        assert named(f"{begun}\n{quotation}") == [("fold", "read:12")]


def test_examples_of_the_prompt_are_no_plan() -> None:
    assert named(EXAMPLES) == []
    assert named(f"{EXAMPLES}\n<prune>exec:9</prune>") == [("prune", "exec:9")]
    assert named(f"{EXAMPLES}\n\n{REPLY}\n\n{REAL}") == named(f"{REAL}\n\n{EXAMPLES}\n{REPLY}") == PLAN
    assert named("<gc_plan><prune>test:3</prune></gc_plan>") == [("prune", "test:3")]  # in a plan of its own it is meant


def test_a_fence_around_the_whole_answer_is_no_quotation() -> None:
    assert named(f"Here it is:\n```xml\n{REAL}\n```") == PLAN
    assert named(f"```xml\n{REAL}") == PLAN
    assert named(f"First thoughts:\n```\n{OTHER}\n```\nFinal answer:\n```\n{REAL}\n```\nDone.") == PLAN
    assert named(f"```\n{REAL}\n```\nOr\n```\n<gc_plan><prune>\nread:3\nrea\n```") == PLAN
    assert named(f"Fold: the large logs, I think.\n```\n{REAL}\n```") == PLAN


def test_only_one_plan_is_taken_from_a_reply() -> None:
    assert named(f"{OTHER}\n{REAL}") == PLAN
    assert named(f"{REAL}\nfold: read:3\nprune: read:4") == PLAN
    assert named(f'{REAL}\n{{"prune": ["read:3"]}}') == PLAN


@pytest.mark.parametrize(
    "piece", ['"<gc_plan>', "```\n", "> <gc_plan>\n", "`<gc_plan>`", "```\n<gc_plan>\n", '"<fold>x"', "`<", "<gc_plan>\n```\n"]
)
def test_a_reply_of_nothing_but_quotations_is_harmless(piece: str) -> None:
    assert not read(piece * (262_144 // len(piece))).targets
