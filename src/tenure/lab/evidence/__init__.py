"""The whole bake-off of a corpus as tables and charts that anyone can make again.

`measure` runs it, spread over an engine, and gathers its events; `pages` writes the sections from them, by the queries of `views.sql` and the
templates. The same corpus and code give the same bytes, wherever and however it is run: there is no clock, no random number and no absolute path in
what is written, and no text of any session, only counts and file names.
"""
