"""How figures are said to people: one way for each, wherever they are shown."""

from typing import Final


def tokens(count: int) -> str:
    """A number of tokens, exact."""
    return f"{count:,}"


def short(count: int) -> str:
    """A number of tokens in a few characters: 812, 8.1k, 80k, 1.2M."""
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}" if count < 10 * size else f"{count // size}{unit}"
    return str(count)


ASSUMED: Final = "~"  # before an amount that no list price stands behind


def money(usd: float, *, assumed: bool = False, digits: int = 3) -> str:
    """An amount in dollars, with as many digits as it needs to say something. `assumed`: by the price of a model that stands in."""
    return ASSUMED * assumed + (f"${usd:,.2f}" if usd >= 1 else f"${usd:.{digits}f}")


def spent(usd: float, unpriced: int) -> str:
    """What calls cost of which `unpriced` have no known price, and are not in the sum."""
    if not unpriced:
        return money(usd)
    return f"at least {money(usd)}" if usd else "price unknown"


def spent_briefly(usd: float, unpriced: int) -> str:
    """The same where there is little room: a plus stands for calls of unknown price."""
    return money(usd) + "+" * bool(unpriced) if usd or not unpriced else "$?"


def assumption(model: str) -> str:
    """What the mark of an assumed amount means."""
    return f"{ASSUMED}: no price is listed for {first_line(model, 40)}, a mid-size model's stands in"


def share(part: float) -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{part * 100:.0f} %"


def plain(text: str) -> str:
    """Text of a session without what a terminal would obey."""
    return text if text.isprintable() else "".join(sign if sign.isprintable() else "\ufffd" for sign in text)


def first_line(text: str, width: int) -> str:
    """The first words of a text in one line."""
    line = plain(" ".join(text[: 8 * width].split()))
    return line if len(line) <= width else line[: max(1, width - 1)] + "…"


# As reports write them, with a minus sign that is one.
NOTHING: Final = "–"


def signed(text: str) -> str:
    """A written number with a minus sign in place of a hyphen."""
    return text.replace("-", "\u2212")


def decimal(value: float, digits: int = 2) -> str:
    """A number with that many decimals."""
    return signed(f"{value:,.{digits}f}")


def percent(part: float, digits: int = 0) -> str:
    """A share from 0 to 1 with that many decimals; negative ones too."""
    return signed(f"{part * 100:.{digits}f} %")


def change(now: float, before: float) -> str:
    """How much more or less `now` is than `before`; nothing can be said of a change from 0."""
    if not before:
        return NOTHING
    text = f"{(now / before - 1) * 100:+.0f} %"
    return "±0 %" if text in ("+0 %", "-0 %") else signed(text)


def usd(amount: float, *, assumed: bool = False) -> str:
    """An amount of money to the cent."""
    return f"{ASSUMED * assumed}${amount:,.2f}"


def limit(value: int | None) -> str:
    """A budget in a few characters, exact: 80k, 1.5k, 267k; none is uncapped."""
    if value is None:
        return "uncapped"
    return f"{value / 1000:g}k" if value >= 1000 else str(value)


def several(value: int, one: str) -> str:
    """A count with what is counted."""
    return f"{value:,} {one}" if value == 1 else f"{value:,} {one}s"
