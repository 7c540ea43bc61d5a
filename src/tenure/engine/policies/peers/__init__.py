"""Baselines and the published rules of other tools, for comparison: each a short file that cites its source.

They run governed: human text, the prologue, the tail and holds stay, calls leave with their results. Where a rule says itself how much
goes, the loop does not stop it at a target (`Conduct.whole`). What they clear can be recalled like everything else; their own placeholders do
not say so, which is part of what is compared.

`tenure replay --faithful` (`Setup.faithful`) lets them run as they were published: human text, prologue, tail and holds may go too. What stays
is the system prompt, the message a request opens with, what the model has not answered yet, pairs, and reasoning with what it led to. Such
a run says so, and counts the protected blocks it changed; comparisons use the governed one.
"""
