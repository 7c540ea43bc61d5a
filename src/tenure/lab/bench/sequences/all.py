"""The sequences by name, as the command line knows them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tenure.errors import InputError
from tenure.lab.bench.sequences.canvas import CANVAS
from tenure.lab.bench.sequences.hashes import HASHES
from tenure.lab.bench.sequences.kernel import KERNEL
from tenure.lab.bench.sequences.sequence import Sequence

SEQUENCES: Final[Mapping[str, Sequence]] = MappingProxyType({each.name: each for each in (CANVAS, HASHES, KERNEL)})


def sequence_named(name: str) -> Sequence:
    """The sequence of that name. Raises InputError, naming those there are."""
    if name not in SEQUENCES:
        raise InputError("sequence", repr(name), "one of " + ", ".join(SEQUENCES))
    return SEQUENCES[name]
