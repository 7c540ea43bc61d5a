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

# The suite passes as things are, and fails once the flag, or the profiler's knowledge of it, is taken away.
import io
import unittest

import server.dispatch as dispatch
import server.profiler as profiler


def suite():
    found = unittest.defaultTestLoader.discover("tests", pattern="test_novalues.py", top_level_dir=".")
    result = unittest.TextTestRunner(stream=io.StringIO()).run(found)
    return result.testsRun, result.wasSuccessful()


ran, passed = suite()
assert ran >= 4, f"{ran} tests in tests/test_novalues.py"
assert passed, "the suite fails as things are"

hgetall = dispatch.COMMANDS["HGETALL"].function
dispatch.COMMANDS["HGETALL"].function = lambda database, key, **flags: hgetall(database, key)
assert not suite()[1], "the suite does not notice that NOVALUES does nothing"
dispatch.COMMANDS["HGETALL"].function = hgetall

of_hgetall = profiler.ESTIMATES["HGETALL"]
profiler.ESTIMATES["HGETALL"] = lambda database, key, *flags: of_hgetall(database, key)
assert not suite()[1], "the suite does not notice that the profiler forgets NOVALUES"
