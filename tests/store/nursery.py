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

from sqlalchemy import Connection, text

from tenure.record.chain import Chain
from tenure.record.entry import Draft, Entry, Origin, Role, Text
from tenure.store.database import Database
from tenure.store.migrations import MIGRATIONS, migrate, version_of
from tenure.store.records import Conversation
from tenure.store.store import Store
from tenure.view.edit import Commit, Drop

ROUNDS_PER_CONVERSATION = 4  # verifying reads a conversation from its beginning
DOING = ("entries", "clips", "commits", "forks")


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
        before = {sheet.id for sheet in store.conversations()}
    acknowledged = killed_after(forker(url, conversation), wait_s)
    with Store(url) as store:
        made = [sheet for sheet in store.conversations() if sheet.id not in before]
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


def kill_upgrading(directory: Path, round_: int, wait_s: float) -> dict[str, object]:
    """Kill a child that brings a store of version 2 up to date, whose commits have no hashes yet."""
    url = f"sqlite:///{directory}/upgrade-{round_}.db"
    with Store(url) as store:
        store.create(Conversation(id="c"))
        chain = Chain()
        store.append("c", [placed(chain) for _ in range(60)], [clip(n) for n in range(60)])
    database = Database(url)
    with database.connect(exclusive=True) as connection:
        for step in ("commit_log DROP COLUMN id", "conversation DROP COLUMN terms"):
            connection.execute(text(f"ALTER TABLE {step}"))
        connection.execute(text("UPDATE tenure_version SET version = 2"))
        connection.commit()

    def child(pipe: int) -> None:
        os.write(pipe, b".")
        Store(url).close()
        time.sleep(60)

    killed_after(child, wait_s)
    with database.connect() as connection:
        version = version_of(connection)
        columns = [row[1] for row in connection.execute(text("PRAGMA table_info(commit_log)"))]
    database.close()
    with Store(url) as store:
        whole = ("id" in columns) == (version == len(MIGRATIONS)) and len(store.commits("c")) == 60
        return {"doing": "migration", "version": version, "whole": whole, "missed": 0, "wrong": store.verify("c")}


def slow_step(connection: Connection) -> None:
    """A migration that rewrites every entry one by one."""
    connection.execute(text("ALTER TABLE entry ADD COLUMN length INTEGER NOT NULL DEFAULT -1"))
    for (n,) in connection.execute(text("SELECT n FROM entry ORDER BY n")).all():
        connection.execute(text("UPDATE entry SET length = length(payload) WHERE n = :n"), {"n": n})
        time.sleep(0.0002)


def kill_migrating(directory: Path, round_: int, wait_s: float) -> dict[str, object]:
    """Kill a child that migrates a store of 60 entries; then migrate it in peace."""
    url = f"sqlite:///{directory}/migration-{round_}.db"
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
        columns = [row[1] for row in connection.execute(text("PRAGMA table_info(entry)"))]
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


def say(death: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(death) + "\n")


def main(url: str, directory: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    for round_ in range(kills):
        conversation = f"{directory.name}-{round_ // ROUNDS_PER_CONVERSATION}"
        if round_ % ROUNDS_PER_CONVERSATION == 0:
            with Store(url) as store:
                store.create(Conversation(id=conversation))
        doing, wait_s = DOING[round_ // ROUNDS_PER_CONVERSATION % len(DOING)], chance.uniform(0.001, 0.02)
        if doing == "commits":
            say(kill_committing(url, conversation, wait_s))
        elif doing == "forks":
            say(kill_forking(url, conversation, wait_s))
        else:
            say(kill_appending(url, conversation, doing == "clips", wait_s))
    for round_ in range(kills // 8):
        kill = kill_migrating if round_ % 2 else kill_upgrading
        say(kill(directory, round_, chance.uniform(0.001, 0.05)))
    with Store(url) as store:
        say({"doing": "all", "wrong": [wrong for each in store.conversations() if (wrong := store.verify(each.id))]})


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
