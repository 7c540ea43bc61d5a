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

whole = execute(database, ["MEMORY", "PROFILE", "HGETALL", "h"])
assert whole == 4 + 4 * 5 + 4, whole
assert execute(database, ["MEMORY", "PROFILE", "HGETALL", "h", "NOVALUES"]) == 4 + 2 * 5 + 2
assert execute(database, ["memory", "profile", "hgetall", "h", "novalues"]) == 4 + 2 * 5 + 2
assert execute(database, ["MEMORY", "PROFILE", "HGETALL", "none", "NOVALUES"]) == 4
try:
    execute(database, ["MEMORY", "PROFILE", "HGETALL", "h", "MORE"])
except CommandError:
    pass
else:
    raise AssertionError("a flag that is none")
