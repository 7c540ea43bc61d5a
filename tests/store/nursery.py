"""Raises children that write to a store, and kills them: `python nursery.py URL DIRECTORY KILLS SEED`.

It forks itself warm, so that a child appends within a millisecond of its birth. A child reports each acknowledged entry through a pipe.
Prints one JSON object for each kill: what the child was doing, what was acknowledged, what the store holds, what is wrong.
"""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from damages import at_version
from sqlalchemy import Connection, inspect, text

from tenure.agent.tools.output import Output
from tenure.engine.record.chain import Chain
from tenure.engine.record.entry import Draft, Entry, Origin, Role, Spill, Text, ToolResult
from tenure.engine.view.edit import Commit, Drop
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS, migrate, version_of
from tenure.store.records import Conversation
from tenure.store.spills import Spills
from tenure.store.store import Store

ROUNDS_PER_CONVERSATION = 4  # verifying reads a conversation from its beginning
DOING = ("entries", "clips", "commits", "forks", "spills")
MIGRATED = 8  # one kill of so many is of a migration
LONGEST_S = 0.008  # that a child lives on after its first sign
CHUNK, CHUNKS = 1_000, 8  # bytes of an output that come at once, and how many make an output
SPILLS = Path(sys.argv[2]) / "spills"  # of a store on a server


def killed_after(child: Callable[[int], None], wait_s: float) -> int:
    """Run `child` in a fork, kill it `wait_s` after its first sign of life; how many signs it gave. It writes a byte for each."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(write)
        finally:
            os._exit(1)  # only when it ended by itself, which the parent notices
    os.close(write)
    signs = len(os.read(read, 1))
    time.sleep(wait_s)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    settle(sys.argv[1])
    assert os.WIFSIGNALED(status), "the child ended before it was killed"
    while more := len(os.read(read, 65_536)):
        signs += more
    os.close(read)
    return signs


def committer(url: str, conversation: str) -> Callable[[int], None]:
    """A child that commits for ever."""

    def child(pipe: int) -> None:
        with Store(url) as store:
            n = store.conversation(conversation).commits
            while True:
                store.commit(conversation, Commit(n=n, entries=0, policy="cwl", moment="manual", reason="r" * (n * 37 % 4_000)))
                n += 1
                os.write(pipe, b".")

    return child


def forker(url: str, conversation: str) -> Callable[[int], None]:
    """A child that forks a conversation for ever."""

    def child(pipe: int) -> None:
        with Store(url) as store:
            n = 0
            while True:
                store.fork(conversation, store.conversation(conversation).length // 2, f"{conversation}-{os.getpid()}-{n}")
                n += 1
                os.write(pipe, b".")

    return child


def kill_committing(url: str, conversation: str, wait_s: float) -> dict[str, object]:
    with Store(url) as store:
        before = store.conversation(conversation).commits
    acknowledged = killed_after(committer(url, conversation), wait_s)
    with Store(url) as store:
        after, log = store.conversation(conversation).commits, len(store.commits(conversation))
        return {
            "doing": "commits",
            "acknowledged": acknowledged,
            "stored": after - before,
            "commits": after,
            "commits_expected": after,
            "log": log,
            "wrong": store.verify(conversation),
        }


def kill_forking(url: str, conversation: str, wait_s: float) -> dict[str, object]:
    with Store(url) as store:
        if not store.conversation(conversation).length:
            chain = Chain()
            store.append(conversation, [placed(chain) for _ in range(9)], [clip(0)])
        before = forks_of(store, conversation)
    acknowledged = killed_after(forker(url, conversation), wait_s)
    with Store(url) as store:
        made = [sheet for sheet in forks_of(store, conversation) if sheet not in before]
        wrong = next((wrong for sheet in made if (wrong := store.verify(sheet.id))), None)
        return {
            "doing": "forks",
            "acknowledged": acknowledged,
            "stored": len(made),
            "commits": sum(each.commits for each in made),
            "commits_expected": len(made),
            "log": sum(len(store.commits(each.id)) for each in made),
            "wrong": wrong,
        }


def forks_of(store: Store, conversation: str) -> list[Conversation]:
    """The forks that children made; a server may hold others' conversations."""
    return [sheet for sheet in store.conversations() if sheet.parent == conversation]


def appender(url: str, conversation: str, clips: bool) -> Callable[[int], None]:
    """A child that appends entries for ever; with `clips`, each with a commit in the same transaction."""

    def child(pipe: int) -> None:
        with Store(url) as store:
            chain = Chain()
            for entry in store.entries(conversation):
                chain.follow(entry)
            while True:
                entry = placed(chain)
                store.append(conversation, (entry,), (clip(entry.n),) if clips else ())
                os.write(pipe, b".")

    return child


def placed(chain: Chain) -> Entry:
    words = f"entry {chain.length} " + "word " * (chain.length * 37 % 400)
    return chain.place(Draft(role=Role.TOOL, blocks=(Text(text=words, origin=Origin.TOOL),)), (99,))


def clip(n: int) -> Commit:
    return Commit(n=n, entries=n + 1, policy="clip", moment="admission", reason="long", edits=(Drop(entry=n, block=0),))


def kill_appending(url: str, conversation: str, clips: bool, wait_s: float) -> dict[str, object]:
    with Store(url) as store:
        before = store.conversation(conversation).length
    acknowledged = killed_after(appender(url, conversation, clips), wait_s)
    with Store(url) as store:
        after = store.conversation(conversation)
        return {
            "doing": "clips" if clips else "entries",
            "acknowledged": acknowledged,
            "stored": after.length - before,
            "commits": after.commits,
            "commits_expected": after.length if clips else 0,
            "log": len(store.commits(conversation)),
            "wrong": store.verify(conversation),
        }


def spiller(url: str, conversation: str) -> Callable[[int], None]:
    """A child that keeps outputs too large for their entries for ever; a sign is a chunk that was taken."""

    def child(pipe: int) -> None:
        with spilling(url) as store:
            chain = Chain()
            for entry in store.entries(conversation):
                chain.follow(entry)
            while True:
                part = store.spills.part(conversation, chain.length, "call")
                output = Output(CHUNK, part=part, most=2**30)
                for n in range(CHUNKS):
                    output.feed(chunk(chain.length, n))
                    os.write(pipe, b".")
                shown = output.text()
                assert output.spill is not None
                assert part is not None
                block = ToolResult(call_id="call", text=shown, spill=output.spill)
                store.append(conversation, (chain.place(Draft(role=Role.TOOL, blocks=(block,)), (99,)),))
                part.unlink()

    return child


def spilling(url: str) -> Store:
    """A store whose spills have a folder, also where it is on a server."""
    return Store(url, spills=None if url.startswith("sqlite") else Spills(SPILLS))


def chunk(entry: int, n: int) -> bytes:
    return f"{entry} {n} ".encode().ljust(CHUNK - 1, b"x") + b"\n"


def kill_spilling(url: str, conversation: str, wait_s: float) -> dict[str, object]:
    def taken(store: Store) -> int:
        """Chunks that are recorded, or in the file of a call that never ended, whole and in order."""
        length = store.conversation(conversation).length
        part = store.spills.part(conversation, length, "call")
        held = part.read_bytes() if part is not None and part.is_file() else b""
        assert held[: len(held) // CHUNK * CHUNK] == b"".join(chunk(length, n) for n in range(len(held) // CHUNK))
        return length * CHUNKS + len(held) // CHUNK

    with spilling(url) as store:
        length = store.conversation(conversation).length
    acknowledged = killed_after(spiller(url, conversation), wait_s)
    with spilling(url) as store:
        after = store.conversation(conversation)
        for entry in store.entries(conversation, length):
            (block,) = entry.blocks
            assert isinstance(block, ToolResult)
            assert isinstance(block.spill, Spill)
            assert b"".join(store.spills.open(block.spill)) == b"".join(chunk(entry.n, n) for n in range(CHUNKS))
        return {
            "doing": "spills",
            "acknowledged": acknowledged,
            "stored": taken(store) - length * CHUNKS,
            "commits": after.commits,
            "commits_expected": 0,
            "log": len(store.commits(conversation)),
            "wrong": store.verify(conversation),
        }


def kill_upgrading(url: str, version: int, wait_s: float) -> dict[str, object]:
    """Kill a child that brings a store of an older version up to date, whose commits have no hashes yet."""
    with Store(url) as store:
        store.create(Conversation(id="c"))
        chain = Chain()
        store.append("c", [placed(chain) for _ in range(60)], [clip(n) for n in range(60)])
    database = Database(url)
    at_version(database, version)

    def child(pipe: int) -> None:
        os.write(pipe, b".")
        Store(url).close()
        time.sleep(60)

    killed_after(child, wait_s)
    with database.connect() as connection:
        found = version_of(connection)
        hashed = "id" in {column["name"] for column in inspect(connection).get_columns("commit_log")}
        paid = "usd" in {column["name"] for column in inspect(connection).get_columns("usage")}
    database.close()
    with Store(url) as store:
        whole = (hashed, paid, len(store.commits("c"))) == (found >= 3, found >= 2, 60)
        return {"doing": "migration", "version": found, "whole": whole, "missed": 0, "wrong": store.verify("c")}


def slow_step(connection: Connection) -> None:
    """A migration that rewrites every entry one by one."""
    connection.execute(text("ALTER TABLE entry ADD COLUMN length INTEGER NOT NULL DEFAULT -1"))
    for (n,) in connection.execute(text("SELECT n FROM entry ORDER BY n")).all():
        connection.execute(text("UPDATE entry SET length = length(payload) WHERE n = :n"), {"n": n})
        time.sleep(0.0002)


def kill_migrating(url: str, _: int, wait_s: float) -> dict[str, object]:
    """Kill a child that migrates a store of 60 entries; then migrate it in peace."""
    with Store(url) as store:
        store.create(Conversation(id="c"))
        chain = Chain()
        store.append("c", [placed(chain) for _ in range(60)])

    def child(pipe: int) -> None:
        database = Database(url)
        os.write(pipe, b".")
        migrate(database, (*MIGRATIONS, slow_step))
        time.sleep(60)

    killed_after(child, wait_s)
    database = Database(url)
    with database.connect() as connection:
        version = version_of(connection)
        columns = {column["name"] for column in inspect(connection).get_columns("entry")}
    now = len(MIGRATIONS)
    whole = ("length" in columns) == (version == now + 1) and version in (now, now + 1)
    migrate(database, (*MIGRATIONS, slow_step))
    with database.connect() as connection:
        missed = connection.execute(text("SELECT count(*) FROM entry WHERE length < 0")).scalar()
        # So that the store opens it; the column is only more.
        connection.execute(text("UPDATE tenure_version SET version = :now"), {"now": now})
        connection.commit()
    database.close()
    with Store(url) as store:
        wrong = store.verify("c")
    return {"doing": "migration", "version": version, "whole": whole, "missed": missed, "wrong": wrong}


def settle(url: str) -> None:
    """Wait until a server has seen that the child is dead, and ended what it was doing."""
    if url.startswith("sqlite"):
        return
    database = Database(url)
    busy = text(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = current_setting('application_name') "
        "AND pid <> pg_backend_pid() AND state <> 'idle'"
    )
    with database.connect() as connection:
        while connection.execute(busy).scalar():
            connection.rollback()
    database.close()


def nest(url: str, directory: Path, name: str) -> str:
    """The URL of a place of its own for a store that is migrated: a file, or a schema."""
    if url.startswith("sqlite"):
        return f"sqlite:///{directory}/{name}.db"
    schema = f"{directory.name}_{name}".replace("-", "_")
    database = Database(url)
    with database.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {schema}"))
        connection.commit()
    database.close()
    return f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{schema}"


def say(death: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(death) + "\n")


def main(url: str, directory: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    for round_ in range(kills - kills // MIGRATED):
        conversation = f"{directory.name}-{round_ // ROUNDS_PER_CONVERSATION}"
        if round_ % ROUNDS_PER_CONVERSATION == 0:
            with Store(url) as store:
                store.create(Conversation(id=conversation))
        doing, wait_s = DOING[round_ // ROUNDS_PER_CONVERSATION % len(DOING)], chance.uniform(0, LONGEST_S)
        if doing == "commits":
            say(kill_committing(url, conversation, wait_s))
        elif doing == "forks":
            say(kill_forking(url, conversation, wait_s))
        elif doing == "spills":
            say(kill_spilling(url, conversation, wait_s))
        else:
            say(kill_appending(url, conversation, doing == "clips", wait_s))
    for round_ in range(kills // MIGRATED):
        kill = kill_migrating if round_ % 3 == 2 else kill_upgrading
        say(kill(nest(url, directory, f"old_{round_}"), 1 + round_ % 3, chance.uniform(0, 5 * LONGEST_S)))
    with spilling(url) as store:
        mine = [each.id for each in store.conversations() if each.id.startswith(directory.name)]
        say({"doing": "all", "wrong": [wrong for each in mine if (wrong := store.verify(each))]})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
