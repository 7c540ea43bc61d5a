"""Judges for those who have a model: does what is left at a cut still support what really came.

Self-GC paper, Metrics and appendix. `cases` cuts recorded sessions into cases, `no_impact` and `preference` are the two contracts (`ask`, `read`),
`running` asks a model and remembers its verdicts, `figures` says what they come to and how far the judge can be believed. docs/judges.md says what
of this is the paper's.
"""
