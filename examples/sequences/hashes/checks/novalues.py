from server import Database, execute
from server.errors import CommandError

database = Database()
execute(database, ["HSET", "h", "b", "1", "a", "2"])
assert execute(database, ["HGETALL", "h"]) == ["b", "1", "a", "2"]
assert execute(database, ["HGETALL", "h", "NOVALUES"]) == ["b", "a"], "in the order of the fields"
assert execute(database, ["hgetall", "h", "novalues"]) == ["b", "a"], "whatever the case"
assert execute(database, ["HGETALL", "none", "NOVALUES"]) == []
execute(database, ["SET", "s", "x"])
for words in (["HGETALL", "h", "MORE"], ["HGETALL", "s", "NOVALUES"], ["HGETALL"]):
    try:
        execute(database, words)
    except CommandError:
        pass
    else:
        raise AssertionError(words)
