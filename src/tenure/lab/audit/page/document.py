"""The page that `tenure audit --html` writes: one file that works offline.

It asks for nothing from anywhere: styles and script stand in it and are allowed by their hashes alone. Tables and drawings are there without a
script; with one they can be sorted, searched, pointed at and linked into (`#session/policy/need`). The same audits give the same bytes.
"""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from importlib.resources import files
from itertools import islice
from typing import Final

from tenure.lab.audit.page.data import SessionData, island, policy_names, session_data
from tenure.lab.audit.page.detail import Detail, detail_for
from tenure.lab.audit.page.figures import count
from tenure.lab.audit.page.layers import stacks_of
from tenure.lab.audit.page.markup import Html, el, join, line, slug
from tenure.lab.audit.page.overview import overview, together_line
from tenure.lab.audit.page.run import runs_section
from tenure.lab.audit.page.session import Place, bill_section, masthead, outcome_section, title_of
from tenure.lab.audit.page.window import waste_section, window_section
from tenure.lab.audit.report import Audit, Unread

_UNREAD: Final = 200  # that are named
_SCRIPTS: Final = ("tables.js", "drawing.js", "needs.js", "page.js")


def page(audits: Sequence[Audit], unread: Sequence[Unread] = ()) -> str:
    """The reports as one page of HTML, and what could not be read with its reason."""
    taken = {"overview", "data", "panel"}
    ids = [slug(title_of(audit.session).split(".")[0], taken) for audit in audits]
    detail = detail_for(len(audits), max((len(audit.runs) for audit in audits), default=0))
    sections: list[Html] = []
    data: list[SessionData] = []
    for audit, id_ in zip(audits, ids, strict=True):
        section, known = _session(audit, id_, alone=len(audits) == 1, detail=detail)
        sections.append(section)
        data.append(known)
    several = [el("header", together_line(audits)), overview(audits, ids)] if len(audits) != 1 else []
    name = title_of(audits[0].session) if len(audits) == 1 else f"{len(audits)} sessions"
    return _document(name, [*several, *sections, *_unread(unread)], island(data))


def _document(name: str, sections: Sequence[Html], data: Html) -> str:
    style, script = _asset("page.css"), "'use strict';\n(() => {\n" + "\n".join(_asset(each) for each in _SCRIPTS) + "})();\n"
    policy = f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="referrer", content="no-referrer"),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"{name} · tenure audit"),
        el("style", Html(style)),
    )
    body = el(
        "body",
        el("p", "tenure audit", class_="brand"),
        el("main", *sections, _reading()),
        el("aside", id="panel", hidden=True, tabindex="-1", aria_label="The place"),
        el("script", data, type="application/json", id="data"),
        el("script", Html(script)),
    )
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _session(audit: Audit, id_: str, *, alone: bool, detail: Detail) -> tuple[Html, SessionData]:
    place = Place(id=id_, policies=policy_names(audit.runs), level=1 if alone else 2, assumed=audit.session.is_assumed)
    stacks = stacks_of(audit, detail.points)
    section = el(
        "section",
        masthead(audit, place, None if alone else el("a", "← all sessions", href="#overview", class_="back")),
        bill_section(audit, place),
        outcome_section(audit, place),
        runs_section(audit, place, stacks, detail),
        window_section(audit, place, detail.rows),
        waste_section(audit, place, detail.rows),
        _notes(audit, place),
        id=id_,
        class_="session",
    )
    return section, session_data(audit, id_, stacks, detail)


def _notes(audit: Audit, place: Place) -> Html:
    """Prices, what the reader left out, and how to recompute it."""
    session, prices = audit.session, audit.session.prices
    per_million = ", ".join(
        f"{place.usd(1e6 * price)} {name}"
        for name, price in (
            ("uncached", prices.uncached),
            ("cache write", prices.write),
            ("cache read", prices.read),
            ("output", prices.output),
        )
    )
    life = f"The cache keeps a prefix of at least {prices.min_cache:,} tokens for {prices.ttl_s:,} seconds."
    skipped = [
        el(
            "li",
            f"{skip.count:,} × {line(skip.reason, 200)}",
            f", {skip.bytes:,} bytes",
            f", first at line {skip.line:,}" if skip.line else None,
        )
        for skip in islice(session.skipped, 30)
    ]
    return join(
        [
            place.heading("Notes"),
            el("p", f"Prices for a million tokens of {line(session.model, 60)}: {per_million}. {life}"),
            el("p", "What the reader of the log left out:") if skipped else None,
            el("ul", *skipped) if skipped else None,
            el("p", "SHA-256 of the session: ", el("code", line(session.sha256, 64)), ".") if session.sha256 else None,
        ]
    )


def _unread(unread: Sequence[Unread]) -> list[Html]:
    """The sessions of which there is nothing to tell."""
    if not unread:
        return []
    told = [el("li", el("span", line(each.path, 300), class_="mono"), ": ", line(each.why, 300)) for each in unread[:_UNREAD]]
    rest = el("p", f"And {len(unread) - _UNREAD:,} more.") if len(unread) > _UNREAD else None
    return [el("section", el("h2", f"{count(len(unread), 'session')} not read"), el("ul", *told), rest)]


def _reading() -> Html:
    """The words that every part uses."""
    words = (
        ("commit", "What takes something out of the window: a batch of edits, appended to the conversation's log, with its reason."),
        ("left", "Tokens that commits took, net of what they show in their stead (the residue)."),
        ("visible, routed, lost", "A need of what had left is visible when the window still shows it elsewhere; routed when a residue shows a handle and a cue, so that one recall brings it back; lost when neither is so."),
        ("as recorded", "The window that the recorded agent had, its own compactions included. It is the dashed outline in every drawing."),
        ("paid tokens", "Tokens times the calls that carried them."),
        ("tokens", "o200k tokens, of what was said and of what left; of requests, drawings, limits, commits and bills the provider's own, as learned from what the log reports."),
    )  # fmt: skip
    told = [el("div", el("dt", name), el("dd", meaning)) for name, meaning in words]
    return el("footer", el("h2", "How to read this"), el("dl", *told, class_="words"))


def _asset(name: str) -> str:
    return files("tenure.lab.audit.page").joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
