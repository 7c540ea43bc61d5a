"""What an audit of a recorded session finds: where its window went, and what each policy would have done to it. docs/audit.md has every definition."""
