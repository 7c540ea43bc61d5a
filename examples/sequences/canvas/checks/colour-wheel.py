from canvas.app import App
from canvas.pickers import PICKERS

wheel = PICKERS["wheel"]()
assert "wheel" in App().toolbar()["pickers"]
assert wheel.colour_at(100, 100) == "#ffffff", "the middle is white"
assert wheel.colour_at(200, 100) == "#ff0000", "red is on the right"
assert wheel.colour_at(100, 0) == wheel.colour_at(100.0, 0.0) and wheel.colour_at(100, 0) != "#ff0000"
assert wheel.colour_at(201, 100) is None and wheel.colour_at(0, 0) is None, "outside there is nothing"
for colour in ("#ff0000", "#80ff00", "#ffffff", "#00ffff"):
    x, y = wheel.position_of(colour)
    assert wheel.colour_at(x, y) == colour, (colour, wheel.colour_at(x, y))
assert wheel.position_of("#1e1e1e") is None, "dark colours are not on the wheel"
