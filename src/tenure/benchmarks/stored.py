"""Any stored session, measured: one of our own store, or another tool's file (an edge: it reads files).

What is known of a session is used, its commits and its bill too where the store has them.
"""

from tenure.benchmarks.gathered import session_measured
from tenure.benchmarks.measures.measured import Measured, measured
from tenure.evals.loading import load, own_address, own_store, source
from tenure.meter.tokens import Tokenizer


def stored_measured(address: str, count: Tokenizer) -> Measured:
    """The measures of a session: `path`, or `path#id` of a store of many. Raises InputError for one that is not there."""
    found = own_address(address)
    if found is None:
        loaded = load([source(address)], count)
        return measured(loaded.index, loaded.read, count)
    with own_store(*found) as (store, sheet):
        return session_measured(store, sheet.id, count)
