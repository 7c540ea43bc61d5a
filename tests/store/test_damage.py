"""A damaged store is a sentence with a way out, in every command and through the library."""

import asyncio
import json
import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from damages import DAMAGES, Damage, damaged
from homes import World
from textual.pilot import Pilot

from tenure import Context
from tenure.agent.screens.app import TenureApp
from tenure.agent.screens.chat import Chat
from tenure.agent.screens.history import of_address
from tenure.agent.screens.pickers import Picker
from tenure.agent.screens.viewer import ViewerApp
from tenure.agent.settings import Settings
from tenure.agent.settings import World as Outside
from tenure.cli.main import main
from tenure.engine.meter.tokens import o200k
from tenure.engine.record.entry import Role
from tenure.engine.view.edit import Commit, Insert
from tenure.errors import Damaged, TenureError
from tenure.store.store import Store

MANY = 150


def test_every_command_works_on_a_store_that_is_whole(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for command in world.commands():
        (world.folder / "new.db").unlink(missing_ok=True)
        world.restored()
        code = main(command)
        assert code == 0, f"{command}: {capsys.readouterr().err}"


def every_way_to_use(
    world: World, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], str], part: slice = slice(None)
) -> None:
    """Damage the store anew for each command of a part of them, and hold it to a sentence."""
    for command in world.commands()[part]:
        (world.folder / "new.db").unlink(missing_ok=True)
        how = damage(world.restored())
        capsys.readouterr()
        code = main(command)  # an exception is a traceback
        said = capsys.readouterr()
        where = f"{how}; {command[:3]}: {code}\n{said.out[-300:]}\n{said.err[-600:]}"
        assert code in (0, 1, 2, 3), where
        assert "Traceback" not in said.out + said.err, where
        if code in (1, 2) and command[0] != "verify":
            assert re.search(r"^(tenure: |  /).{20,}", said.err, re.MULTILINE), where
    for use in (library, viewer)[part]:
        damage(world.restored())
        with suppress(TenureError):  # any other error is a defect
            use(world)
    if part.start in (None, 0):
        damage(world.restored())
        asyncio.run(screens(world))


def library(world: World) -> None:
    with Context(store=f"sqlite:///{world.store}", conversation=world.conversation) as context:
        context.extend([{"role": "user", "content": "Go on."}])
        context.request(max_tokens=9)


def viewer(world: World) -> None:
    """`tenure context`, as far as it goes without a terminal: every list of the viewer, and what its last call saw."""
    history = of_address(f"{world.store}#{world.conversation}", o200k())

    async def play() -> None:
        async with ViewerApp(lambda: history).run_test(size=(100, 30)) as pilot:
            await pilot.press("1", "end", "enter", "2", "end", "3", "end")

    asyncio.run(play())


async def screens(world: World, conversation: str = "") -> list[str]:
    """The terminal interface: the session goes on, its window and the other sessions are looked at. Whatever it says, it stays.

    What the list of sessions says of each.
    """
    session, rows = conversation or world.conversation, list[str]()
    settings = Settings(folder=world.work, model=f"scripted:{world.script}", resume=session, store=str(world.store))
    app = TenureApp(settings, Outside(today=None, local=()))
    async with app.run_test(size=(100, 30)) as pilot:
        await opened(pilot, app)
        await pilot.press("ctrl+o")
        await pilot.pause()
        if not isinstance(app.screen, Chat):
            await pilot.press("end", "enter", "escape", "escape")
        await opened(pilot, app)
        for key in (*"/sessions", "enter"):
            await pilot.press(key)
        await pilot.pause()
        if isinstance(app.screen, Picker):
            rows = [" ".join(row.texts) for row in app.screen.rows]
            await pilot.press("end", "enter")
        await opened(pilot, app)
        await app.leave()
    return rows


async def opened(pilot: Pilot[Any], app: TenureApp) -> None:
    """Wait until nothing is being opened."""
    await pilot.pause()
    while any(worker.group == "opening" and not worker.is_finished for worker in app.workers) and isinstance(app.screen, Chat):
        await pilot.pause(0.01)


def test_the_list_of_sessions_says_which_is_damaged_and_has_the_others(world: World) -> None:
    with sqlite3.connect(world.restored()) as connection:
        connection.execute("DELETE FROM entry WHERE n = 0 AND conversation = ?", (world.conversation,))
    connection.close()
    rows = asyncio.run(screens(world, "other"))
    assert [row for row in rows if "damaged: entry 0 is missing" in row and world.conversation[:8] in row]
    assert [row for row in rows if "another" in row]


@pytest.mark.parametrize(
    ("number", "damage"), [*enumerate(dict.fromkeys(DAMAGES))], ids=lambda each: getattr(each, "__name__", "")
)
def test_damage_of_every_kind_is_a_sentence_in_a_fifth_of_the_commands(
    world: World, number: int, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    every_way_to_use(world, capsys, lambda path: damage(path, random.Random(damage.__name__)), slice(number % 5, None, 5))


@pytest.mark.long
@pytest.mark.parametrize("damage", dict.fromkeys(DAMAGES), ids=lambda damage: damage.__name__)
def test_damage_of_every_kind_is_a_sentence_in_every_command(
    world: World, damage: Damage, capsys: pytest.CaptureFixture[str]
) -> None:
    every_way_to_use(world, capsys, lambda path: damage(path, random.Random(damage.__name__)))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(MANY))
def test_random_damage_is_a_sentence_in_every_command(world: World, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    every_way_to_use(world, capsys, lambda path: damaged(path, random.Random(seed)))


def test_the_agent_tells_what_was_left_out_as_a_notice(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(world.restored()) as connection:
        connection.execute("UPDATE usage SET output = 'many' WHERE n = 1")
    connection.close()
    run = ["run", "Go on.", "--model", f"scripted:{world.script}", "--resume", world.conversation]
    assert main([*run, "--json"]) == 0
    said = capsys.readouterr()
    notices = [event["text"] for event in map(json.loads, said.out.splitlines()) if event["event"] == "noticed"]
    assert [each for each in notices if "the usage of entry 1" in each and "--repair NEW.db" in each]
    assert said.err == ""
    assert main(run) == 0
    assert "the usage of entry 1" in " ".join(capsys.readouterr().err.split())


def test_an_audit_says_the_whole_way_out_of_a_damaged_store(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    with sqlite3.connect(world.restored()) as connection:
        connection.execute("UPDATE conversation SET parent = 'nowhere' WHERE id = 'fork'")
    connection.close()
    assert main(["audit", f"{world.store}#fork", "--keep", "no"]) == 2
    assert f"tenure verify {world.store} --repair NEW.db" in " ".join(capsys.readouterr().err.split())
    with sqlite3.connect(world.restored()) as connection:
        connection.execute("DELETE FROM entry WHERE n = 3 AND conversation = ?", (world.conversation,))
    connection.close()
    assert main(["audit", f"{world.store}#{world.conversation}", "--keep", "no"]) == 0
    way = f"tenure verify {world.store} --repair NEW.db"
    assert "".join(way.split()) in "".join(capsys.readouterr().out.split())  # folded, not cut


def cut_off(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])


def without(table: str) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            connection.execute(f"DROP TABLE {table}")
        connection.close()

    return damage


@pytest.mark.parametrize("damage", [cut_off, without("entry"), without("conversation")], ids=["cut", "entry", "conversation"])
def test_commands_say_the_same_sentence_of_a_store_of_which_nothing_can_be_read(
    world: World, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(world.restored())
    store = str(world.store)
    said = set[str]()
    for command in (
        ["show", store],
        ["recall", store, "read:1"],
        ["why", store, "read:1"],
        ["replay", store],
        ["judge", store, "--model", "stand-in", "--quiet"],
    ):
        assert main(command) == 2
        said.add(capsys.readouterr().err)
    (sentence,) = said
    assert sentence.count("\n") == 1
    assert "cannot be read back" in sentence
    assert f"tenure verify {store} --repair NEW.db" in sentence


@pytest.mark.parametrize("damage", [cut_off, without("entry")], ids=["cut", "entry"])
def test_a_repair_that_can_save_nothing_does_not_advise_itself(
    world: World, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(world.restored())
    (world.folder / "new.db").unlink(missing_ok=True)
    for more in ([], ["--repair", str(world.folder / "new.db")]):
        assert main(["verify", str(world.store), *more]) == 1
        said = "".join(capsys.readouterr())
        assert "--repair" not in said
        assert ".recover" in said
    assert not (world.folder / "new.db").exists()


def test_a_repair_saves_the_messages_of_a_store_whose_commits_are_gone(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    without("commit_log")(world.restored())
    new = world.folder / "new.db"
    new.unlink(missing_ok=True)
    assert main(["verify", str(world.store), "--repair", str(new)]) == 1
    said = capsys.readouterr().out
    assert "no such table: commit_log" in said
    assert "--repair" not in said
    with Store(f"sqlite:///{new}", read_only=True) as store:
        assert store.conversation(world.conversation).length
        assert not list(store.wrongs(world.conversation))


def test_a_device_is_not_a_store_to_be_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "/dev/null"]) == 2
    said = capsys.readouterr().err
    assert "no regular file" in said
    assert "--repair" not in said


def test_recall_counts_the_messages_that_are_lost_instead_of_a_line_for_each(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    with sqlite3.connect(world.restored()) as connection:
        gone = connection.execute(
            "DELETE FROM entry WHERE n BETWEEN 2 AND 12 AND conversation = ?", (world.conversation,)
        ).rowcount
    connection.close()
    main(["recall", f"{world.store}#{world.conversation}", "user:1"])
    lines = capsys.readouterr().err.splitlines()
    assert len([line for line in lines if "--repair NEW.db" in line]) == 3
    assert [line for line in lines if f"{gone - 3} more messages cannot be read" in line]


def test_recall_says_the_right_order_of_its_words(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.restored()
    assert main(["recall", "read:2", str(world.store)]) == 2
    assert f"the session first: tenure recall {world.store} read:2" in capsys.readouterr().err


def test_an_insert_whose_words_were_forged_is_noticed_when_the_conversation_is_opened(world: World) -> None:
    """Its row is consistent in itself: only the hash does not follow from the bytes."""
    path = world.restored()
    with Store(f"sqlite:///{path}") as store:
        words = Insert(before_entry=3, order=0, key="forged", role=Role.USER, text="What was read: nothing.", tokens=5)
        length = store.conversation(world.conversation).commits
        commit = Commit(n=length, entries=25, policy="handoff", moment="manual", reason="", edits=(words,))
        store.commit(world.conversation, commit)
        assert store.verify(world.conversation) is None
    sql = "UPDATE commit_log SET body = CAST(replace(CAST(body AS TEXT), 'nothing', 'all of it') AS BLOB) WHERE n = ?"
    with sqlite3.connect(path) as connection:
        assert connection.execute(sql, (length,)).rowcount == 1
    connection.close()
    with pytest.raises(Damaged, match=rf"commit {length} cannot be read back \(it does not match its hash"):
        Context(store=f"sqlite:///{path}", conversation=world.conversation)
    with Store(f"sqlite:///{path}") as store:
        for use in (store.commits, lambda of: store.fork(of, 25, "another fork")):
            with pytest.raises(Damaged, match="does not match its hash"):
                use(world.conversation)
