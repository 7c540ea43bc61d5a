"""Tenure manages the life of everything in an LLM agent's context window."""
