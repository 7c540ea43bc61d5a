"""How many of its own tokens a provider makes of one o200k token.

The ratio is the median, weighted by size, of the last 31 growths of the prompt: provider tokens gained per o200k token gained between
two consecutive calls. The median, and not a moving average, because the disturbances are single and large (a tool list
that grew, a cache-free image, a rewritten system prompt) and the ratio itself does not drift. Nothing caps it: 1.6 was seen.

A report is believed in proportion: wholly from our own count up to a token a byte, and beyond the less the farther it is. One of 10 tokens for a request of 27,000, as a server gives that reports only what is new,
says next to nothing about the tokenizer, and neither does one of a billion. Where the head is counted, the rest of a doubtful report's weight
speaks for our own count.

Where the head is not counted, a ratio of 1 is assumed from the start with the weight of `ASSUMED` tokens: the first growths of a session are
small, and some logs hold text (reasoning) that is not sent again.

The head (system prompt and tools) is often unknown to the record. A growth does not contain it, so it cannot poison the ratio; its size
is what the newest report leaves over.
"""

from typing import Final, NamedTuple

from msgspec import Struct

WINDOW: Final = 31  # growths remembered
ASSUMED: Final = 4_096  # o200k tokens that speak for a ratio of 1 from the start: little evidence moves nothing
SMALLEST: Final = 64  # o200k tokens; a smaller change says more about framing than about the ratio
BYTES: Final = 4.0  # of text in an o200k token, about: what reports more tokens than bytes counts something else


def is_credible(reported: int, counted: int, window: int) -> bool:
    """Whether a prompt of `counted` o200k tokens can be as large as was reported: less than half of it cannot be all of it.

    What is far more than was counted may be a head that is not known here, as long as it fits into the `window` (provider tokens).
    """
    return counted <= 2 * reported and reported <= max(window, 2 * BYTES * counted)


class Growth(NamedTuple):
    """One observation: a ratio, the o200k tokens that speak for it, and those that speak for our own count instead."""

    ratio: float
    weight: float
    doubt: float = 0.0


class Ratio(Struct, frozen=True, kw_only=True):
    """Provider tokens per o200k token, and the head that is not in the record. `head_counted`: the counts contain the head."""

    value: float = 1.0
    head: int = 0  # provider tokens
    head_counted: bool = False
    growths: tuple[Growth, ...] = ()
    reported: int = 0  # the newest call's
    counted: int = 0

    def learn(self, reported_prompt: int, counted: int) -> "Ratio":
        """The ratio after a call that reported `reported_prompt` tokens for a view of `counted` o200k tokens.

        A report of nothing is none. With an unknown head the first call only sizes the head, at the ratio assumed so far.
        """
        if reported_prompt <= 0 or counted < 0:
            return self
        growths = self.growths
        if growth := self._growth(reported_prompt, counted):
            growths = (*growths, growth)[-WINDOW:]
        assumed = sum(growth.doubt for growth in growths) if self.head_counted else ASSUMED
        value = _median((Growth(1.0, assumed), *growths)) if growths else self.value
        head = 0 if self.head_counted else max(0, round(reported_prompt - value * counted))
        return Ratio(
            value=value, head=head, head_counted=self.head_counted, growths=growths, reported=reported_prompt, counted=counted
        )

    def provider_tokens(self, counted: int) -> int:
        """What the provider will report for a view of `counted` o200k tokens, the head included."""
        return round(self.value * counted) + self.head

    def _growth(self, reported: int, counted: int) -> Growth | None:
        gained, grown = reported, counted
        if not self.head_counted:
            if not self.reported:
                return None
            gained, grown = reported - self.reported, counted - self.counted
        if abs(grown) < SMALLEST or gained * grown <= 0:  # an eviction shrinks both, and speaks for the ratio too
            return None
        believed = min(1.0, reported / max(1, counted), BYTES * grown / gained)
        return Growth(gained / grown, believed * abs(grown), (1.0 - believed) * abs(grown))


def _median(growths: tuple[Growth, ...]) -> float:
    ordered = sorted(growths)
    half = sum(growth.weight for growth in ordered) / 2
    below = 0
    for growth in ordered:
        below += growth.weight
        if below >= half:
            return growth.ratio
    raise AssertionError("a median of nothing")
