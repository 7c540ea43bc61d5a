"""A session that is read once and played several times."""

from collections.abc import Callable, Iterator

from tenure.engine.record.entry import Draft
from tenure.errors import InputError
from tenure.lab.events import spelled
from tenure.lab.replay import Source
from tenure.logs.reader import Event


class Held:
    """The events of a source. Raises InputError when it cannot be read, or holds no message."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.format, events = source.events()
        self._events: list[Event] = list(events)
        self.path = spelled(source.path)
        if not any(isinstance(event, Draft) for event in self._events):
            raise InputError(self.path, "a session without a message", "at least one")

    def source(self, sha256: str) -> Source:
        """For one replay. It takes its messages from memory, and what it then reads to see that nothing is lost from the file."""
        readings: Iterator[Callable[[], tuple[str, Iterator[Event]]]] = iter([lambda: (self.format, iter(self._events))])
        return Source(self.path, lambda: next(readings, self._source.events)(), lambda: sha256)
