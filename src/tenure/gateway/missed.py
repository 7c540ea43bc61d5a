"""What conversations missed of what had left them, as the detector finds it in their records (an edge: it reads the store)."""

from collections import OrderedDict
from threading import Lock
from typing import Final

from tenure.lab.events import HarmLine
from tenure.lab.harm.watch import RecordWatch
from tenure.store.records import Records

KEPT: Final = 16  # conversations whose record is held as the detector reads it: about five times its bytes


class Missed:
    """Needs that reached for something that had left and was no longer in view. Usable by several threads; a record is read once while it is kept."""

    def __init__(self, store: Records) -> None:
        self._store, self._lock = store, Lock()
        self._watches: OrderedDict[str, RecordWatch] = OrderedDict()

    def of(self, conversation: str) -> tuple[HarmLine, ...]:
        """Those of a conversation, in order; of a fork only its own. Raises StoreError. About a millisecond for each new entry."""
        sheet = self._store.conversation(conversation)
        if not sheet.commits:
            return ()
        with self._lock:
            watch = self._watches.pop(conversation, None) or RecordWatch()
            watch.take(self._store.entries(conversation, watch.entries), self._store.commits(conversation))
            self._watches[conversation] = watch
            while len(self._watches) > KEPT:
                self._watches.popitem(last=False)
            return tuple(need for need in watch.needs if need.verdict != "visible" and need.entry >= sheet.forked_at)
