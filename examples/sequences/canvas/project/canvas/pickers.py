"""How a colour is chosen. A picker says which colour lies at a point of it, and where a colour lies."""

import colorsys

PICKERS = {}


def picker(name):
    """Make a picker known by a name, under which the toolbar offers it."""

    def known(cls):
        PICKERS[name] = cls
        return cls

    return known


def hexadecimal(red, green, blue):
    """A colour of three shares from 0 to 1 as #rrggbb."""
    return "#" + "".join(f"{round(max(0.0, min(1.0, share)) * 255):02x}" for share in (red, green, blue))


def shares(colour):
    """The three shares of a colour such as #1e90ff."""
    if len(colour) != 7 or not colour.startswith("#"):
        raise ValueError(f"{colour!r} is no colour such as #1e90ff")
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


@picker("swatches")
class Swatches:
    """Fixed colours in rows of five squares."""

    SIDE = 24
    COLOURS = ("#1e1e1e", "#e03131", "#2f9e44", "#1971c2", "#f08c00", "#846358", "#ffffff", "#ffc9c9", "#b2f2bb", "#a5d8ff")

    def colour_at(self, x, y):
        """The colour at a point; None where there is none."""
        column, row = int(x // self.SIDE), int(y // self.SIDE)
        place = row * 5 + column
        return self.COLOURS[place] if 0 <= column < 5 and 0 <= place < len(self.COLOURS) else None

    def position_of(self, colour):
        """The middle of a colour's square; None for a colour that is not there."""
        if colour not in self.COLOURS:
            return None
        row, column = divmod(self.COLOURS.index(colour), 5)
        return ((column + 0.5) * self.SIDE, (row + 0.5) * self.SIDE)


@picker("slider")
class Slider:
    """One row of hues, at full saturation."""

    LENGTH = 360

    def colour_at(self, x, y):
        if not (0 <= x < self.LENGTH and 0 <= y < 24):
            return None
        return hexadecimal(*colorsys.hsv_to_rgb(x / self.LENGTH, 1.0, 1.0))

    def position_of(self, colour):
        hue, saturation, value = colorsys.rgb_to_hsv(*shares(colour))
        return (hue * self.LENGTH, 12) if saturation == value == 1 else None
