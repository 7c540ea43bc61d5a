"""How policies are compared on recorded sessions: whole sessions, one that accumulates, budgets swept, curves. docs/protocols.md has the rules.

Promise: nothing costs more than it saves, and anyone can check it: every figure is a frozen struct, made from a replay's lines and nothing else.
"""
