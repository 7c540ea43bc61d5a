"""How policies are compared on recorded sessions: whole sessions, one that accumulates, budgets swept, curves. docs/protocols.md has the rules."""
