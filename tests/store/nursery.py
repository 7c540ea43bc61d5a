"""Raises children that write to a store, and kills them: `python nursery.py DIRECTORY KILLS SEED`.

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

ROUNDS_PER_CONVERSATION = 10  # verifying reads a conversation from its beginning


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


def main(directory: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    url = f"sqlite:///{directory}/killed.db"
    for round_ in range(kills):
        if round_ % ROUNDS_PER_CONVERSATION == 0:
            conversation = f"c{round_}"
            with Store(url) as store:
                store.create(Conversation(id=conversation))
        clips = round_ // ROUNDS_PER_CONVERSATION % 3 == 2
        say(kill_appending(url, conversation, clips, chance.uniform(0.001, 0.02)))
    for round_ in range(kills // 8):
        say(kill_migrating(directory, round_, chance.uniform(0.001, 0.05)))
    with Store(url) as store:
        say({"doing": "all", "wrong": [wrong for each in store.conversations() if (wrong := store.verify(each.id))]})


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
