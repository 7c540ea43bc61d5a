"""How much a page tells of each session: of a few all that a report has, or nearly, and less of each of many."""

from typing import Final

from msgspec import Struct

FEW: Final = 12  # sessions that are told in full

_PAGE_ROOM: Final = 6_000_000  # bytes of the excerpts of all sessions
_SESSION_ROOM: Final = 320_000


class Detail(Struct, frozen=True, kw_only=True):
    """What one session may take, so that its part of a page stays below 2 MB whatever a report holds."""

    room: int  # bytes of excerpts
    points: int  # of a drawing
    rows: int  # of a table
    listed: int  # needs of a run, in the script's data
    gone: int  # objects of a run's commits together, likewise
    commits: int  # of a run, in a table
    needs: int  # of a run, in a table, where there is no script


def detail_for(sessions: int, runs: int) -> Detail:
    """The detail of each of so many sessions with so many runs each."""
    share, runs = min(1.0, FEW / max(1, sessions)), max(1, runs)
    return Detail(
        room=min(_SESSION_ROOM, _PAGE_ROOM // max(1, sessions)),
        points=max(100, int(400 * share)),
        rows=max(15, int(120 * share)),
        listed=max(20, min(400, int(1_600 * share) // runs)),
        gone=max(100, min(1_600, int(8_000 * share) // runs)),
        commits=max(10, min(100, int(280 * share) // runs)),
        needs=max(5, min(25, int(160 * share) // runs)),
    )
