"""Benchmarks of the agent (an edge): others' through their harnesses, ours as sequences of dependent tasks, and what to make of N runs.

Promise: nothing costs more than it saves, and every figure is computed from records that anyone can open. docs/benchmarks.md has the commands.
"""
