"""The whole bake-off of a corpus as tables and figures that anyone can make again.

`jobs` says what is run and `work` runs it, spread over an engine; `gathered` is all that came of it; `sections` turn that into tables,
figures and words, purely; `written` puts them on the disk. The same corpus and code give the same bytes, wherever and however it is run: there
is no clock, no random number and no absolute path in what is written, and no text of any session, only counts and file names.
"""
