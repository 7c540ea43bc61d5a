"""Baselines and the published rules of other tools, for comparison: each a short file that cites its source.

They run governed: human text, the prologue, the tail and holds stay, calls leave with their results. Where a rule says itself how much
goes, the loop does not stop it at a target (`Conduct.whole`). What they clear can be recalled like everything else; their own placeholders do
not say so, which is part of what is compared.
"""
