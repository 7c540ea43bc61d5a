"""A planner's reply, read as values.

The contract asks for tags (Self-GC paper, Listing 2). Models answer with fences, prose, JSON, half a plan or two of them; all of that is
forgiven. A target is not guessed: what is no object's name, what was cut off in the middle and what stands in prose is kept apart, with a
reason. Of several plans the last whole one counts that is no quotation (`selfgc.quotation`).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, Literal

from msgspec import Struct

from tenure.engine.meter.figures import first_line
from tenure.engine.planners.loose_json import ATTEMPTS, REREAD, Loose, Node, Value, last_value, loose, straight
from tenure.engine.planners.selfgc.quotation import apart, unquoted
from tenure.engine.record.objects import parse_handle
from tenure.errors import InputError

PlanAction = Literal["fold", "mask", "prune"]
ACTIONS: Final[tuple[PlanAction, ...]] = ("fold", "mask", "prune")  # from what leaves most behind to what leaves least

LONGEST: Final = 262_144  # characters of a reply that are read: its end, where the plan is
TARGETS: Final = 4_096
RANGE: Final = 2_000  # objects that one range may name
NAME_CHARS: Final = 200
WORDS_CHARS: Final = 300
SUMMARY_CHARS: Final = 600


class Target(Struct, frozen=True, kw_only=True, gc=False):
    """An object that the reply names, in the short form of its id, with what the reply says about it."""

    action: PlanAction
    name: str
    hash: str = ""  # of a handle: read:12@3fa9
    words: str = ""
    reason: str = ""  # why, where the reply says so apart from the words


class UnreadTarget(Struct, frozen=True, kw_only=True, gc=False):
    """Something that stands where a target should, and why it is none."""

    text: str
    why: str


class Proposed(Struct, frozen=True, kw_only=True):
    """What a reply proposes, in its own order; nothing in it has been held against a record yet."""

    summary: str = ""
    targets: tuple[Target, ...] = ()
    unread: tuple[UnreadTarget, ...] = ()
    has_plan: bool = False  # be it an empty one
    whole: bool = False  # it was not cut off


def read(text: str) -> Proposed:
    """What a planner's reply proposes. Reads the last LONGEST characters, in linear time; never raises."""
    text = straight(text[-LONGEST:])
    thoughts = list(_THOUGHT.finditer(text))
    if thoughts:  # what came after the last reasoning that was left in the reply; nothing when that never came to an end
        text = text[thoughts[-1].end() :] if thoughts[-1]["close"] else ""
    plan = _plan_of(text)
    return Proposed(
        summary=_summary(text),
        targets=tuple(plan.targets.values()),
        unread=tuple(plan.unread),
        has_plan=plan.is_there,
        whole=plan.whole,
    )


_THOUGHT: Final = re.compile(r"<(?P<close>/?)\s*+think(?:ing)?\s*+>", re.IGNORECASE)
_PLAN_TAG: Final = re.compile(r"<\s*+(?P<close>/?)\s*+gc[_\- ]?plan\b(?P<rest>[^<>]*+)>", re.IGNORECASE)
_PLAN_KEY: Final = re.compile(r"[\"']?\bgc[_\-]?plan[\"']?[ \t]*+(?P<colon>[:=]?)\s*+", re.IGNORECASE)
_ACTION_TAG: Final = re.compile(r"<\s*+(?P<close>/?)\s*+(?P<action>fold|mask|prune)\b(?P<rest>[^<>]*+)>", re.IGNORECASE)
_OTHER_TAG: Final = re.compile(r"<\s*+/?\s*+(?P<name>[A-Za-z][\w:\-]*+)(?P<rest>[^<>]*+)>")
_ITEM_TAGS: Final = frozenset(
    "target targets item items object objects id ids li ul ol entry entries name p br b i em strong code function conversation tool skill"
    " user turn ref handle span".split()
)
_ATTRIBUTE: Final = re.compile(r"(?<![\w\-])(?P<key>[A-Za-z][\w\-]{0,40}+)\s*+=\s*+(?:\"(?P<a>[^\"]*+)\"|'(?P<b>[^']*+)')")
_MARKUP_COMMENT: Final = re.compile(r"<!--(?:[^-]|-(?!->))*+(?:-->)?")
_FENCE: Final = re.compile(r"^[ \t]*+(?:```|~~~)[^\n]*+$", re.MULTILINE)
_SUMMARY_TAG: Final = re.compile(r"<\s*+above_conversation_summary\b[^<>]*+>(?P<body>[^<]*+)", re.IGNORECASE)
_SUMMARY_KEY: Final = re.compile(r"[\"']?\babove_conversation_summary[\"']?\s*+[:=]\s*+", re.IGNORECASE)

_BULLET: Final = re.compile(r"(?:[\s>*+•·\-–—#|]++|\d{1,4}[.)]\s)*+")
_HEADING: Final = re.compile(
    r"[*_`\"'\[(]*+(?P<action>fold|mask|prune)(?:s|ed|d)?\b(?:\s++(?:targets?|objects?|items?|list)\b)?[*_`\"')\]]*+"
    r"(?:\s*+\([^()]*+\))?(?P<rest>.*+)",
    re.IGNORECASE,
)
_VERDICT: Final = re.compile(r"\s*+(?:->|=>|→|:|=|\|)\s*+[*_`\"']*+(?P<action>fold|mask|prune)\b(?P<rest>.*+)", re.IGNORECASE)
_TOKEN: Final = re.compile(r"[^\s,;|\"'`<>()\[\]{}]++")
_BETWEEN: Final = re.compile(r"[\s,;&\"'`\[\]]*+(?:and\b[\s\"'`]*+)?", re.IGNORECASE)
_NAME: Final = re.compile(r"[^\W\d][\w.\-]*+(?::[\w.\-/]++)++(?:@[0-9a-f]{4,64}+)?")
_RANGE: Final = re.compile(r"(?P<tool>.+:)(?P<low>\d{1,9})(?:-|–|—|\.\.\.?|…)(?:(?P=tool))?(?P<high>\d{1,9})")
_NUMBERS: Final = re.compile(r"(?P<low>\d{1,9})(?:(?:-|–|—|\.\.\.?)(?P<high>\d{1,9}))?")
_TRIM: Final = "*_.,:;!?-–—"
_QUOTES: Final = " \t\r\n\"'`[]"
_NOTHING: Final = frozenset({"", "none", "nothing", "null", "n/a", "na", "empty", "no", "-", "none.", "nothing.", "false"})

_PLAN_KEYS: Final = frozenset({"gcplan", "plan", "actions", "operations", "edits", "decisions"})
_TARGET_KEYS: Final = ("id", "target", "targets", "object", "objects", "objectid", "targetid", "name", "handle", "ids", "ref")
_WORD_KEYS: Final = ("pointer", "words", "holds", "hint", "recallwhen", "summary", "description", "note")
_REASON_KEYS: Final = ("reason", "why")
_ACTION_KEYS: Final = ("action", "op", "operation", "type", "kind", "do", "verdict")
_VERBS: Final[Mapping[str, PlanAction]] = {
    f"{before}{action}{after}": action
    for action in ACTIONS
    for before in ("", "to")
    for after in ("", "s", "ed", "d", "targets", "list", "ids", "objects")
}


@dataclass(slots=True)
class _Plan:
    """Targets as they come; each name once an action."""

    targets: dict[tuple[PlanAction, str], Target] = field(default_factory=dict[tuple[PlanAction, str], Target])
    unread: list[UnreadTarget] = field(default_factory=list[UnreadTarget])
    is_there: bool = False
    whole: bool = False  # it was not cut off
    named: int = 0  # names taken in, repeated ones too: a range is quickly repeated and slowly spelled out
    reason: str = ""  # of what is read now

    def add(self, action: PlanAction, name: str, words: str, kind: str = "") -> None:
        if self.is_full():
            return
        self.named += 1
        try:
            handle = parse_handle(name)
        except InputError:
            self.refuse(name, "no object's name")
            return
        short = handle.object
        if kind == "function" and handle.kind == "user":  # a tool of that name, and no turn
            short = f"function:{short}"
        target = Target(action=action, name=short, hash=handle.hash, words=_words(words), reason=_words(self.reason))
        self.targets.setdefault((action, short), target)

    def refuse(self, text: str, why: str) -> None:
        if not self.is_full() and text.strip().lower() not in _NOTHING:
            self.unread.append(UnreadTarget(text=first_line(text, NAME_CHARS), why=why))

    def is_full(self) -> bool:
        return self.named + len(self.unread) >= TARGETS


def _plan_of(text: str) -> _Plan:
    """The plan of a reply. A fence counts only where no plan stands outside of all fences; of fences the last whole one counts."""
    reply = apart(text)
    bodies = (reply.own, *reversed(reply.fences))
    own, *fences = map(_marked, bodies)
    for plan in (own, *sorted(fences, key=lambda each: not each.whole)):
        if plan.is_there:
            return plan
    for body in bodies:
        plan = _Plan(is_there=True, whole=True)
        if _read_unmarked(body, plan, is_cut=False):
            return plan
    return _Plan()


def _marked(text: str) -> _Plan:
    """A plan in tags or in JSON."""
    plan = _Plan()
    if (tagged := _tagged(text)) is not None:
        plan.is_there, (body, plan.whole) = True, tagged
        _read_body(body, plan, is_cut=not plan.whole)
    elif (keyed := _keyed(text)) is not None:
        plan.is_there, plan.whole = True, keyed.whole
        _read_loose(keyed, plan)
    elif (whole := _read_marked(unquoted(text), plan, is_cut=False, is_bare=True)) is not None:
        plan.is_there, plan.whole = True, whole
    return plan


def _tagged(text: str) -> tuple[str, bool] | None:
    """The body of the last whole <gc_plan>, else of the last one that was begun."""
    opened, last = -1, None
    for tag in _PLAN_TAG.finditer(text):
        if not tag["close"]:
            opened = tag.end()
            if tag["rest"].rstrip().endswith("/"):
                last, opened = ("", True), -1
        elif opened >= 0:
            last, opened = (text[opened : tag.start()], True), -1
    if last is not None:
        return last
    return (text[opened:], False) if opened >= 0 else None


def _keyed(text: str) -> Loose | None:
    """The value of the last whole `"gc_plan":`, else of the last one that was begun."""
    keys = [key for key in _PLAN_KEY.finditer(text) if key["colon"] and text[key.end() : key.end() + 1] in set("{[\"'")]
    last: Loose | None = None
    fuel = REREAD * len(text)
    for key in reversed(keys[-ATTEMPTS:]):
        hit = loose(text, key.end())
        if hit.whole:
            return hit
        last = last or hit
        fuel -= hit.end - key.end()
        if fuel <= 0:
            break
    return last


def _read_body(body: str, plan: _Plan, *, is_cut: bool) -> None:
    """Fill the plan from what may be tags, JSON or lines."""
    if _read_marked(body, plan, is_cut=is_cut) is None:
        _read_unmarked(body, plan, is_cut=is_cut)


def _read_marked(body: str, plan: _Plan, *, is_cut: bool, is_bare: bool = False) -> bool | None:
    """Fill the plan from tags or JSON; whether it is whole, None when there is none.

    `is_bare`: it is the whole reply. A tag that is not closed by its end was cut off.
    """
    body = _MARKUP_COMMENT.sub("", body)
    if any(not tag["close"] for tag in _ACTION_TAG.finditer(body)):
        return _read_tags(body, plan, is_cut=is_cut or is_bare) and not is_cut
    hit = last_value(_FENCE.sub("", body), lambda value: _plan_in(value) is not None)
    if hit is None:
        return None
    _read_loose(hit, plan)
    return hit.whole and not is_cut


def _read_unmarked(body: str, plan: _Plan, *, is_cut: bool) -> bool:
    """Fill the plan from lines; whether there is one."""
    body = _FENCE.sub("", _MARKUP_COMMENT.sub("", body))
    after = list(_PLAN_KEY.finditer(body))
    return _read_lines(body[after[-1].end() :] if after else body, plan, is_cut=is_cut) or bool(after)


def _read_tags(body: str, plan: _Plan, *, is_cut: bool) -> bool:
    """Each <fold>, <mask> and <prune> up to its end, up to the next one, or up to another kind of tag; whether the last one was closed."""
    tags = list(_ACTION_TAG.finditer(body))
    whole = True
    for tag, following in zip(tags, [*tags[1:], None], strict=True):
        if tag["close"]:
            continue
        attributes = _attributes(tag["rest"])
        action = _VERBS[tag["action"].lower()]
        kind, words = attributes.get("kind", "").lower(), _first_of(attributes, _WORD_KEYS)
        plan.reason = _first_of(attributes, _REASON_KEYS)
        for name in (attributes[key] for key in _TARGET_KEYS if key in attributes):
            _read_item(name, action, plan, words=words or plan.reason, kind=kind)
        if tag["rest"].rstrip().endswith("/"):
            continue
        content = body[tag.end() : following.start() if following else len(body)]
        whole = following is not None and bool(following["close"])
        foreign = next((other for other in _OTHER_TAG.finditer(content) if other["name"].lower() not in _ITEM_TAGS), None)
        is_last = is_cut and following is None and foreign is None
        _read_content(content[: foreign.start()] if foreign else content, action, plan, kind=kind, is_cut=is_last)
    return whole


def _read_content(content: str, action: PlanAction, plan: _Plan, *, kind: str, is_cut: bool) -> None:
    """What stands between the tags of one action: lines, tags of their own, or JSON."""
    bare = _FENCE.sub("", content).strip()
    if bare[:1] in ("[", "{"):
        hit = loose(bare)
        _collect(hit.value, action, plan, kind=kind)
        plan.refuse(hit.cut, "cut off")
        return
    lines = _OTHER_TAG.sub(_as_line, content).split("\n")
    for number, line in enumerate(lines):
        last_is_cut = is_cut and number == len(lines) - 1
        _read_item(line, action, plan, kind=kind, is_cut=last_is_cut)


def _as_line(tag: re.Match[str]) -> str:
    attributes = _attributes(tag["rest"])
    names = [attributes[key] for key in _TARGET_KEYS if key in attributes]
    return f"\n{names[0]} | {_first_of(attributes, (*_WORD_KEYS, *_REASON_KEYS))}\n" if names else "\n"


def _attributes(text: str) -> dict[str, str]:
    return {_key(hit["key"]): hit["a"] or hit["b"] or "" for hit in _ATTRIBUTE.finditer(text[:4_096])}


def _plan_in(value: Value) -> Node | None:
    """The last node that holds actions, wherever in a value; nodes are at most DEEPEST deep."""
    if isinstance(value, str):
        return None
    if any(key and _verb(key) for key, _ in value.items) or _entry_action(value) is not None:
        return value
    if any(not key and isinstance(item, Node) and _entry_action(item) for key, item in value.items):
        return value
    for _, item in reversed(value.items):
        if (hit := _plan_in(item)) is not None:
            return hit
    return None


def _read_loose(hit: Loose, plan: _Plan) -> None:
    """A plan that JSON holds: itself, or as text within a string."""
    if isinstance(hit.value, str):
        _read_body(hit.value, plan, is_cut=not hit.whole)
    elif (node := _plan_in(hit.value)) is not None:
        _read_node(node, plan)
    plan.refuse(hit.cut, "cut off")


def _read_node(node: Node, plan: _Plan) -> None:
    if (action := _entry_action(node)) is not None:
        _read_entry(node, action, plan)
        return
    by_action: dict[PlanAction, Value] = {}
    for key, value in node.items:
        if (action := _verb(key)) is not None:
            by_action[action] = value  # of a repeated key the last counts
        elif isinstance(value, Node) and (not key or _key(key) in _PLAN_KEYS):
            _read_node(value, plan)
    for action, value in by_action.items():
        _collect(value, action, plan)


def _collect(value: Value, action: PlanAction, plan: _Plan, *, kind: str = "") -> None:
    """Targets of one action: a text, a list of texts or of entries, names with words, or groups of these by kind."""
    if isinstance(value, str):
        _read_item(value, action, plan, kind=kind)
        return
    if any(_key(key) in _TARGET_KEYS for key, _ in value.items):
        _read_entry(value, action, plan, kind=kind)
        return
    for key, item in value.items:
        if not key:
            _collect(item, action, plan, kind=kind)
        elif ":" in key:
            _read_item(key, action, plan, words=item if isinstance(item, str) else "", kind=kind)
        elif isinstance(item, Node):
            _collect(item, action, plan, kind=key.lower())
        elif _key(key) not in (*_WORD_KEYS, *_REASON_KEYS):
            plan.refuse(key, "no object's name")


def _read_entry(node: Node, action: PlanAction, plan: _Plan, *, kind: str = "") -> None:
    """One object of a list: `{"id": "read:12", "pointer": "…"}`."""
    texts = {_key(key): value for key, value in node.items if isinstance(value, str)}
    kind = texts.get("kind", kind).lower()
    words, plan.reason = _first_of(texts, _WORD_KEYS), _first_of(texts, _REASON_KEYS)
    for key, value in node.items:
        if _key(key) not in _TARGET_KEYS:
            continue
        values: list[tuple[str, Value]] = [("", value)] if isinstance(value, str) else value.items
        for _, item in values:
            if isinstance(item, str):
                _read_item(item, action, plan, words=words or plan.reason, kind=kind)
    plan.reason = ""


def _read_lines(text: str, plan: _Plan, *, is_cut: bool) -> bool:
    """A plan written in lines: `fold: read:12 | words`, a heading with a list, or `read:12 -> fold`. Prose is passed over."""
    action: PlanAction | None = None
    is_plan = False
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        last_is_cut = is_cut and number == len(lines)
        bullet = _BULLET.match(line)
        rest = line[bullet.end() if bullet else 0 :].strip()
        if (heading := _heading(rest)) is not None:
            is_plan, (action, rest) = True, heading
            if not _read_item(rest, action, plan, is_cut=last_is_cut, strict=True):
                action = None  # words about it, and no heading of a list
        elif (verdict := _verdict(rest)) is not None and not last_is_cut:
            is_plan = True
            _read_item(verdict[0], verdict[1], plan)
        elif action is not None and rest:
            is_item = bool(bullet and bullet[0].strip()) or _starts_with_name(rest)
            if not is_item or not _read_item(rest, action, plan, is_cut=last_is_cut, strict=True):
                action = None  # prose ends a list
    return is_plan


def _heading(line: str) -> tuple[PlanAction, str] | None:
    """`## Fold`, `Prune: read:12`: the action, and what follows."""
    hit = _HEADING.fullmatch(line)
    if hit is None:
        return None
    rest = hit["rest"].strip()
    bare = rest.lstrip(":=-–—>| *_\"'`")
    is_marked = not rest or rest[0] in ":=-–—|" or _starts_with_name(bare)
    return (_VERBS[hit["action"].lower()], bare) if is_marked else None


def _verdict(line: str) -> tuple[str, PlanAction] | None:
    """`read:12 -> fold, words`, as the item and its action."""
    token = _TOKEN.search(line[: NAME_CHARS + 8])
    if token is None or token.start() > 2:
        return None
    name = token[0].rstrip(_TRIM)
    hit = _VERDICT.fullmatch(line[token.start() + len(name) :].lstrip("*_`\"'"))
    is_one = hit is not None and _NAME.fullmatch(name) is not None
    return (f"{name} | {hit['rest']}", _VERBS[hit["action"].lower()]) if hit is not None and is_one else None


def _starts_with_name(text: str) -> bool:
    token = _TOKEN.search(text[: NAME_CHARS + 8])
    return token is not None and not text[: token.start()].strip("[(\"'`* ") and _is_name(_trimmed(token[0]))


def _read_item(
    text: str, action: PlanAction, plan: _Plan, *, words: str = "", kind: str = "", is_cut: bool = False, strict: bool = False
) -> bool:
    """One line or text: names in a row, then perhaps what is said about them. False when it holds something else.

    `strict`, where a line may be prose: a name that is followed by words with nothing in between is not taken for a target.
    """
    bullet = _BULLET.match(text)
    gap = _BETWEEN.match(text, bullet.end() if bullet else 0)
    place = gap.end() if gap else 0
    if text[place:].strip().lower() in _NOTHING:
        return True
    names: list[str] = []
    tool = between = ""
    while (token := _TOKEN.match(text, place)) is not None and not plan.is_full() and len(names) < TARGETS:
        name = _trimmed(token[0])
        if tool and between.strip() and _NUMBERS.fullmatch(name):
            name = f"{tool}{name}"
        elif not _is_name(name):
            break
        place = token.end()
        if is_cut and place >= len(text):
            plan.refuse(name, "cut off")
            if not names:
                return True
            break
        names.append(name)
        tool = name[: name.rfind(":") + 1]
        if token[0].rstrip("*_`").endswith(":"):
            break  # what follows a colon is said about it
        gap = _BETWEEN.match(text, place)
        between = gap[0] if gap else ""
        place += len(between)
    if not names:
        plan.refuse(text, "no object's name")
        return False
    rest = text[place:]
    if (strict or len(names) > 1) and rest[:1].isalnum() and not between.strip(_QUOTES) and not plan.is_full():
        plan.refuse(f"{names.pop()} {rest}", "in prose: unclear whether it is meant")
        rest = ""
    for name in chain.from_iterable(map(_expanded, names)):
        if plan.is_full():
            break
        plan.add(action, name, words or rest, kind)
    return True


def _trimmed(token: str) -> str:
    """A token without what a sentence or markup put around it; a tool's name may begin with an underscore."""
    return token.lstrip("*.,:;!?–—").rstrip(_TRIM)


def _is_name(token: str) -> bool:
    return len(token) <= NAME_CHARS and (_NAME.fullmatch(token) is not None or _range(token) is not None)


def _range(name: str) -> tuple[str, range] | None:
    """The tool and the numbers of `bash:1-14`."""
    hit = _RANGE.fullmatch(name)
    if hit is None or hit["tool"] == "skill:":
        return None
    low, high = int(hit["low"]), int(hit["high"])
    return (hit["tool"], range(low, high + 1)) if low <= high < low + RANGE else None


def _expanded(name: str) -> Iterator[str]:
    """The names of a range, else the name."""
    tool, numbers = _range(name) or (name, ("",))
    return (f"{tool}{number}" for number in numbers)


def _summary(text: str) -> str:
    """The last summary of the reply."""
    tags = list(_SUMMARY_TAG.finditer(text))
    if tags:
        return first_line(tags[-1]["body"], SUMMARY_CHARS)
    keys = list(_SUMMARY_KEY.finditer(text))
    if not keys:
        return ""
    at = keys[-1].end()
    if text[at : at + 1] in ("'", '"'):
        hit = loose(text, at)
        return first_line(hit.value or hit.cut, SUMMARY_CHARS) if isinstance(hit.value, str) else ""
    return first_line(text[at : at + 4 * SUMMARY_CHARS].partition("\n")[0], SUMMARY_CHARS)


def _words(text: str) -> str:
    return first_line(text.strip().strip("|:;,.–—-()[]\"'` \t\n"), WORDS_CHARS) if text else ""


def _entry_action(node: Node) -> PlanAction | None:
    """The action of `{"action": "fold", "target": "read:12"}`."""
    texts = {_key(key): value for key, value in node.items if isinstance(value, str)}
    if not any(_key(key) in _TARGET_KEYS for key, _ in node.items):
        return None
    return next((verb for key in _ACTION_KEYS if (verb := _verb(texts.get(key, ""))) is not None), None)


def _verb(text: str) -> PlanAction | None:
    return _VERBS.get(_key(text)) if len(text) <= 40 else None


def _key(text: str) -> str:
    return re.sub(r"[^a-z]", "", text[:40].lower())


def _first_of(texts: Mapping[str, str], keys: tuple[str, ...]) -> str:
    return next((texts[key] for key in keys if texts.get(key)), "")
