"""The lines of an audit beside those of a replay, as docs/audit.md has them."""

from msgspec import Struct

from tenure.lab.audit.report import VERSION, Audit, Total
from tenure.lab.events import BudgetLine, HarmLine, Head, Line, RecallLine, ReplayLine, SourceFile


class AuditLine(Struct, frozen=True, kw_only=True, tag="audit", tag_field="type"):
    """The first line of a session: what was asked."""

    version: int = VERSION
    source: SourceFile
    policies: tuple[str, ...]  # in the order of their runs; "none" first
    budget: BudgetLine
    model: str  # as asked for; empty: as the log says
    head_tokens: int  # o200k
    head: Head = Head(origin="given")  # how it is known


class RunLine(ReplayLine, frozen=True, kw_only=True, tag="run", tag_field="type"):
    """The first line of one policy: what a replay's first line says."""


AuditOutput = AuditLine | RunLine | Line | HarmLine | RecallLine | Audit | Total
