"""The contract of `Records`, held to every store there is."""

import os
from collections.abc import Iterator
from hashlib import sha256
from itertools import count
from pathlib import Path
from threading import Thread
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine
from sqlalchemy import text as sql

from tenure.engine.meter.ledger import ROLES, Spent
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import (
    Block,
    Draft,
    Entry,
    Media,
    Opaque,
    Origin,
    Role,
    Spill,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
)
from tenure.engine.view.edit import Commit, Drop, Insert, LoggedAction, Price, Remove, Replace
from tenure.errors import Conflict, InputError, StoreError
from tenure.store.records import Conversation, Hold, Observed, Records
from tenure.store.store import Store
from tenure.testing.builders import call, human, reply, result
from tenure.testing.store import MemoryStore

POSTGRES = os.environ.get("TENURE_TEST_POSTGRES", "")
KINDS = [
    "memory",
    "sqlite-file",
    "sqlite-memory",
    "sqlite-sealed",
    pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server")),
    pytest.param("postgres-sealed", marks=pytest.mark.skipif(not POSTGRES, reason="no server")),
]
KEY = bytes(range(32))

WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)
NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
ORIGINS = st.sampled_from(Origin)
MEDIA = st.builds(
    Media, media_type=WORDS, sha256=WORDS, size=st.integers(0, 10**12), width=st.integers(0, 9999), text=WORDS, origin=ORIGINS
)
BLOCKS: st.SearchStrategy[Block] = st.one_of(
    st.builds(Text, text=WORDS, origin=ORIGINS),
    st.builds(Thinking, text=WORDS, seal=WORDS),
    st.builds(ToolCall, call_id=WORDS, name=WORDS, arguments=WORDS),
    MEDIA,
    st.builds(ToolResult, call_id=WORDS, text=WORDS, error=st.booleans(), media=st.lists(MEDIA, max_size=2).map(tuple)),
    st.builds(Opaque, type=WORDS, text=WORDS),
)
DRAFTS = st.builds(
    Draft,
    role=st.sampled_from(Role),
    blocks=st.lists(BLOCKS, max_size=3).map(tuple),
    dialect=st.sampled_from(["tenure", "anthropic", "openai_chat"]),
    payload=st.binary(max_size=80),
    at=NAMES,
    model=NAMES,
    source=st.integers(0, 9),
    line=st.integers(0, 10**6),
)


@pytest.fixture(scope="module", params=KINDS)
def records(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Records]:
    with opened(request.param, tmp_path_factory.mktemp("store")) as store:
        yield store


def opened(kind: str, directory: Path) -> Records:
    ticks = count()
    now = lambda: f"2026-01-01T00:00:00.{next(ticks):06}Z"  # noqa: E731 - a clock
    if kind == "memory":
        return MemoryStore(now=now)
    place, _, sealed = kind.partition("-")
    if kind == "postgres-sealed":
        engine = create_engine(POSTGRES)
        with engine.begin() as connection:
            connection.execute(sql("CREATE SCHEMA IF NOT EXISTS sealed"))
        engine.dispose()
    file, schema = f"sqlite:///{directory}/tenure.db", "&options=-csearch_path%3Dsealed" if sealed else ""
    url = "sqlite://" if kind == "sqlite-memory" else file if place == "sqlite" else POSTGRES + schema
    return Store(url, now=now, keys=[KEY] if sealed == "sealed" else [])


def placed(drafts: list[Draft], tenant: str = "") -> list[Entry]:
    chain = Chain(tenant)
    return [chain.place(draft, tuple(range(4, 4 + len(draft.blocks)))) for draft in drafts]


def said(*words: str) -> list[Entry]:
    return placed([Draft(role=Role.USER, blocks=(Text(text=word, origin=Origin.HUMAN),)) for word in words])


def created(records: Records, *words: str, tenant: str = "") -> str:
    """A new conversation in which these words were said."""
    new = uuid4().hex
    records.create(Conversation(id=new, tenant=tenant))
    records.append(new, said(*words))
    return new


def commit(n: int, *edits: Drop | Replace | Insert | Remove, entries: int = 0) -> Commit:
    return Commit(n=n, entries=entries, policy="cwl", moment="manual", reason="a test", edits=edits)


@given(drafts=st.lists(DRAFTS, max_size=5), tenant=NAMES)
@settings(max_examples=60, deadline=None)
def test_what_is_read_equals_what_was_appended(records: Records, drafts: list[Draft], tenant: str) -> None:
    new, entries = uuid4().hex, placed(drafts, tenant)
    records.create(Conversation(id=new, tenant=tenant))
    records.append(new, entries[:2])
    records.append(new, entries[2:])
    assert list(records.entries(new)) == entries
    assert [records.entry(new, entry.n) for entry in entries] == entries
    assert records.verify(new) is None
    assert records.conversation(new).length == len(entries)


def test_a_conversation_keeps_its_cover_sheet(records: Records) -> None:
    cover = Conversation(
        id=uuid4().hex, tenant="t", title="A title\N{PARTY POPPER}", model="m", dialect="anthropic", budget='{"target":1}'
    )
    stored = records.create(cover)
    assert records.conversation(cover.id) == stored
    assert (stored.title, stored.budget, stored.model, stored.length) == (cover.title, cover.budget, "m", 0)
    assert stored.created


def test_conversations_of_a_tenant_come_newest_first(records: Records) -> None:
    tenant = uuid4().hex
    ids = [records.create(Conversation(id=uuid4().hex, tenant=tenant)).id for _ in range(3)]
    created(records, tenant=uuid4().hex)
    assert [each.id for each in records.conversations(tenant)] == ids[::-1]
    assert ids[0] in [each.id for each in records.conversations(None)]


def test_an_id_that_is_taken_is_refused(records: Records) -> None:
    taken = created(records, "a")
    with pytest.raises(Conflict):
        records.create(Conversation(id=taken))
    with pytest.raises(Conflict):
        records.fork(taken, 0, taken)
    assert records.conversation(taken).length == 1


def test_a_conversation_begins_with_its_first_entries_or_not_at_all(records: Records) -> None:
    new, tenant = uuid4().hex, uuid4().hex
    entries = placed([Draft(role=Role.USER, blocks=(Text(text=word, origin=Origin.HUMAN),)) for word in "abc"], tenant)
    sheet = records.create(Conversation(id=new, tenant=tenant), entries)
    assert records.conversation(new) == sheet
    assert (sheet.length, sheet.head, list(records.entries(new))) == (3, entries[-1].id, entries)
    assert records.verify(new) is None
    for wrong in (entries[1:], entries[::2], said("of another tenant")):
        with pytest.raises(InputError):
            records.create(Conversation(id=uuid4().hex, tenant=tenant), wrong)
    with pytest.raises(Conflict):
        records.create(Conversation(id=new, tenant=tenant), entries[:1])
    assert [each.id for each in records.conversations(tenant)] == [new]
    assert list(records.entries(new)) == entries


def test_a_title_is_given_once_and_changed_only_by_who_knows_it(records: Records) -> None:
    new = created(records, "a")
    before = records.conversation(new)
    assert records.entitle(new, "First \N{PARTY POPPER}")
    assert not records.entitle(new, "Too late")
    assert records.conversation(new).title == "First \N{PARTY POPPER}"
    assert records.entitle(new, "Better", instead="First \N{PARTY POPPER}")
    after = records.conversation(new)
    assert (after.title, after.head, after.length, after.created) == ("Better", before.head, before.length, before.created)
    with pytest.raises(InputError, match="nowhere"):
        records.entitle("nowhere", "A title")


def test_what_is_unknown_is_said_to_be(records: Records) -> None:
    for ask in (
        records.conversation,
        records.entries,
        records.commits,
        records.usages,
        records.asides,
        records.holds,
        records.verify,
    ):
        with pytest.raises(InputError, match="no conversation 'nowhere'"):
            ask("nowhere")
    with pytest.raises(InputError, match="nowhere"):
        records.append("nowhere", said("a"))
    with pytest.raises(InputError, match="nowhere"):
        records.commit("nowhere", commit(0))
    with pytest.raises(InputError, match="nowhere"):
        records.observe("nowhere", 0, Usage())
    with pytest.raises(InputError, match="nowhere"):
        records.note("nowhere", Spent())
    with pytest.raises(InputError, match="nowhere"):
        records.hold("nowhere", Hold(object="read:1"))
    with pytest.raises(InputError, match="nowhere"):
        records.release("nowhere", Hold(object="read:1"))
    with pytest.raises(InputError, match="no entry 1"):
        records.entry(created(records, "a"), 1)


def test_the_second_writer_gets_a_conflict_and_stores_nothing(records: Records) -> None:
    new = created(records, "a")
    first, second = said("a", "b")[1:], said("a", "c", "d")[1:]
    records.append(new, first)
    with pytest.raises(Conflict, match="2 entries"):
        records.append(new, second, [commit(0)])
    assert (list(records.entries(new, 1)), records.commits(new)) == (first, ())


def test_a_writer_on_another_head_of_the_same_length_gets_a_conflict(records: Records) -> None:
    new = created(records, "a")
    with pytest.raises(Conflict):
        records.append(new, said("x", "b")[1:])


def test_entries_and_their_commits_are_stored_together_or_not_at_all(records: Records) -> None:
    new = created(records, "a")
    records.commit(new, commit(0))
    with pytest.raises(Conflict, match="1 commits"):
        records.append(new, said("a", "b")[1:], [commit(0)])
    assert (records.conversation(new).length, len(records.commits(new)), records.verify(new)) == (1, 1, None)
    records.append(new, said("a", "b")[1:], [commit(1), commit(2)])
    assert (records.conversation(new).length, records.conversation(new).commits) == (2, 3)


def test_entries_out_of_order_are_refused(records: Records) -> None:
    new = created(records)
    entries = said("a", "b", "c")
    with pytest.raises(InputError, match="entry 2 after entry 0"):
        records.append(new, [entries[0], entries[2]])
    with pytest.raises(InputError, match="commit 2"):
        records.append(new, entries, [commit(0), commit(2)])
    assert records.conversation(new).length == 0


def test_a_commit_is_read_back_as_it_was(records: Records) -> None:
    new = created(records, "a")
    price = Price(gain_usd=0.1, d=3, s=4, n=2.5, p=1.0, w=1e-6, r=1e-7)
    full = Commit(
        n=0,
        entries=1,
        policy="cwl",
        moment="before-call",
        reason="it pays",
        forced=True,
        tokens_before=9,
        tokens_after=4,
        ratio=1.25,
        actions=(LoggedAction(kind="strip", object="episode:a", level="bulk"),),
        edits=(
            Drop(entry=0, block=0),
            Replace(entry=0, block=0, text="\0…", tokens=1, routes=("read:1@00",)),
            Insert(before_entry=1, order=0, key="r", role=Role.USER, text="x", tokens=2),
            Remove(key="r"),
        ),
        price=price,
    )
    records.commit(new, full)
    assert records.commits(new) == (full,)


def test_a_stretch_of_entries_can_be_read(records: Records) -> None:
    new, entries = created(records, *"abcdefgh"), said(*"abcdefgh")
    assert list(records.entries(new, 2, 5)) == entries[2:5]
    assert list(records.entries(new, -3, 99)) == entries
    assert list(records.entries(new, 5, 2)) == []


def test_entries_appended_meanwhile_are_not_seen(records: Records) -> None:
    new = created(records, *"ab")
    reading = records.entries(new)
    records.append(new, said(*"abc")[2:])
    assert len(list(reading)) == 2


def test_a_usage_report_replaces_the_one_before(records: Records) -> None:
    new = created(records, *"abc")
    usage = Usage(uncached=1, cache_write=2, cache_read=3, output=4)
    records.observe(new, 2, Usage(uncached=9))
    records.observe(new, 1, usage, "m", "2026-01-01T00:00:00Z")
    records.observe(new, 2, usage, usd=0.1 + 0.2)
    assert records.usages(new) == (
        Observed(n=1, usage=usage, model="m", at="2026-01-01T00:00:00Z"),
        Observed(n=2, usage=usage, usd=0.1 + 0.2),
    )


@given(
    st.lists(
        st.builds(
            Spent,
            role=st.sampled_from(ROLES),
            model=NAMES,
            usage=st.builds(Usage, uncached=st.integers(0, 2**31 - 1), output=st.integers(0, 2**31 - 1)),
            usd=st.none() | st.floats(0, 1e6),
            at=NAMES,
        ),
        max_size=5,
    )
)
@settings(max_examples=30, deadline=None)
def test_calls_of_helper_models_are_read_back_in_order_and_belong_to_no_entry(records: Records, calls: list[Spent]) -> None:
    new, other = created(records), created(records)
    for spent in calls:
        records.note(new, spent)
        records.note(other, Spent(role="judge"))
    assert records.asides(new) == tuple(calls)
    assert records.usages(new) == ()
    assert records.asides(records.fork(new, 0, uuid4().hex).id) == ()


def test_calls_are_counted_of_a_tenants_newest_conversations(records: Records) -> None:
    tenant = uuid4().hex
    for calls in (3, 0, 5):
        new = records.create(Conversation(id=uuid4().hex, tenant=tenant)).id
        for n in range(calls):
            records.observe(new, n, Usage(output=1))
            records.observe(new, n, Usage(output=2))
    assert records.call_counts(tenant) == (3, 5)
    assert records.call_counts(tenant, newest=1) == (5,)
    assert records.call_counts(uuid4().hex) == ()


def test_holds_are_kept_until_they_are_released(records: Records) -> None:
    new = created(records, "a")
    pin, handle = Hold(kind="pin", object="entry:0/1", reason="mine"), Hold(kind="handle", object="read:1")
    for hold in (pin, handle, Hold(kind="pin", object="entry:0/1", reason="still mine")):
        records.hold(new, hold)
    assert records.holds(new) == (handle, Hold(kind="pin", object="entry:0/1", reason="still mine"))
    assert records.release(new, pin)
    assert not records.release(new, pin)
    assert records.holds(new) == (handle,)


def test_a_fork_shares_the_entries_below_its_point_and_then_grows_alone(records: Records) -> None:
    source, entries = created(records, *"abcd"), said(*"abcd")
    fork = records.fork(source, 2, uuid4().hex, "a try")
    other = said("a", "b", "x", "y")
    records.append(fork.id, other[2:])
    records.append(source, said(*"abcde")[4:])
    assert list(records.entries(fork.id)) == other
    assert list(records.entries(source)) == said(*"abcde")
    assert (fork.parent, fork.forked_at, fork.title, fork.length, fork.head) == (source, 2, "a try", 2, entries[1].id)
    assert records.verify(fork.id) is None


def test_forks_of_forks_read_through_all_their_ancestors(records: Records) -> None:
    oldest = created(records, *"abcdef")
    middle = records.fork(oldest, 4, uuid4().hex).id
    records.append(middle, said(*"abcdXY")[4:])
    below, above = records.fork(middle, 2, uuid4().hex).id, records.fork(middle, 5, uuid4().hex).id
    records.append(below, said(*"abZ")[2:])
    assert list(records.entries(below)) == said(*"abZ")
    assert list(records.entries(above)) == said(*"abcdX")
    assert list(records.entries(above, 3, 5)) == said(*"abcdX")[3:5]
    assert [records.verify(each) for each in (oldest, middle, below, above)] == [None] * 4


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)), max_size=6))
@settings(max_examples=30, deadline=None)
def test_every_fork_reads_as_if_it_had_been_copied(records: Records, forks: list[tuple[int, int, int]]) -> None:
    known = {created(records, *"abcde"): said(*"abcde")}
    for which, at, more in forks:
        source = sorted(known)[which % len(known)]
        at %= len(known[source]) + 1
        fork = records.fork(source, at, uuid4().hex).id
        chain = Chain()
        for entry in known[source][:at]:
            assert chain.follow(entry) is None
        new = [chain.place(Draft(role=Role.USER, blocks=(Text(text=fork, origin=Origin.HUMAN),)), (9,)) for _ in range(more)]
        records.append(fork, new)
        known[fork] = known[source][:at] + new
    for each, entries in known.items():
        assert list(records.entries(each)) == entries
        assert records.verify(each) is None


def test_a_fork_at_the_beginning_is_empty(records: Records) -> None:
    fork = records.fork(created(records, *"ab"), 0, uuid4().hex)
    records.append(fork.id, said("z"))
    assert list(records.entries(fork.id)) == said("z")


@pytest.mark.parametrize("at", [-1, 3])
def test_a_fork_point_outside_the_source_is_refused(records: Records, at: int) -> None:
    with pytest.raises(InputError, match="0 to 2"):
        records.fork(created(records, *"ab"), at, uuid4().hex)


def test_a_fork_inherits_commits_up_to_the_first_that_touches_what_it_does_not_share(records: Records) -> None:
    source = uuid4().hex
    drafts = [draft for n in range(9) for draft in (reply(call("read", f"c{n}")), result("text", f"c{n}"))]
    records.create(Conversation(id=source), placed([human("read it all"), *drafts]))
    for n, entry in enumerate((2, 18, 4)):
        records.commit(source, commit(n, Replace(entry=entry, block=0, text="cleared", tokens=1), entries=19))
    fork = records.fork(source, 17, uuid4().hex)
    assert [(each.n, each.entries, each.edits) for each in records.commits(fork.id)] == [
        (0, 17, (Replace(entry=2, block=0, text="cleared", tokens=1),))
    ]
    records.commit(fork.id, commit(1))
    assert (fork.commits, records.conversation(fork.id).commits, len(records.commits(source))) == (1, 2, 3)


def test_a_fork_whose_sources_commits_contradict_each_other_is_a_store_error(records: Records) -> None:
    source = created(records, *"abcd")
    for n in range(2):
        records.commit(source, commit(n, Drop(entry=0, block=0), entries=9))
    with pytest.raises(StoreError, match="do not follow each other"):
        records.fork(source, 2, uuid4().hex)


def test_a_fork_sees_its_parents_usage_of_shared_entries_and_no_holds(records: Records) -> None:
    source = created(records, *"abcd")
    for n in range(4):
        records.observe(source, n, Usage(output=n))
    records.hold(source, Hold(object="entry:0"))
    fork = records.fork(source, 2, uuid4().hex).id
    records.observe(fork, 2, Usage(output=77))
    assert [(each.n, each.usage.output) for each in records.usages(fork)] == [(0, 0), (1, 1), (2, 77)]
    assert records.holds(fork) == ()


def test_a_conversation_is_forgotten_with_all_that_was_made_from_it_and_nothing_else(records: Records) -> None:
    source, other = created(records, *"abc"), created(records, *"abc")
    fork = records.fork(source, 2, uuid4().hex).id
    built = records.create(Conversation(id=uuid4().hex, parent=fork)).id
    records.observe(source, 1, Usage(output=1))
    records.note(fork, Spent(role="planner", usage=Usage(output=1)))
    records.hold(source, Hold(object="entry:0"))
    gone = records.forget(source)
    assert set(gone) == {source, fork, built}
    assert gone[-1] == source
    for each in gone:
        with pytest.raises(InputError, match="no conversation"):
            records.conversation(each)
        with pytest.raises(InputError, match="no conversation"):
            records.append(each, said("d"))
    assert [entry.blocks[0].text for entry in records.entries(other)] == [*"abc"]
    assert records.verify(other) is None


def test_what_is_unknown_cannot_be_forgotten(records: Records) -> None:
    with pytest.raises(InputError, match="no conversation"):
        records.forget("nowhere")


def test_no_byte_of_what_was_forgotten_stays_in_the_files(tmp_path: Path) -> None:
    word = "unforgettable-" + "x" * 5_000
    with Store(f"sqlite:///{tmp_path}/tenure.db") as store:
        kept, gone = created(store, "kept-words"), created(store, word, "again " + word)
        store.forget(gone)
        left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        assert b"unforgettable" not in left
        assert next(store.entries(kept)).blocks[0].text == "kept-words"


def test_an_output_in_a_file_goes_with_the_last_conversation_that_refers_to_it(tmp_path: Path) -> None:
    output = b"a long output"
    spill = Spill(sha256=sha256(output).hexdigest(), size=len(output), lines=1, of_size=len(output), of_lines=1, left=(0, 0))
    drafts = [Draft(role=Role.USER, blocks=(ToolResult(call_id="c", text="cut", spill=spill),))]
    with Store(f"sqlite:///{tmp_path}/tenure.db") as store:
        assert store.spills.folder is not None
        store.spills.folder.mkdir()
        (store.spills.folder / spill.sha256).write_bytes(output)
        for each in ("one", "two"):
            store.create(Conversation(id=each), placed(drafts))
        part = store.spills.part("one", 3, "c7")
        assert part is not None
        part.write_bytes(b"begun")
        store.forget("one")
        assert store.spills.has(spill)
        assert not part.exists()
        store.forget("two")
        assert not store.spills.has(spill)


def test_writers_in_several_threads_never_lose_an_entry(records: Records) -> None:
    new, stored = created(records), []

    def write(word: str) -> None:
        done = 0
        while done < 5:
            chain = Chain()
            for entry in records.entries(new):
                chain.follow(entry)
            try:
                records.append(new, [chain.place(Draft(role=Role.USER, blocks=(Text(text=word, origin=Origin.HUMAN),)), (1,))])
            except Conflict:
                continue
            stored.append(word)
            done += 1

    threads = [Thread(target=write, args=(word,)) for word in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.blocks[0].text for entry in records.entries(new)) == sorted(stored)
    assert records.verify(new) is None
