"""What a removal did to the steps that came after it, measured without a model.

The detector reads REPLAY.md's lines, so it runs beside a replay, over a file that one wrote, or for a single cut. It shares no code with any
policy: what a policy takes for an anchor and what is counted here as missed are found by different means.
"""

from tenure.lab.events import EditTarget, HarmLine
from tenure.lab.harm.watch import after_cut, edits_after_cut, uses_of, watched

__all__ = ["EditTarget", "HarmLine", "after_cut", "edits_after_cut", "uses_of", "watched"]
