"""A conversation that is built of chosen turns and briefs, and gone on with."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot
from tui_stage import call, made, played, said, says, text_of, until

from tenure.agent.approval import Mode
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.build import Picks, build
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.contents import Segment, lists
from tenure.agent.screens.history import History, of_context, of_records
from tenure.agent.screens.viewer import ContextViewer
from tenure.agent.session import Agent
from tenure.agent.settings import Settings, World
from tenure.apis.rules import rules_for
from tenure.context import Context
from tenure.engine.lifecycle.budget import Budget
from tenure.engine.lifecycle.session import Setup
from tenure.engine.lifecycle.terms import Terms
from tenure.engine.record.entry import Origin, Role
from tenure.engine.record.index import Index
from tenure.engine.view.edit import Commit, Drop, Insert, Replace
from tenure.models.speaker import SdkSpeaker
from tenure.store.records import Conversation
from tenure.store.soundness import encoded
from tenure.testing.builders import by_words, human, reply, result, session
from tenure.testing.builders import call as called
from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script
from tenure.testing.store import MemoryStore

SEQ = "seq -f 'row %g of the long table that was printed' 1 2000"


def words_of(body: bytes) -> str:
    return json.dumps(json.loads(body))


def test_the_screen_goes_on_in_what_was_built_with_the_prompt_of_a_session_its_clips_and_its_handles(tmp_path: Path) -> None:
    store = MemoryStore()
    replies = [
        says("", call("bash", command="echo one")),
        says("first done"),
        says("", call("bash", command=SEQ)),
        says("second done"),
        says("going on"),
    ]

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = app.screen
        assert isinstance(chat, Chat)
        assert chat.agent is not None
        await said(pilot, app, "the first task")
        await said(pilot, app, "the second task")
        source, before = chat.agent.id, chat.agent.context.wire().decode()
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ContextViewer))
        await pilot.press("1", "end", "space", "b")
        await until(pilot, lambda: app.screen is chat and chat.agent is not None and chat.agent.id != source)
        context = chat.agent.context
        assert f"this is {chat.agent.id[:8]}, built from {source[:8]}, which stays as it was" in text_of(app)
        body = context.wire().decode()
        system = store.entry(source, 0)
        first = store.entry(chat.agent.id, 0)
        assert (first.role, first.payload, first.blocks) == (system.role, system.payload, system.blocks)
        assert "the second task" in body
        assert "the first task" not in body
        clip = before[before.index("[clip ") : before.index("row 2000 of")]
        assert clip in body
        assert "row 1000 of" not in body
        handle = clip.partition("recall ")[2].partition(" ")[0]
        assert handle.startswith("bash:2@")
        assert context.recall(handle, lines="1000") == "row 1000 of the long table that was printed"
        own = context.session.index.handle("bash:1", context.session.index.spans[0].call[0])
        assert context.recall(own, lines="1000") == "row 1000 of the long table that was printed"
        assert "the first task" in context.recall("user:1@" + _hash(store, source, 1))
        assert "one" in context.recall(pattern="^one$")
        await said(pilot, app, "go on then")
        assert "going on" in text_of(app)
        assert store.verify(chat.agent.id) is None

    played(made(tmp_path, replies, store=store, mode=Mode.ALL, clip=200), play, (110, 40))


def _hash(store: MemoryStore, conversation: str, entry: int) -> str:
    return store.entry(conversation, entry).id[:4]


def test_nothing_is_built_while_a_turn_runs(tmp_path: Path) -> None:
    store = MemoryStore()

    async def play(pilot: Pilot[Any], app: TenureApp) -> None:
        chat = app.screen
        assert isinstance(chat, Chat)
        await said(pilot, app, "wait", wait=False)
        await until(pilot, lambda: chat.is_busy and "sleep" in text_of(app))
        await pilot.press("ctrl+o")
        await until(pilot, lambda: isinstance(app.screen, ContextViewer))
        await pilot.press("1", "end", "space", "b")
        await pilot.pause(0.1)
        assert isinstance(app.screen, ContextViewer)
        await pilot.press("escape")
        chat.action_stop()
        await until(pilot, lambda: not chat.is_busy)

    played(made(tmp_path, [says("", call("bash", command="sleep 30"))], store=store, mode=Mode.ALL), play)
    assert len(store.conversations(None)) == 1


def split() -> tuple[History, tuple[Segment, ...]]:
    """Three turns of two calls each; a brief stands for all before the second call of turn 2."""
    placing = session(Setup(budget=Budget(), rules=rules_for("", "", ""), policy=None))
    drafts = [
        draft
        for turn in (1, 2, 3)
        for draft in (
            human(f"task {turn}"),
            reply(called("read", f"a{turn}", path=f"{turn}a.py")),
            result(f"text of {turn}a", f"a{turn}"),
            reply(called("read", f"b{turn}", path=f"{turn}b.py")),
            result(f"text of {turn}b", f"b{turn}"),
        )
    ]
    entries = [entry for draft in drafts for entry in placing.append(draft).entries]
    brief = Insert(
        before_entry=8, order=0, key="p0", role=Role.USER, text="what was: read:1@aaaa", tokens=3, stands_for="history"
    )
    edits = [Drop(entry=n, block=0) for n in range(8) if n not in (0, 5)]
    commits = (
        Commit(n=0, entries=3, policy="clip", moment="admission", reason="", edits=(_clip(2),)),
        Commit(n=1, entries=15, policy="handoff", moment="manual", reason="", edits=(*edits, brief)),
    )
    history = History(
        title="made", format="made", model="", index=placing.index, read=entries.__getitem__, commits=commits, usages={}
    )
    return history, lists(history).segments


def test_what_is_built_is_held_to_the_budget_and_terms_of_its_source() -> None:
    history, segments = split()
    terms = Terms(
        policy="cwl",
        gate="selfgc-paper",
        clip=900,
        provider="groq",
        base_url="https://api.groq.com/openai/v1",
        tools={"recall": 7},
    )
    budget = Budget(ceiling=20_000)
    source = Conversation(
        id="source", tenant="/home/kit", model="llama", dialect="openai-chat", budget=encoded(budget), terms=encoded(terms)
    )
    store = MemoryStore()
    store.create(source)
    picks = Picks(turns=frozenset({2, 3}))  # entries 5 to 14 become 0 to 9
    sheet = build(
        replace(history, sheet=source, model="llama"),
        picks,
        segments,
        store=store,
        folder=Path("/home/kit"),
        count=by_words,
        dialect="openai-chat",
    )
    assert (sheet.model, sheet.dialect, Budget.stored(sheet.budget)) == ("llama", "openai-chat", budget)
    assert Terms.stored(sheet.terms) == replace(terms, tools={"recall": 2})
    context = Context(store=store, conversation=sheet.id, tokenizer=by_words)
    assert (context.session.setup.budget, context.base_url) == (budget, terms.base_url)


def _clip(entry: int) -> Replace:
    return Replace(entry=entry, block=0, text="clipped: recall read:1@aaaa", tokens=2, routes=("read:1@aaaa",))


def shown(history: History, picks: Picks, segments: tuple[Segment, ...]) -> list[str]:
    """What the model sees of what is built."""
    store = MemoryStore()
    sheet = build(history, picks, segments, store=store, folder=Path("/home/kit"), count=by_words)
    context = Context(dialect="openai-chat", store=store, conversation=sheet.id, tokenizer=by_words)
    return [
        str(message.get("content") or message["tool_calls"][0]["function"]["arguments"])
        for message in context.request()["messages"]
    ]


def test_a_brief_and_the_rest_of_the_turn_that_it_cuts_are_chosen_together() -> None:
    history, segments = split()
    assert (segments[0].turns, segments[0].parts, segments[1].turns, segments[1].parts) == ((1,), (2,), (3,), (2,))
    picks = Picks().brief(segments[0]).turn(2, segments)
    assert picks == Picks(turns=frozenset({2}), briefs=frozenset({"p0"}))
    assert shown(history, picks, segments) == ["task 2", "what was: read:1@aaaa", '{"path":"2b.py"}', "text of 2b"]
    assert picks.turn(1, segments) == Picks(turns=frozenset({1, 2}))


def test_a_turn_that_a_brief_took_is_shown_as_it_was_before_the_brief() -> None:
    history, segments = split()
    assert shown(history, Picks(turns=frozenset({1})), segments) == [
        "task 1",
        '{"path":"1a.py"}',
        "clipped: recall read:1@aaaa",
        '{"path":"1b.py"}',
        "text of 1b",
    ]


def test_a_recall_of_the_source_is_no_copy_of_a_namesake_here() -> None:
    placing = session(Setup(budget=Budget(), rules=rules_for("", "", ""), policy=None))
    for draft in (
        human("go"),
        reply(called("read", "a", path="a")),
        result("x", "a"),
        reply(called("recall", "b", handle="read:1@ffff")),
    ):
        placing.append(draft)
    (recalled,) = placing.index.recalls.values()
    assert recalled.sources == ("read:1@ffff",)


@pytest.mark.parametrize("dialect", ["openai-chat", "openai-responses", "anthropic"])
def test_a_provider_takes_what_was_built_and_the_model_recalls_what_its_brief_names(dialect: str, tmp_path: Path) -> None:
    """An agent's own session is briefed and built from; the new one asks a provider that refuses what the real ones refuse."""
    folder, store = tmp_path / "ws", MemoryStore()
    folder.mkdir()
    (folder / "a.txt").write_text("".join(f"line {n}\n" for n in range(300)))
    name = "claude-sonnet-4-5" if dialect == "anthropic" else "gpt-5-mini"

    async def turns(url: str, resume: str, *texts: str) -> Agent:
        base = url if dialect == "anthropic" else f"{url}/v1"
        speaker = SdkSpeaker(name, dialect, base_url=base, api_key="k")
        world = World(home=tmp_path, store=store, today=None, tokens=by_words, speaker=lambda _: speaker)
        settings = Settings(folder=folder, model=f"{dialect}:{name}", base_url=base, mode=Mode.ALL, resume=resume)
        agent = await Agent.open(settings, world)
        for text in texts:
            async for _ in agent.run(text):
                pass
        await agent.close()
        return agent

    first = (
        Reply(text="I look.", calls=(Call(name="read", arguments='{"path": "a.txt"}'),)),
        Reply(text="It has lines."),
        Reply(text="I look again.", calls=(Call(name="read", arguments='{"path": "a.txt", "offset": 100}'),)),
        Reply(text="Done."),
    )
    with serve(FakeProvider(Script(replies=first)).app) as url:
        agent = asyncio.run(turns(url, "", "look", "look again"))
    context = agent.context
    handle = _handle(context.session.index, "read:1")
    _brief(context, context.session.index.turns[1].start[0], f"It was read; {handle} has it.")
    history = of_context(context, title="before", model=name)
    built = build(
        history,
        Picks(turns=frozenset({2}), briefs=frozenset({"p0"})),
        lists(history).segments,
        store=store,
        folder=folder.resolve(),
        count=by_words,
        system=agent.admitted.system,
        dialect=dialect,
    )
    then = (
        Reply(text="", calls=(Call(name="recall", arguments=json.dumps({"handle": handle, "lines": "7"})),)),
        Reply(text="It says line 6."),
    )
    provider = FakeProvider(Script(replies=then))
    with serve(provider.app) as url:
        asyncio.run(turns(url, built.id, "what does line 7 say?"))
    assert [each.status for each in provider.seen] == [200, 200]
    body = words_of(provider.seen[-1].body)
    assert f"It was read; {handle}" in body
    assert "You are Tenure" in body
    assert "look again" in body
    assert '"look"' not in body
    results = [block.text for entry in store.entries(built.id) for block in entry.blocks if block.origin is Origin.TOOL]
    assert results[-1] == "7\tline 6"


def _brief(context: Context, before: int, text: str) -> None:
    """A brief that stands for all before an entry but the prompt and human words, as a handoff commits it."""
    index = context.session.index
    edits: list[Any] = [
        Drop(entry=entry, block=block)
        for entry in range(1, before)
        for block, facts in enumerate(index.entries[entry].blocks)
        if facts.origin is not Origin.HUMAN
    ]
    insert = Insert(
        before_entry=before, order=0, key="p0", role=Role.USER, text=text, tokens=by_words(text), stands_for="history"
    )
    commit = Commit(
        n=len(context.session.commits), entries=len(index), policy="handoff", moment="manual", reason="", edits=(*edits, insert)
    )
    context.store.commit(context.conversation, commit)
    context.session.commit(commit)


def test_a_session_in_another_store_is_copied_there_so_that_its_handles_still_resolve(tmp_path: Path) -> None:
    del tmp_path
    there, here = MemoryStore(), MemoryStore()
    source = there.create(Conversation(id="source", tenant="/home/kit"))
    placing = session(Setup(budget=Budget(), rules=rules_for("", "", ""), policy=None, tenant="/home/kit"))
    for draft in (human("one"), reply(called("read", "a", path="a.py")), result("text of a", "a"), human("two"), reply("done")):
        there.append(source.id, placing.append(draft).entries)
    history = of_records(there, source.id)
    picks = Picks(turns=frozenset({2}))
    sheet = build(history, picks, lists(history).segments, store=here, folder=Path("/home/kit"), count=by_words)
    assert sheet.parent == "source"
    context = Context(store=here, conversation=sheet.id, tokenizer=by_words)
    assert "text of a" in context.recall(_handle(history.index, "read:1"))
    assert [each.id for each in here.conversations(None)].count("source") == 1


def _handle(index: Index, object_: str) -> str:
    return index.handle(object_, index.spans[0].call[0])
