"""What was learned from recorded sessions, as text; `python bench/learn.py FOLDER --module FILE` writes it."""

from typing import Final

from tenure.engine.policies.graph.forest import Forest
from tenure.engine.policies.graph.keeping import ModelWeights

LEARNED: Final = ModelWeights(anchor=Forest("-6000"), line=Forest("-6000"))
