"""A home with a store in it, and every command that reads one."""

import shutil
from pathlib import Path


class World:
    """A home with a store in it, damaged or not."""

    def __init__(self, folder: Path, whole: Path, conversation: str) -> None:
        self.folder, self.whole, self.conversation = folder, whole, conversation
        self.store = folder / "state" / "tenure" / "sessions.db"
        self.script = folder / "script.json"
        self.work = folder / "work"
        self.run = folder / "run"  # of a benchmark, whose one session is in the store

    def restored(self) -> Path:
        """The store, whole again."""
        if self.store.is_dir():
            self.store.rmdir()
        for end in ("", "-wal", "-shm"):
            self.store.with_name(self.store.name + end).unlink(missing_ok=True)
        shutil.copyfile(self.whole, self.store)
        return self.store

    def reading(self) -> list[list[str]]:
        """Every command that reads a store and does not write to it."""
        store, new = str(self.store), str(self.folder / "new.db")
        session = f"{store}#{self.conversation}"
        return [
            ["sessions"],
            ["sessions", "--json"],
            ["show", store],
            ["show", session],
            ["show", f"{store}#fork"],
            ["recall", session, "read:2"],
            ["recall", session, "--words", "what is wrong"],
            ["replay", session, "--no-harm"],
            ["why", session, "read:1"],
            ["audit", session, "--keep", "no"],
            ["verify", store],
            ["verify", store, "--repair", new],
            ["verify"],
            ["judge", session, "--model", "stand-in", "--cuts", "2", "--controls", "0", "--quiet"],
            ["bench", "measure", session],
            ["bench", "report", str(self.run)],
            ["evidence", str(self.store.parent), "--out", str(self.folder / "pages"), "--only", "sessions", "--quiet"],
        ]

    def commands(self) -> list[list[str]]:
        """Every command that uses a store."""
        run = ["run", "Go on.", "--model", f"scripted:{self.script}", "--cwd", str(self.work), "--quiet"]
        return [
            *self.reading(),
            [*run, "--continue"],
            [*run, "--resume", self.conversation],
            [*run, "--store", str(self.store)],
        ]
