"""What a change of a file looks like, and what it needs.

A change is shown where it is known to be, without comparing whole files: what both versions begin and end with is left out.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tenure.agent.approval import Approval, CallEffect
from tenure.agent.workspace import Workspace, run_by
from tenure.engine.record.visible import visible

CONTEXT: Final = 3  # lines around a change
SHOWN: Final = 400  # lines of a change that is put before a person
_LINE: Final = 500  # characters of a line of it


def approval(tool: str, path: Path, workspace: Workspace, detail: str) -> Approval:
    """What a change of a file in itself needs."""
    shown = workspace.shown(path)
    act, reason = CallEffect.EDIT, "it changes a file"
    if workspace.is_secret(path):
        act, reason = CallEffect.OUTSIDE, "keys or passwords are kept there"
    elif not workspace.holds(path):
        landing = workspace.landing(path)
        through = f"a link leads to {landing}, which is" if landing != path and path.is_relative_to(workspace.root) else "it is"
        act, reason = CallEffect.OUTSIDE, f"{through} outside the workspace"
    elif workspace.is_git(path):
        act, reason = CallEffect.OUTSIDE, "it belongs to git itself"
    elif workspace.is_run(path):
        act, reason = CallEffect.COMMAND, "other programs run what stands there"
    return Approval(
        tool=tool,
        act=act,
        summary=f"{tool} {shown}",
        reason=reason,
        detail=detail,
        exact=f"{tool} {shown}",
        run_by=tuple(run_by(shown)),
    )


def difference(before: str, after: str, shown: str) -> str:
    """A unified diff of two versions as one hunk, bounded and harmless; empty when they are the same."""
    old, new = before.splitlines(), after.splitlines()
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    if not removed and not added:
        return ""
    first = max(0, head - CONTEXT)
    lead, trail = old[first:head], old[len(old) - tail :][:CONTEXT]
    counts = f"@@ -{first + 1},{len(lead) + len(removed) + len(trail)} +{first + 1},{len(lead) + len(added) + len(trail)} @@"
    rows = [*_rows(" ", lead), *_rows("-", removed), *_rows("+", added), *_rows(" ", trail)]
    return "\n".join([f"--- {shown}", f"+++ {shown}", counts, *rows])


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _rows(sign: str, lines: Sequence[str]) -> list[str]:
    half = SHOWN // 2
    left_out = len(lines) - 2 * half
    if left_out <= 0:
        return [sign + visible(line[:_LINE]) for line in lines]
    return [*_rows(sign, lines[:half]), f"{sign}[{left_out:,} more lines]", *_rows(sign, lines[-half:])]
