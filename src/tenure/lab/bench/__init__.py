"""Benchmarks of the agent (an edge): others' through their harnesses, ours as sequences of dependent tasks, and what to make of N runs.

docs/benchmarks.md has the commands.
"""
