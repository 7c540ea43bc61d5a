"""The gateway's page at `/ui`: what every conversation holds, what left it and why, and what it cost. Rendered here, without a script or a build step.

Reading needs no more than the address; changing (pin, restore, undo) is taken only from the page itself.
"""

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import cache, partial
from hashlib import sha256
from importlib.resources import files
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

from jinja2 import Environment
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from tenure.engine.meter import figures, statement
from tenure.errors import InputError, TenureError
from tenure.gateway.sheets import SUMS, ConversationSheet, Sheets, is_live, sums
from tenure.lab.audit import text
from tenure.lab.report.template import environment

HEIGHT: Final = 180.0  # of the drawing, in its own units
WIDTH: Final = 1000.0
FORM_BYTES: Final = 4_096

# Whose conversations a request may see: a tenant's, or all of them (None). Raises PermissionError for none at all.
Viewer = Callable[[Request], str | None]


def everything(_request: Request) -> str | None:
    """The usual on a machine of one's own."""
    return None


def pages(sheets: Sheets, viewer: Viewer = everything) -> list[Route]:
    """The routes of the page, for an application that has them under `/ui`."""
    answer = partial(_answer, sheets, viewer)
    return [
        Route("/ui", partial(answer, page=_overview), methods=["GET"]),
        Route("/ui/{conversation}", partial(answer, page=_conversation), methods=["GET"]),
        Route("/ui/{conversation}/diff", partial(answer, page=_difference), methods=["GET"]),
        Route("/ui/{conversation}/{action}", partial(answer, page=_change), methods=["POST"]),
    ]


async def _answer(sheets: Sheets, viewer: Viewer, request: Request, *, page: Callable[..., Response]) -> Response:
    try:
        tenant = viewer(request)
    except PermissionError as error:
        return _page(
            "message.html", 401, title="Not signed in", words=str(error), headers={"www-authenticate": 'Basic realm="tenure"'}
        )
    form: Mapping[str, str] = {}
    if request.method == "POST":
        if not _is_own(request):
            return _page("message.html", 403, title="Refused", words="This can only be done from the page itself.")
        if int(request.headers.get("content-length") or FORM_BYTES + 1) > FORM_BYTES:
            return _page("message.html", 413, title="Refused", words="That is too much for a form.")
        form = dict(parse_qsl((await request.body()).decode("utf-8", "replace"), max_num_fields=8))
    try:
        return await run_in_threadpool(page, sheets, tenant, request, form)
    except InputError as error:
        return _page("message.html", 404, title="Not found", words=str(error))
    except TenureError as error:
        return _page("message.html", 503, title="The store cannot be read", words=str(error))


def _is_own(request: Request) -> bool:
    """Whether a form comes from this page: browsers say so, and nothing else has a form to send."""
    origin = request.headers.get("origin", "")
    return request.headers.get("sec-fetch-site", "same-origin") == "same-origin" and urlsplit(
        origin
    ).netloc == request.headers.get("host")


def _overview(sheets: Sheets, tenant: str | None, _request: Request, _form: Mapping[str, str]) -> Response:
    rows = sheets.rows(tenant)
    added = {name: found for name, of in SUMS.items() if len(found := sums(rows, of)) > 1 or name == "day"}
    live = {row.sheet.id for row in rows if is_live(row, sheets.now())}
    return _page("sessions.html", rows=rows, live=live, sums=added, whole=sums(rows, lambda _row: "all"))


def _sheet(sheets: Sheets, tenant: str | None, request: Request) -> ConversationSheet:
    conversation = request.path_params["conversation"]
    if tenant is not None and sheets.store.conversation(conversation).tenant != tenant:
        raise InputError("store", f"no conversation {conversation!r}")
    return sheets.sheet(conversation)


def _conversation(sheets: Sheets, tenant: str | None, request: Request, _form: Mapping[str, str]) -> Response:
    sheet = _sheet(sheets, tenant, request)
    notes = statement.notes(sheet.ledger)
    return _page("session.html", sheet=sheet, bill=statement.line(sheet.ledger), notes=notes, drawing=_drawing(sheet))


def _difference(sheets: Sheets, tenant: str | None, request: Request, _form: Mapping[str, str]) -> Response:
    sheet = _sheet(sheets, tenant, request)
    before, after = (_number(request.query_params.get(name, ""), f"the call {name!r}") for name in ("before", "after"))
    changes = sheets.changes(sheet.row.sheet.id, before, after)
    return _page("difference.html", sheet=sheet, changes=changes, before=before, after=after)


def _change(sheets: Sheets, tenant: str | None, request: Request, form: Mapping[str, str]) -> Response:
    conversation, action = _sheet(sheets, tenant, request).row.sheet.id, request.path_params["action"]
    object_ = form.get("object", "")
    match action:
        case "pin":
            sheets.pin(conversation, object_)
        case "unpin":
            sheets.unpin(conversation, object_)
        case "restore":
            sheets.restore(conversation, object_)
        case "undo":
            sheets.undo(conversation, _number(form.get("commit", ""), "a commit"))
        case _:
            raise InputError("action", repr(action), "pin, unpin, restore or undo")
    return RedirectResponse(f"/ui/{quote(conversation)}", 303)


def _number(given: str, what: str) -> int:
    if not given.isdecimal() or len(given) > 9:
        raise InputError(what, repr(given), "a number")
    return int(given)


def _drawing(sheet: ConversationSheet) -> dict[str, Any]:
    """The requests over time as rectangles: what the provider's cache held, what was written to it, the rest; and how large each would have been."""
    top = max([call.whole for call in sheet.calls] + [sheet.gauge.limit, 1])
    step = WIDTH / max(1, len(sheet.calls))
    width = max(step * 0.82, 0.8)
    scale = HEIGHT / top
    rectangles, outline, marks = list[tuple[str, float, float, float, float]](), list[str](), list[tuple[float, int]]()
    for at, call in enumerate(sheet.calls):
        x, y = at * step, HEIGHT
        for class_, tokens in (
            ("b-read", call.usage.cache_read),
            ("b-write", call.usage.cache_write),
            ("b-uncached", call.usage.uncached),
        ):
            if tokens:
                y -= tokens * scale
                rectangles.append((class_, x, y, width, tokens * scale))
        outline.append(f"{x:.1f},{HEIGHT - call.whole * scale:.1f} {x + width:.1f},{HEIGHT - call.whole * scale:.1f}")
        marks += [(x, number) for number in call.commits]
    return {
        "width": WIDTH,
        "height": HEIGHT,
        "rectangles": rectangles,
        "outline": " ".join(outline),
        "marks": marks,
        "limit": HEIGHT - sheet.gauge.limit * scale,
        "top": top,
    }


def _page(template: str, status: int = 200, *, headers: Mapping[str, str] | None = None, **values: Any) -> Response:
    style = _style()
    html = _environment().get_template(template).render(style=Markup(style), **values)  # noqa: S704 - our own
    allowed = b64encode(sha256(style.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'sha256-{allowed}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    safe = {
        "content-security-policy": rules,
        "x-content-type-options": "nosniff",
        "referrer-policy": "same-origin",
        "cache-control": "no-store",
    }
    return HTMLResponse(html, status, headers={**safe, **(headers or {})})


@cache
def _style() -> str:
    """The look of the audit page, and what only this page has."""
    own = files("tenure.gateway").joinpath("templates", "ui.css").read_text("utf-8")
    return files("tenure.lab.audit").joinpath("templates", "page.css").read_text("utf-8") + own


@cache
def _environment() -> Environment:
    made = environment("tenure.gateway", html=True)
    made.finalize = text.shown
    filters: dict[str, Callable[..., str]] = {"line": text.line, "tokens": text.tokens, "share": figures.share, "segment": quote}
    made.filters.update(filters)  # pyright: ignore[reportUnknownMemberType]
    made.globals.update(money=figures.money, several=figures.several)  # pyright: ignore[reportUnknownMemberType]
    return made
