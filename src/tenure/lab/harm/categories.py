"""Which failure a missing need is, by a table of rules.

The six categories are those of the Self-GC paper (Failure Categories and Case Studies, table 7). The paper's auditors judged by reading; here the
first rule that holds decides, from where the need was held and what it looks like.
"""

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tenure.engine.record.objects import tool_name
from tenure.engine.record.tools import TOOL_KINDS, ToolKind
from tenure.lab.events import Category
from tenure.lab.harm.forms import Form, Kind
from tenure.lab.harm.holdings import Held
from tenure.lab.harm.use import Use


class Case(Struct, frozen=True, kw_only=True):
    """What a rule may look at: the use, the newest passage that held what is missing, and whether a handle of it is still shown."""

    use: Use
    held: Held
    named: bool  # a visible residue names its object, but gives no cue


class RuleOf(Struct, frozen=True, kw_only=True):
    """A rule by its name."""

    name: str
    category: Category
    holds: Callable[[Case], bool]


_READS: Final = frozenset("read read_file readfile view cat open_file notebookread str_replace_editor".split())
_STATES: Final = frozenset(
    "todowrite todo_write update_plan write_todos taskcreate taskupdate tasklist taskoutput taskget bashoutput notes".split()
)
_CONTRACTS = re.compile(r"\b(?:CLAUDE|AGENTS|GEMINI|CONTRIBUTING|SKILL|CONVENTIONS|STYLE)\.md\b|\.cursorrules|/(?:rules|skills)/")
_FAILURES = re.compile(r"\b(?:Traceback|FAILED|panicked|Exit code [1-9]|exit status [1-9]|AssertionError|error:)", re.IGNORECASE)
_FAILED_WITHIN: Final = 4_000  # characters of an output that say whether it failed


def _is_contract(case: Case) -> bool:
    held = case.held
    if held.origin in ("human", "harness") or held.role == "system":
        return True
    return tool_name(held.tool) == "skill" if held.tool else False


def _reads_contract(case: Case) -> bool:
    return case.held.kind == "tool_call" and _CONTRACTS.search(case.held.text[:_FAILED_WITHIN]) is not None and _is_read(case)


def _is_state(case: Case) -> bool:
    return bool(case.held.tool) and tool_name(case.held.tool) in _STATES


def _is_failure(case: Case) -> bool:
    held = case.held
    if held.kind != "tool_result" or _is_read(case):
        return False
    return held.error or _FAILURES.search(held.text[:_FAILED_WITHIN]) is not None


def _is_read(case: Case) -> bool:
    return bool(case.held.tool) and tool_name(case.held.tool) in _READS


def _is_locator(case: Case) -> bool:
    return case.use.kind is Kind.LOCATOR and case.use.form is not Form.NUMBER


def _is_verbatim(case: Case) -> bool:
    return case.use.kind is Kind.VERBATIM and (not _is_output(case))


def _is_output(case: Case) -> bool:
    """Whether it was the output of a command or a search: rows and lines, not a source text."""
    if case.held.kind != "tool_result" or _is_read(case):
        return False
    return TOOL_KINDS.get(tool_name(case.held.tool)) is not ToolKind.DURABLE


# The first that holds decides; the last holds always.
RULES: Final = (
    RuleOf(name="a handle is shown, no cue", category=Category.ROUTING, holds=lambda case: case.named),
    RuleOf(name="held by instructions", category=Category.CONTRACT, holds=_is_contract),
    RuleOf(name="held by a read of instructions", category=Category.CONTRACT, holds=_reads_contract),
    RuleOf(name="held by a task list", category=Category.LIVE, holds=_is_state),
    RuleOf(name="held by a failure", category=Category.LIVE, holds=_is_failure),
    RuleOf(name="is a locator", category=Category.LOCATOR, holds=_is_locator),
    RuleOf(name="is a line of a source", category=Category.VERBATIM, holds=_is_verbatim),
    RuleOf(name="is a detail", category=Category.EVIDENCE, holds=lambda _case: True),
)


def classify(case: Case) -> tuple[Category, str]:
    """The category and the rule that decided it."""
    decided = next(rule for rule in RULES if rule.holds(case))
    return decided.category, decided.name
