"""`tenure seal`: encrypt a store that is in clear, or encrypt it anew with another key."""

import os
from typing import Annotated

from tenure.cli import words
from tenure.cli.options import argument
from tenure.cli.verify import store_url
from tenure.errors import InputError


def seal(
    store: Annotated[str, argument("[STORE]", "A file, or a database's URL. Default: the agent's own store.")] = "",
) -> None:
    """Seal all records of a store with the key that TENURE_STORE_KEY_FILE or TENURE_STORE_KEY names.

    A sealed store is sealed anew: put the new key on a line before the one in force, and take the old one away afterwards. Nobody else may have the store open.
    Killed meanwhile, it leaves the store as it was. Copies that were made of the store before stay as they are.
    """
    from tenure.store.seal import KEY, KEY_FILE, keys_of, reseal

    keys = keys_of(os.environ)
    if not keys:
        raise InputError(KEY_FILE, f"no key there nor in {KEY}", "a key, such as that of: openssl rand -base64 32")
    count = reseal(store_url(store, there=True), keys)
    words.screen().print(f"Sealed {words.several(count, 'row')}; the first key opens them", soft_wrap=True)
