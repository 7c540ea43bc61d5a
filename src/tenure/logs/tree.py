"""Logs in which every line names its parent: what a rewind left behind stays in the file beside what replaced it."""

from collections.abc import Mapping


def branch(parents: Mapping[str, str | None], leaf: str) -> list[str]:
    """The ids from the root to `leaf`. A parent that is not a key ends the walk, and so does a cycle."""
    walked: dict[str, None] = {}
    step: str | None = leaf
    while step is not None and step in parents and step not in walked:
        walked[step] = None
        step = parents[step]
    return list(walked)[::-1]


def nearest(links: dict[str, str | None], among: Mapping[str, object], start: str | None) -> str | None:
    """The first of `start` and its ancestors in `links` that is a key of `among`; the last id reached when none is.

    `links` is shortened on the way, so that walking many times costs little.
    """
    passed: list[str] = []
    seen: set[str] = set()
    while start is not None and start not in among and start in links and start not in seen:
        passed.append(start)
        seen.add(start)
        start = links[start]
    for id_ in passed:
        links[id_] = start if start not in seen else None
    return start if start not in seen else None
