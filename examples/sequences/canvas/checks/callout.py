from canvas.app import App
from canvas.scene import Scene

app = App()
assert "callout" in app.toolbar()["shapes"]
app.colour = "#e03131"
shape = app.draw("callout", 10, 10, 100, 50, tip=(30, 120))
assert shape.bounds() == (9, 9, 111, 121), shape.bounds()
assert shape.contains(50, 30), "the box"
assert shape.contains(55, 70), "the tail, below the box"
assert not shape.contains(100, 100), "beside the tail"
assert app.scene.at(50, 30) is shape
assert "30 120" in shape.svg() and "#e03131" in shape.svg(), shape.svg()
again = App.load(app.save())
assert again.svg() == app.svg()
assert again.scene.shapes[0].tip == (30, 120)
app.undo()
assert app.scene.shapes == []
