"""Any stored session, measured: one of our own store, or another tool's file (an edge: it reads files).

What is known of a session is used, its commits and its bill too where the store has them.
"""

from tenure.engine.meter.tokens import Tokenizer
from tenure.lab.bench.gathered import session_measured
from tenure.lab.bench.measures.measured import Measured, measured
from tenure.lab.loading import load, own_address, own_store, source


def stored_measured(address: str, count: Tokenizer) -> Measured:
    """The measures of a session: `path`, or `path#id` of a store of many. Raises InputError for one that is not there."""
    found = own_address(address)
    if found is None:
        loaded = load([source(address)], count)
        return measured(loaded.index, loaded.read, count)
    with own_store(*found) as (store, sheet):
        return session_measured(store, sheet.id, count)
