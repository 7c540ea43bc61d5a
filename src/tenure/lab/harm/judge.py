"""Whether a need is visible, routed or lost.

A need counts when something of it left, and nothing said since repeats it: so it is charged once, at its first use after the removal. What the
model thought since is no source for what it says or calls, so that logs with and without reasoning count alike.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from tenure.lab.events import HarmLine, Verdict
from tenure.lab.harm.categories import Case, classify
from tenure.lab.harm.forms import Form
from tenure.lab.harm.holdings import Held, Holdings, holds, words_of
from tenure.lab.harm.names import USUAL_FILES
from tenure.lab.harm.use import Use, Wanted
from tenure.lab.harm.window import Residue, Taken, Window

_HANDLE = re.compile(r"([A-Za-z_][\w.\-]{0,80}:[\w.\-]{1,120}(?:/\d{1,6})?)@[0-9a-f]{4,64}")
_SHORTEST_CUE: Final = 4
_RARE_WORD: Final = 6  # passages that may hold a word that is still a cue


def judge(use: Use, window: Window, holdings: Holdings, call: int) -> HarmLine | None:
    """What became of a use; None when nothing of what it wants was touched."""
    touched: list[tuple[Wanted, Taken]] = []
    missing: list[tuple[Wanted, Taken]] = []
    for wanted in use.wanted:
        taken = _touched(use, wanted, window)
        if taken is None:
            continue
        touched.append((wanted, taken))
        if not _is_visible(use, wanted, window, holdings, taken):
            missing.append((wanted, taken))
    if not touched:
        return None
    first, taken = (missing or touched)[0]
    holders = [held for held in first.holders if held.at not in window.unseen]
    verdict: Verdict = "visible"
    route, named = "", False
    if missing:
        route, named = _route(use, first, holders, window, holdings)
        verdict = "routed" if route else "lost"
    category, rule = classify(Case(use=use, held=holders[-1], named=named and not route))
    return HarmLine(
        call=call,
        entry=use.entry,
        block=use.block,
        part=use.part,
        tool=use.tool,
        field=use.field,
        kind=use.kind,
        form=use.form,
        text=first.text,
        more=max(0, len(missing) - 1),
        held=tuple(held.at for held in holders),
        objects=tuple(dict.fromkeys(held.objects[0] for held in holders if held.objects)),
        verdict=verdict,
        category=category,
        rule=rule,
        route=route,
        commit=taken.commit,
    )


def _touched(use: Use, wanted: Wanted, window: Window) -> Taken | None:
    """The newest removal that touched a holder; None when there is none, or when the string was had again since."""
    holders = [held for held in wanted.holders if held.at not in window.unseen]
    taken = [window.taken[held.at] for held in holders if held.at in window.taken]
    if not taken:
        return None
    newest = max(taken, key=lambda each: each.commit)
    if any(held.at[0] >= newest.entries and _is_source(use, held) for held in holders):
        return None
    return newest


def _is_source(use: Use, held: Held) -> bool:
    """Whether a passage that came after a removal gives the string back."""
    return use.part == "thinking" or held.kind != "thinking"


def _is_visible(use: Use, wanted: Wanted, window: Window, holdings: Holdings, taken: Taken) -> bool:
    def shown(holders: Iterable[Held], text: str) -> bool:
        return any((held.at[0] < taken.entries or _is_source(use, held)) and window.shows(held, text) for held in holders)

    def stands(text: str) -> bool:
        return shown(holdings.find(text, use.entry) or (), text) or window.says(text)

    if shown(wanted.holders, wanted.text) or window.says(wanted.text):
        return True
    if use.form not in (Form.PATH, Form.FILE):
        return False
    for name in (wanted.text, *_sources_of(wanted.text)):
        if (name != wanted.text and stands(name)) or any(
            stands(folder) and (rest in USUAL_FILES or stands(rest)) for folder, rest in _halves(name)
        ):
            return True
    return False


def _sources_of(path: str) -> Iterator[str]:
    """The file that a script imports by the name it will have when it is built."""
    if path.endswith((".js", ".jsx")):
        yield path[: path.rindex(".") + 1] + "ts" + path[path.rindex(".") + 3 :]


def _halves(path: str) -> Iterator[tuple[str, str]]:
    """Ways to put a path together from two that may be shown: "/home/a" and "src/b.py" give "/home/a/src/b.py"."""
    places = [place for place, character in enumerate(path) if character in "/\\" and 0 < place < len(path) - 1]
    for place in places:
        yield path[:place], path[place + 1 :]


def _route(use: Use, wanted: Wanted, holders: list[Held], window: Window, holdings: Holdings) -> tuple[str, bool]:
    """The handle that leads to a holder in one hop, if a cue stands beside it; and whether a handle is shown at all."""
    objects = {name for held in holders for name in (*held.objects, f"entry:{held.at[0]}", f"entry:{held.at[0]}/{held.at[1]}")}
    cues: tuple[str, ...] | None = None
    named = False
    for residue in window.residues():
        handle = next((each for each in _handles(residue) if each.partition("@")[0] in objects), "")
        if not handle:
            continue
        named = True
        if cues is None:
            cues = tuple(_cues(use, wanted, holdings))
        if any(cue in residue.text and holds(residue.text, cue) for cue in cues):
            return handle, True
    return "", named


def _handles(residue: Residue) -> Iterator[str]:
    yield from residue.routes
    yield from (found[0] for found in _HANDLE.finditer(residue.text))


def _cues(use: Use, wanted: Wanted, holdings: Holdings) -> Iterator[str]:
    """What of the step would make one look there: the places it names, their last parts, and rare words of what is missing."""
    for cue in use.cues:
        yield cue
        last = cue.rstrip("/").rpartition("/")[2]
        if len(last) >= _SHORTEST_CUE and last != cue:
            yield last
    for word in words_of(wanted.text):
        if len(word) >= _SHORTEST_CUE and holdings.count(word, use.entry) <= _RARE_WORD:
            yield word
