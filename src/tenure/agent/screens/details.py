"""What stands beside the viewer's lists: the line above them, and all of what is under the cursor."""

from typing import Final

from rich.cells import cell_len
from textual.content import Content

from tenure.agent.screens import clean
from tenure.agent.screens.building import Picks
from tenure.agent.screens.history import History
from tenure.agent.screens.listing import Lists
from tenure.agent.screens.rows import fitted
from tenure.agent.screens.showing import commit_content, object_content, parts, seen_content
from tenure.engine.meter import figures
from tenure.engine.meter.price import Prices
from tenure.engine.view.project import View

VIEWS: Final = 4  # of calls that are kept
TITLE_CELLS: Final = 30  # that a session's title gets before figures go for it


class Details:
    """Texts about one session. Mutable: it keeps the newest views."""

    def __init__(self, history: History, lists: Lists, prices: Prices) -> None:
        self._history, self._lists, self._prices = history, lists, prices
        self._views: dict[int, View] = {}

    def title(self, picks: Picks, room: int) -> Content:
        """The title takes what the figures leave; on a narrow screen the least needed figures go before it does."""
        history, now = self._history, self._lists.life.now.tokens
        chosen = len(picks.turns) + len(picks.briefs)
        facts = [
            Content.styled(f"  {chosen} chosen", "$text-accent bold") if chosen else Content(""),
            Content(f"  {figures.short(now)} of {figures.short(history.index.tokens)} tokens shown"),
            Content.styled(f"  {history.calls:,} calls  {len(history.index):,} entries", "$quiet"),
            Content.styled(f"  {history.format} {clean.line(history.model, 40)}", "$quiet"),
        ]
        name = clean.line(history.title, 80)
        while len(facts) > 2 and sum(part.cell_length for part in facts) + min(cell_len(name), TITLE_CELLS) > room:
            facts.pop()
        left = max(8, room - sum(part.cell_length for part in facts))
        return Content.styled(fitted(name, min(left, cell_len(name))), "bold") + Content("").join(facts)

    def of(self, tab: str, key: str, *, only_changes: bool) -> Content:
        """What a row of a list stands for."""
        history = self._history
        match tab:
            case "segments":
                segment = self._lists.segments[int(key)]
                turns = [f"user:{number}" for number in segment.turns[:40]] + [
                    f"a part of user:{number}" for number in segment.parts[:40]
                ]
                words = clean.text(segment.text) if segment.text else f"turns {', '.join(turns) or 'none'}"
                return Content.assemble((f"{clean.line(segment.title)}\n\n", "$text-accent bold"), words)
            case "calls":
                return self._call(int(key), only_changes=only_changes)
            case "commits":
                commit = next(commit for commit in history.commits if commit.n == int(key))
                return commit_content(commit, assumed=not self._prices.known)
            case _:
                return self._object(key)

    def _object(self, key: str) -> Content:
        listed = next((each for each in (*self._lists.turns, *self._lists.objects) if each.object == key), None)
        if listed is None:
            return object_content(self._history, key)
        done = f"{listed.state}{f' ({listed.how})' if listed.how else ''}{', pinned' if listed.pinned else ''}"
        cost = f"{figures.money(listed.carried.usd(self._prices), assumed=not self._prices.known)} for {listed.carried.calls:,} calls"
        size = f"{figures.tokens(listed.shown)} of {figures.tokens(listed.tokens)} tokens shown"
        head = Content.assemble((clean.line(listed.handle), "bold"), (f"\n{done}, {size}, {cost}\n\n", "$quiet"))
        return head + object_content(self._history, key)

    def _call(self, call: int, *, only_changes: bool) -> Content:
        usual = "what changed since the call before" if only_changes else "all that the model saw, + − ~ since the call before"
        head = Content.styled(f"call {call}: {usual}\n\n", "$text-accent bold")
        every = parts(self._history, self._view_at(call), self._view_at(call - 1) if call else None)
        listed = [part for part in every if part.change] if only_changes and call else every
        return head + seen_content(self._history, listed)

    def _view_at(self, call: int) -> View:
        """What the model saw; the newest few are kept, since whoever walks through the calls needs each twice."""
        view = self._views.pop(call, None) or self._history.view_at(call)
        self._views[call] = view
        while len(self._views) > VIEWS:
            del self._views[next(iter(self._views))]
        return view
