"""The keys and what they hold. One type a key, as long as it has something in it."""

from server.errors import WrongType


class Database:
    """Keys to values: str, list, set or dict."""

    def __init__(self):
        self.values = {}

    def held(self, key, kind):
        """The value of a key, None where there is none. Raises WrongType for another kind."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, kind):
            raise WrongType()
        return value

    def made(self, key, kind):
        """The value of a key, an empty one where there was none."""
        value = self.held(key, kind)
        if value is None:
            value = self.values[key] = kind()
        return value

    def tidy(self, key):
        """A key that holds nothing any more is gone."""
        if key in self.values and not self.values[key]:
            del self.values[key]
