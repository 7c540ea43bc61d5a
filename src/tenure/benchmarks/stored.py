"""Any stored session, measured: one of our own store, or another tool's file (an edge: it reads files).

Promise: nothing is skipped silently: what is known of a session is used, its commits and its bill too where the store has them.
"""

from pathlib import Path

from tenure.benchmarks.gathered import session_measured
from tenure.benchmarks.measures.measured import Measured, measured
from tenure.disk import stores
from tenure.evals.loading import load, source
from tenure.meter.tokens import Tokenizer


def stored_measured(address: str, count: Tokenizer) -> Measured:
    """The measures of a session: `path`, or `path#id` of a store of many. Raises InputError for one that is not there."""
    from tenure.store.records import conversation_named
    from tenure.store.store import Store

    path, sign, inner = address.rpartition("#")
    path, inner = (path, inner) if sign and Path(path).is_file() else (address, "")
    if not Path(path).is_file() or stores.store_of(Path(path)) != stores.OWN:
        loaded = load([source(address)], count)
        return measured(loaded.index, loaded.read, count)
    with Store(f"sqlite:///{Path(path).resolve()}") as store:
        return session_measured(store, conversation_named(store, path, inner).id, count)
