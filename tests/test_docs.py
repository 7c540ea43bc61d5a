"""The documentation cannot rot: its Python runs, its commands parse, its examples are printed by the code, and its figures are the code's."""

import ast
import inspect
import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec.structs import replace
from typer.main import get_command

from tenure import Budget, Context, Cwl
from tenure.cli.main import made
from tenure.context import answers
from tenure.engine.clip.clip import LEAST, SHAPES
from tenure.engine.clip.head_tail import HEAD, TAIL
from tenure.engine.clip.setting import Clip
from tenure.engine.lifecycle import automatic, digest, planning
from tenure.engine.lifecycle.automatic import GROWN, TRIGGER_SHARE
from tenure.engine.lifecycle.budget import DEFAULT_WINDOW, FLOOR_SHARE
from tenure.engine.lifecycle.digest import ABOVE
from tenure.engine.lifecycle.gate import AT_ONCE_SHARE, MISS_RATE
from tenure.engine.planners.handoff import facts as handoff_facts
from tenure.engine.planners.handoff import request as handoff
from tenure.engine.planners.handoff import sections as handoff_sections
from tenure.engine.planners.handoff.transcript import OPENING
from tenure.engine.planners.selfgc import plan as selfgc
from tenure.engine.planners.selfgc.objects import RECALL_CALLS as PLANNED_AFTER
from tenure.engine.policies import COMPAT, PEERS, POLICIES, UNBOUNDED, faithful_named, policy_named
from tenure.engine.policies.peers import CLEARED
from tenure.engine.policies.tiered import Tiered
from tenure.engine.record import notes, query, search
from tenure.engine.record import recall as recalling
from tenure.engine.view.guard import RECALL_CALLS, RECALL_SHARE, TAIL_EXCHANGES
from tenure.errors import Failure
from tenure.models import Patience
from tenure.models import helpers as asking
from tenure.models.blocking import POLL_S
from tenure.models.hosts import PROVIDERS
from tenure.models.model import MOST_RETRIES
from tenure.testing.model import ScriptedModel
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Reply, Script
from tenure.testing.store import MemoryStore

ROOT: Final = Path(__file__).parent.parent
DOCS: Final = ROOT / "docs"
# What a command wrote is found by the first of its pages, and held by its own tests.
WRITTEN: Final = frozenset(path for path in DOCS.glob("evidence/*.md") if path.name != "README.md")
PAGES: Final = {path.relative_to(DOCS).as_posix(): path for path in sorted(DOCS.rglob("*.md")) if path not in WRITTEN}
OTHERS: Final = {"README.md": ROOT / "README.md", **{f"docs/{name}": path for name, path in PAGES.items()}}

RUNS: Final = re.compile(
    r"<!-- runs in tests/test_docs\.py(?P<served>, against[^>]*)? -->\n```python\n(?P<code>.*?)```", re.DOTALL
)
ELSEWHERE: Final = re.compile(r"<!-- runs where the framework is: (?P<example>\S+) -->\n```python\n(?P<code>.*?)```", re.DOTALL)
EXAMPLE: Final = re.compile(r"(?<=<!-- example: )(?P<name>[^>]*)( -->\n```text\n)(?P<text>.*?)```", re.DOTALL)
PYTHON: Final = re.compile(r"^```python\n", re.MULTILINE)
COMMAND: Final = re.compile(r"^    (tenure .*)$", re.MULTILINE)
LINK: Final = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")
FENCED: Final = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def text_of(page: str) -> str:
    return PAGES[page].read_text(encoding="utf-8")


def flat(page: str) -> str:
    """The page as one line, so that words are found wherever a line ends."""
    return " ".join(text_of(page).split())


# --- What pages talk about


def call(number: int, tool: str, **arguments: object) -> dict[str, Any]:
    use = {"type": "tool_use", "id": f"c{number}", "name": tool, "input": arguments}
    return {"role": "assistant", "content": [use]}


def result(number: int, text: str) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": text}]}


def worked(**settings: Any) -> Context:
    """A conversation in which eight files were read and another turn begins."""
    context = Context(**({"model": "claude-opus-4-5", "store": MemoryStore(), "budget": Budget(ceiling=100_000)} | settings))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Mend the parser."}]
    for n in range(1, 9):
        steps = [f"def step_{n}_{k}(token): return verify(token, {k})" for k in range(150)]
        messages += [call(n, "read", file_path=f"src/part_{n}.py"), result(n, "\n".join(steps))]
    context.extend([*messages, {"role": "assistant", "content": "Mended."}, {"role": "user", "content": "And part two?"}])
    context.request(model="claude-opus-4-5", max_tokens=1_000)
    return context


PLAN: Final = (
    "<gc_plan><fold>read:1 | the steps of part 1; recall before editing one</fold><prune>read:2-4, read:99</prune></gc_plan>"
)
BRIEF: Final = (
    "\n\n".join(f"## {section.title}\nThe parser is in src/part_1.py; make passed." for section in handoff_sections.SECTIONS)
    + f"\n{handoff_sections.END}"
)
MODELS: Final = {"policies/selfgc.md": PLAN, "policies/handoff.md": BRIEF}


def seeds(page: str) -> dict[str, object]:
    """What the code of a page finds there already."""
    context = worked()
    if page == "recall.md":
        context.collect(ScriptedModel(PLAN))
        context.handoff(ScriptedModel(BRIEF))
    model = ScriptedModel(then="well") if page not in MODELS else ScriptedModel(MODELS[page])
    return {"context": context, "model": model, "store": MemoryStore(), "Context": Context, "Budget": Budget, "Cwl": Cwl}


# --- Code


@pytest.mark.parametrize("page", [page for page in PAGES if RUNS.search(text_of(page))])
def test_the_python_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = seeds(page)
    with ExitStack() as open_now:
        for block in RUNS.finditer(text_of(page)):
            if block["served"]:
                provider = FakeProvider(Script(replies=(Reply(text="What a provider kept of a prompt."),)))
                url = open_now.enter_context(serve(provider.app))
                for name, value in (("OPENAI", f"{url}/v1"), ("ANTHROPIC", url)):
                    monkeypatch.setenv(f"{name}_BASE_URL", value)
                    monkeypatch.setenv(f"{name}_API_KEY", "-")
            exec(compile(block["code"], page, "exec"), names)
    assert not list(tmp_path.iterdir()), "an example wrote a file into the reader's folder"


def test_all_python_of_the_docs_is_run() -> None:
    def marked(page: str) -> int:
        return len(RUNS.findall(text_of(page))) + len(ELSEWHERE.findall(text_of(page)))

    assert not [page for page in PAGES if len(PYTHON.findall(text_of(page))) != marked(page)]


@pytest.mark.parametrize("page", [page for page in PAGES if ELSEWHERE.search(text_of(page))])
def test_what_a_page_imports_of_ours_is_what_its_example_imports(page: str) -> None:
    for block in ELSEWHERE.finditer(text_of(page)):
        compile(block["code"], page, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        example = (ROOT / block["example"]).read_text()
        ours = re.findall(r"^from (tenure\.adapters\.\w+) import (\w+)", block["code"], re.MULTILINE)
        assert ours
        assert all(re.search(rf"^from {module} import .*\b{name}\b", example, re.MULTILINE) for module, name in ours)


def test_the_code_of_the_recall_page_brings_back_what_it_says() -> None:
    names = seeds("recall.md")
    for block in RUNS.finditer(text_of("recall.md")):
        exec(compile(block["code"], "recall.md", "exec"), names)
    assert "def step_2_149" in str(names["whole"])
    assert str(names["lines"]).count("\n") == 2
    assert "read:3@" in str(names["found"])
    with pytest.raises(Exception, match=r"no object 'read:99' in this record, expected read:1 to read:8"):
        names["context"].recall("read:99")  # type: ignore[attr-defined]


# --- Commands


def commands() -> Iterator[tuple[str, str]]:
    for name, path in OTHERS.items():
        for line in COMMAND.findall(FENCED.sub("", path.read_text(encoding="utf-8"))):
            yield name, line


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_a_command_that_is_shown_can_be_given(page: str, line: str) -> None:
    _, name, *arguments = shlex.split(line, comments=True)
    command = get_command(made((name,))).commands[name]  # type: ignore[attr-defined]
    given = command.make_context(name, arguments).params
    if {"policy", "compat", "faithful"} <= given.keys():
        assert policy_named(given["policy"], given["compat"]) is not None
        assert not given["faithful"] or faithful_named(given["policy"], given["compat"])


# --- Links


@pytest.mark.parametrize("name", OTHERS)
def test_links_lead_somewhere(name: str) -> None:
    path = OTHERS[name]
    missing = [link for link, _ in LINK.findall(path.read_text(encoding="utf-8")) if not (path.parent / link).exists()]
    assert not missing


def test_every_page_is_in_the_index_once() -> None:
    listed = [link for link, _ in LINK.findall(text_of("README.md"))]
    assert sorted(listed) == sorted({*PAGES} - {"README.md"})


# --- Examples


LOG: Final = "\n".join(
    [
        "$ python worker.py",
        *(f"2026-01-02 10:{n // 60:02}:{n % 60:02} INFO worker: step {n} done in {n * 3 % 41} ms" for n in range(200)),
        "2026-01-02 10:03:20 ERROR worker: step 200 failed",
        "Traceback (most recent call last):",
        '  File "src/worker.py", line 31, in run',
        "    row = table[key]",
        "KeyError: 'shop-77'",
        *(f"2026-01-02 10:{n // 60:02}:{n % 60:02} INFO worker: step {n} done in {n * 3 % 41} ms" for n in range(201, 400)),
        "stopped: 399 steps done, 1 failed",
    ]
)


def shown_of_log(**settings: Any) -> str:
    context = Context(model="claude-opus-4-5", store=MemoryStore(), clip=360, **settings)
    context.extend([{"role": "user", "content": "Why did it stop?"}, call(1, "bash", command="python worker.py")])
    context.extend([result(1, LOG)])
    found: str = context.request(model="claude-opus-4-5", max_tokens=1_000)["messages"][-1]["content"][0]["content"]
    return found


def a_digest() -> str:
    said = "399 of 400 steps done; step 200 failed with KeyError 'shop-77' in run, src/worker.py line 31."
    shown = shown_of_log(digest=ScriptedModel(said, name="gpt-5-mini"), digest_above=1_000)
    return "\n".join(shown.split("\n")[1:3])


def asked_of_recall(times: int, **arguments: str) -> str:
    """What the agent reads when it asks that often."""
    context = worked()
    answer: dict[str, Any] = {}
    for n in range(100, 100 + times):
        asked = call(n, "recall", **arguments)
        context.extend([asked])
        answer = context.call(asked["content"][0]) or {}
        context.extend([{"role": "user", "content": [answer]}])
    return str(answer["content"])


def a_loop() -> str:
    return asked_of_recall(3, handle="read:1", lines="1-2").rpartition("\n\n")[2]


def an_answer_that_goes_on() -> str:
    return worked().recall("read:2", cap=300).rpartition("\n")[2]


def a_pointer() -> str:
    context = worked()
    context.session.setup = replace(context.session.setup, calls_seen=(400,) * 200)  # sessions here are long, so that it pays
    answered = context.collect(ScriptedModel(PLAN))
    assert answered is not None
    return context.session.view.inserts[0].text


def a_refused_brief() -> str:
    answered = worked().handoff(ScriptedModel("Sure! What would you like me to do next?"))
    assert answered is not None
    return str(answered.decision)


EXAMPLES: Final[Mapping[str, Callable[[], str]]] = {
    "a clip": shown_of_log,
    "a digest": a_digest,
    "a search": lambda: worked().recall(pattern=r"step_5_14\d"),
    "an answer that goes on": an_answer_that_goes_on,
    "a loop": a_loop,
    "a pointer": a_pointer,
    "a brief's opening": lambda: OPENING,
    "a refused brief": a_refused_brief,
}


def examples() -> dict[str, str]:
    return {found["name"]: page for page in PAGES for found in EXAMPLE.finditer(text_of(page))}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_what_the_code_prints(name: str, request: pytest.FixtureRequest) -> None:
    page = examples()[name]
    printed = EXAMPLES[name]() + "\n"
    if request.config.getoption("--rewrite-golden"):
        text = EXAMPLE.sub(lambda found: f"{name}{found[2]}{printed}```" if found["name"] == name else found[0], text_of(page))
        PAGES[page].write_text(text, encoding="utf-8")
    assert [found["text"] for found in EXAMPLE.finditer(text_of(page)) if found["name"] == name] == [printed]


def test_every_example_is_printed_by_something() -> None:
    assert examples().keys() == EXAMPLES.keys()


# --- Figures


def percent(share: float) -> str:
    return f"{share * 100:g} %"


def default(name: str) -> object:
    """What a setting of `Context` is unless it is given."""
    return inspect.signature(Context).parameters[name].default


USUAL = {name: peer.settings for name, peer in PEERS.items()}
CLEARING, LANGCHAIN = USUAL["clear-tool-uses"], USUAL["langchain-clearing"]


ROOM: Final = HEAD + TAIL
FIGURES: Final[Mapping[str, tuple[str, ...]]] = {
    "clip.md": (
        f"more than {Clip().above:,} tokens is shown shortened",
        f"`Context(clip={Clip().above:_})`",
        f"less than {percent(LEAST)} of the room",
        f"result of more than {ABOVE:,} tokens",
        f"shown at most {digest.ROOM:,} tokens",
        f"at most {digest.WORDS} words",
        f"more than {digest.MOST} tokens is not used",
    ),
    "recall.md": (
        f"at most {query.CAP:,} tokens (`Context(recall_cap=…)`)",
        f"up to {query.HANDLES}",
        f"longer than {search.PATTERN_S:g} seconds",
        f"at most {search.MATCHES} matches",
        f"third time within {recalling.NEAR} replies",
        f"About {notes.NOTES_TOKENS:,} tokens are kept",
    ),
    "gate.md": (
        f"{percent(MISS_RATE)} of what leaves",
        f"more than {AT_ONCE_SHARE:g} of the view",
    ),
    "models.md": (
        f"Patience(retries={Patience().retries}, connect_s={Patience().connect_s:g}, total_s={Patience().total_s:g})",
        f"every {POLL_S * 1_000:g} ms",
    ),
    "policies/cwl.md": (f"{percent(FLOOR_SHARE)} of it",),
    "policies/tiered.md": (
        f"{Tiered().head:,} tokens of their head and {Tiered().tail:,} of their tail",
        f"| {percent(Tiered().placeholders_above)} |",
        f"| {percent(Tiered().middle_above)} |",
    ),
    "policies/selfgc.md": (
        f"from {percent(TRIGGER_SHARE)} of the budget's limit on",
        f"at most {selfgc.PROMPT_TOKENS:,} tokens",
        f"at most {planning.OUTPUT_TOKENS:,} tokens of it",
        f"first {selfgc.MASK_HEAD} and last {selfgc.MASK_TAIL} tokens",
        f"less than {selfgc.LEAST_FOLD} tokens",
        f"more than {AT_ONCE_SHARE:g} of the view",
    ),
    "policies/handoff.md": (
        f"at {percent(automatic.PERCENT / 100)} of the window",
        f'handoff_at="{default("handoff_at")}"',
        f"which is {DEFAULT_WINDOW:,} unless",
        f"in at most {handoff_sections.BRIEF_WORDS} words",
        f"({handoff_facts.FILES} at most)",
        f"too long ({handoff_sections.MOST:,} characters) or too short ({handoff_sections.LEAST})",
    ),
    "policies/peers.md": (
        f"the newest {USUAL['observation-masking']['window']} stay",
        f"newest {USUAL['opencode-prune']['turns']} turns, not the newest {USUAL['opencode-prune']['protect']:,} tokens of results",
        f"more than {USUAL['opencode-prune']['minimum']:,} go",
        f"`{CLEARED}`",
        f"save {percent(USUAL['cline']['enough'])} nothing else goes",
        f"above {CLEARING['trigger']:,} tokens; the newest {CLEARING['keep']} stay",
        f"`{CLEARING['placeholder']}`",
        f"`{LANGCHAIN['placeholder']}`",
    ),
}


@pytest.mark.parametrize(("page", "words"), [(page, words) for page, every in FIGURES.items() for words in every])
def test_a_figure_is_the_codes(page: str, words: str) -> None:
    assert words in flat(page)


def test_figures_that_are_written_as_words_are_the_codes() -> None:
    assert Context(store=MemoryStore()).session.setup.clip == Clip()
    assert Clip().above == Clip().room
    assert default("digest_above") == ABOVE
    assert default("recall_cap") == query.CAP
    assert asking.DIGEST_S == 60  # clip.md
    assert answers.LEAST == 1_000  # recall.md
    assert inspect.signature(Context.handoff).parameters["room"].default == 100_000  # handoff.md
    assert len(PROVIDERS) == 8  # models.md names them
    assert (HEAD / ROOM, TAIL / ROOM) == (0.25, 0.75)  # clip.md: a quarter, three quarters
    assert RECALL_SHARE == GROWN == 0.1  # recall.md, selfgc.md: a tenth
    assert RECALL_CALLS == PLANNED_AFTER == recalling.REPEATS == 3  # recall.md, selfgc.md: three replies, the third time
    assert handoff.KEEP_REPLIES == 2
    assert TAIL_EXCHANGES == 4
    assert handoff_facts.FAILURES == 5
    assert MOST_RETRIES == 10
    assert (USUAL["discard-75"]["share"], USUAL["discard-all"]["share"]) == (0.75, 1.0)
    assert (CLEARING["at_least"], LANGCHAIN["trigger"], LANGCHAIN["keep"]) == (0, 100_000, 3)


def first_column(page: str, heading: str) -> list[str]:
    """The first cells of the table that begins with this line."""
    rows = text_of(page).partition(heading)[2].split("\n\n")[0].split("\n")[2:]
    return [row.split("|")[1].strip().strip("`") for row in rows if row]


def test_the_shapes_are_listed_in_the_order_in_which_they_are_tried() -> None:
    assert first_column("clip.md", "| shape | what is taken for it | what is kept |") == [shape.name for shape in SHAPES]


def test_all_rules_of_others_are_listed() -> None:
    assert first_column("policies/peers.md", "| name | what goes | numbers | source |") == [UNBOUNDED, *PEERS]


def test_the_sections_of_a_brief_are_listed() -> None:
    rows = text_of("policies/handoff.md").partition("| section | must tell something |")[2].split("\n\n")[0].split("\n")[2:]
    told = {row.split("|")[1].strip(): row.split("|")[2].strip() == "yes" for row in rows}
    assert told == {section.title: section.needed for section in handoff_sections.SECTIONS}


def test_every_kind_of_failure_is_listed() -> None:
    assert first_column("models.md", "| `Failure` | |") == [failure.name for failure in Failure]


def test_every_policy_has_a_page() -> None:
    pages = {Path(page).stem for page in PAGES if page.startswith("policies/")}
    assert pages >= {*POLICIES, *(COMPAT.keys() - {"paper"})}


def test_the_settings_that_pages_name_exist() -> None:
    parameters = inspect.signature(Context).parameters
    for page in PAGES:
        for found in re.findall(r"`Context\(([^`]*)\)`", text_of(page)):
            named = re.findall(r"(?:^|, )(\w+)=", found)
            assert {*named} <= parameters.keys(), (page, found)


def test_calls_of_recall_that_are_shown_are_understood() -> None:
    shown = re.findall(r"^    (\{.*?\})(?:\s{2,}.*)?$", text_of("recall.md"), re.MULTILINE)
    assert len(shown) >= 8
    for each in shown:
        assert query.query_of(each) is not None, each
        json.loads(each)
