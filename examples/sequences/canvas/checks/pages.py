import json

from canvas.app import App

app = App()
assert len(app.pages) == 1 and app.page == 0
app.draw("rectangle", 0, 0, 10, 10)
assert app.add_page() == 1 and app.page == 1, "a new page is shown"
assert app.scene.shapes == [], "pages are independent"
app.draw("callout", 0, 0, 10, 10, tip=(5, 20))
app.undo()
assert app.scene.shapes == []
app.switch(0)
assert len(app.scene.shapes) == 1, "undo is each page's own"
assert app.undo() and app.scene.shapes == [] and app.redo()
app.switch(1)
app.redo()
again = App.load(app.save())
assert len(again.pages) == 2 and len(again.pages[0].shapes) == 1 and again.pages[1].shapes[0].name == "callout"
assert again.page == 1
old = App.load(json.dumps({"version": 1, "shapes": [{"type": "line", "x": 0, "y": 0, "width": 5, "height": 5}]}))
assert len(old.pages) == 1 and old.scene.shapes[0].name == "line", "files of version 1 still load"
app.remove_page(1)
assert len(app.pages) == 1 and app.page == 0
try:
    app.remove_page(0)
except ValueError:
    pass
else:
    raise AssertionError("the last page stays")
try:
    app.switch(7)
except ValueError:
    pass
else:
    raise AssertionError("there is no page 7")
