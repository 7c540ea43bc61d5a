import json
from pathlib import Path

import pytest

from made_up import put
from tenure.errors import InputError
from tenure.logs.places.openhands_store import export, sessions


def test_the_events_of_a_conversation_are_one_array_in_their_order(tmp_path: Path) -> None:
    for number in (10, 9, 0):
        put(tmp_path / f"events/{number}.json", {"id": number})
    put(tmp_path / "events/cache.json", {"id": "no event"})
    assert json.loads(b"".join(export(tmp_path))) == [{"id": 0}, {"id": 9}, {"id": 10}]
    (held,) = sessions(tmp_path)
    assert (held.id, held.messages) == ("", 3)


def test_the_newer_names_of_events_keep_their_order_too(tmp_path: Path) -> None:
    for number, name in ((2, "event-00002-0f"), (0, "event-00000-ff"), (1, "event-00001-1a")):
        put(tmp_path / f"events/{name}.json", {"kind": "MessageEvent", "n": number})
    assert [event["n"] for event in json.loads(b"".join(export(tmp_path)))] == [0, 1, 2]


def test_an_event_that_is_damaged_leaves_a_stand_in(tmp_path: Path) -> None:
    put(tmp_path / "events/0.json", b'{"id": 0')
    put(tmp_path / "events/1.json", {"id": 1})
    assert json.loads(b"".join(export(tmp_path))) == ["damaged: 0.json", {"id": 1}]


def test_another_folder_is_said_to_be_one(tmp_path: Path) -> None:
    for ask in (export, sessions):
        with pytest.raises(InputError, match="found a directory, expected a session file, or a conversation of OpenHands"):
            list(ask(tmp_path))
