"""Which messages hold a string.

A message is taken in in O(its length), and a string is looked for only in the few passages that hold its rarest word.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Final

from tenure.lab.events import At
from tenure.lab.harm.passage import Message, Passage

LOOKED_AT: Final = 96  # passages: a string whose rarest word stands in more is common
_PLACES: Final = 64  # of one string in one passage that are looked at
_NOWHERE: Final[list[int]] = []
_WORD = re.compile(r"\w{3,64}")
_FIGURE = re.compile(r"\d[\d.,]*[.,]\d+")  # by which a text without words is found


class Holdings:
    """The messages so far, by the words in them. Mutable, grown with the record; it keeps their texts."""

    def __init__(self) -> None:
        self._held: list[Passage] = []
        self._by_place: dict[At, int] = {}
        self._by_word: dict[str, list[int]] = {}  # ordinals of passages, ascending
        self._spelt: dict[At, str] = {}

    def take(self, message: Message) -> None:
        """Take in the next message. O(its length)."""
        for passage in message.passages:
            ordinal = len(self._held)
            self._held.append(passage)
            self._by_place[passage.at] = ordinal
            for word in {*_WORD.findall(passage.text), *_FIGURE.findall(passage.text)}:
                self._by_word.setdefault(word, []).append(ordinal)

    def at(self, place: At) -> Passage:
        """The passage at a place."""
        return self._held[self._by_place[place]]

    def find(self, text: str, before: int) -> tuple[Passage, ...] | None:
        """The passages of entries below `before` that hold `text`, oldest first; None when it is too common to be looked for."""
        held = self.candidates(text, before, LOOKED_AT)
        return None if held is None else tuple([each for each in held if holds(each.text, text)])

    def candidates(self, text: str, before: int, most: int) -> list[Passage] | None:
        """The passages of entries below `before` that hold the rarest word of `text`, oldest first; None when those are more than `most`."""
        lists = [self._by_word.get(word, _NOWHERE) for word in words_of(text)]
        if not lists:
            return []
        until, rarest = min(((self._until(ordinals, before), ordinals) for ordinals in lists), key=lambda pair: pair[0])
        return None if until > most else [self._held[ordinal] for ordinal in rarest[:until]]

    def spelling(self, held: Passage, spell: Callable[[str], str]) -> str:
        """A passage's text in another spelling, made once."""
        if held.at not in self._spelt:
            self._spelt[held.at] = spell(held.text)
        return self._spelt[held.at]

    def count(self, word: str, before: int) -> int:
        """How many passages of entries below `before` hold a word. O(log passages)."""
        return self._until(self._by_word.get(word, _NOWHERE), before)

    def _until(self, ordinals: list[int], before: int) -> int:
        if not ordinals or self._held[ordinals[-1]].at[0] < before:
            return len(ordinals)
        return bisect_left(ordinals, before, key=lambda ordinal: self._held[ordinal].at[0])


def holds(text: str, wanted: str) -> bool:
    """Whether `wanted` stands in `text` on its own, not as a part of a longer word or number."""
    place = text.find(wanted)
    for _ in range(_PLACES):
        if place < 0:
            return False
        stop = place + len(wanted)
        if not (_joins(text, place - 1, wanted[0]) or _joins(text, stop, wanted[-1])):
            return True
        place = text.find(wanted, place + 1)
    return False


def words_of(text: str) -> Iterator[str]:
    """The words by which a text is found."""
    return iter(dict.fromkeys(_WORD.findall(text) or _FIGURE.findall(text)))


def _joins(text: str, place: int, edge: str) -> bool:
    """Whether the character at `place` makes one word with the edge of a string."""
    return 0 <= place < len(text) and _is_of_word(text[place]) and _is_of_word(edge)


def _is_of_word(character: str) -> bool:
    return character.isalnum() or character == "_"
