"""The sequence `hashes`: a flag of a command, the profiler that must know it, tests of both. It stands for the paper's tasks on Redis.

The second and the third task depend on what the first decided: where the flag stands, and what a reply with it looks like.
"""

from typing import Final

from tenure.lab.bench.sequences.hashes_files import FILES
from tenure.lab.bench.sequences.sequence import Sequence, Step, begin, call, end, says

_FLAG_CHECK: Final = """\
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
"""

_PROFILE_CHECK: Final = (
    _FLAG_CHECK
    + """
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
"""
)

_TESTS_CHECK: Final = (
    _PROFILE_CHECK
    + """
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
"""
)

STEPS: Final = (
    Step(
        name="novalues",
        words=(
            "Add the flag NOVALUES to HGETALL: with it the reply has the fields alone, in their order. Flags are written as those of other commands are."
            " Without the flag nothing changes."
        ),
        check=_FLAG_CHECK,
    ),
    Step(
        name="profile",
        words=(
            "Extend the memory profiler to cover the new flag: MEMORY PROFILE HGETALL key NOVALUES gives what the shorter reply weighs, whatever the case;"
            " any other flag stays an error."
        ),
        check=_PROFILE_CHECK,
    ),
    Step(
        name="tests",
        words=(
            "Write a test suite for both, the flag and the profiler, in tests/test_novalues.py: at least four tests, which must fail if either were taken"
            " away again."
        ),
        check=_TESTS_CHECK,
    ),
)

_FLAGGED: Final = '''\
@command("HGETALL", 1, flags=("NOVALUES",))
def hgetall(database, key, novalues=False):
    """All fields with their values, in turn; with NOVALUES the fields alone."""
    held = database.held(key, dict) or {}
    return list(held) if novalues else [word for pair in held.items() for word in pair]
'''

_PLAIN: Final = '''\
@command("HGETALL", 1)
def hgetall(database, key):
    """All fields with their values, in turn."""
    held = database.held(key, dict) or {}
    return [word for pair in held.items() for word in pair]
'''

_ESTIMATED: Final = """\
@estimate("HGETALL")
def of_hgetall(database, key, *flags):
    if flags and [flag.upper() for flag in flags] != ["NOVALUES"]:
        raise TypeError("no such flag")
    held = database.held(key, dict) or {}
    return weight(held if flags else [word for pair in held.items() for word in pair])
"""

_BEFORE: Final = """\
@estimate("HGETALL")
def of_hgetall(database, key):
    held = database.held(key, dict) or {}
    return weight([word for pair in held.items() for word in pair])
"""

_SUITE: Final = """\
import unittest

from server import Database, execute
from server.errors import CommandError


class NovaluesTest(unittest.TestCase):
    def setUp(self):
        self.database = Database()
        execute(self.database, ["HSET", "h", "b", "one", "a", "two"])

    def test_only_fields_are_listed_in_their_order(self):
        self.assertEqual(execute(self.database, ["HGETALL", "h", "NOVALUES"]), ["b", "a"])

    def test_without_the_flag_nothing_changes(self):
        self.assertEqual(execute(self.database, ["HGETALL", "h"]), ["b", "one", "a", "two"])

    def test_a_hash_that_is_not_there_has_no_fields(self):
        self.assertEqual(execute(self.database, ["HGETALL", "none", "novalues"]), [])

    def test_the_profiler_weighs_the_shorter_reply(self):
        self.assertEqual(execute(self.database, ["MEMORY", "PROFILE", "HGETALL", "h", "NOVALUES"]), 4 + 2 * 5 + 2)

    def test_the_profiler_knows_no_other_flag(self):
        with self.assertRaises(CommandError):
            execute(self.database, ["MEMORY", "PROFILE", "HGETALL", "h", "SOMETIMES"])


if __name__ == "__main__":
    unittest.main()
"""

_TEST: Final = "python3 -m unittest discover -q -s tests -t ."

_REPLIES: Final = (
    says("I look for how flags are handed on.", begin("locate-flags"), call("grep", pattern="flags", path="server")),
    says("", call("read", path="server/dispatch.py"), call("read", path="server/commands/hashes.py")),
    says("", call("read", path="server/commands/strings.py"), call("read", path="tests/test_hashes.py")),
    says(
        "",
        end(
            "server/dispatch.py: @command(name, least, most, flags=(...)); execute takes flags from the end, in any case, and hands them on as lower-case"
            " keywords. HGETALL is hgetall() in server/commands/hashes.py; HRANDFIELD shows the pattern with WITHVALUES."
        ),
        begin("add-novalues", "locate-flags"),
        call("edit", path="server/commands/hashes.py", old=_PLAIN, new=_FLAGGED),
    ),
    says("", call("bash", command=f"{_TEST} && python3 -c \"from server import *; d = Database(); execute(d, ['HSET','h','b','1']); print(execute(d, ['HGETALL','h','NOVALUES']))\"")),
    says("", end()),
    says("HGETALL key NOVALUES lists the fields alone; the flag is declared as HRANDFIELD's is, and all tests pass."),
    says("Now the profiler.", begin("locate-profiler"), call("grep", pattern="ESTIMATES|estimate", path="server")),
    says("", call("read", path="server/profiler.py"), call("read", path="server/database.py"), call("read", path="server/errors.py")),
    says("", call("read", path="server/commands/lists.py"), call("read", path="server/commands/sets.py"), call("read", path="server/commands/keys.py")),
    says(
        "",
        end(
            "server/profiler.py: ESTIMATES by command, of_hgetall(database, key); memory() hands arguments on as given, flags among them in the case the client"
            " used, and turns TypeError into an ERR. weight(words) is 4 + 5 a word + bytes."
        ),
        begin("profile-novalues", "locate-profiler", "locate-flags"),
        call("edit", path="server/profiler.py", old=_BEFORE, new=_ESTIMATED),
    ),
    says("", call("bash", command=f"{_TEST} && python3 -c \"from server import *; d = Database(); execute(d, ['HSET','h','b','1']); print(execute(d, ['MEMORY','PROFILE','HGETALL','h','NOVALUES']))\"")),
    says("", end()),
    says("MEMORY PROFILE HGETALL key NOVALUES weighs the shorter reply; any other flag stays an error."),
    says("I look once more at what both give.", begin("review-novalues"), call("read", path="server/commands/hashes.py", offset=1, limit=60)),
    says("", call("grep", pattern="NOVALUES", path="server"), call("read", path="server/profiler.py", offset=1, limit=50)),
    says(
        "",
        end("NOVALUES: hgetall(novalues=True) gives list(held); of_hgetall takes *flags and raises TypeError for others, which memory() makes an ERR."),
        begin("test-novalues", "review-novalues", "locate-flags", "locate-profiler"),
        call("write", path="tests/test_novalues.py", content=_SUITE),
    ),
    says("", call("bash", command=_TEST)),
    says("", end()),
    says("tests/test_novalues.py has five tests, three of the flag and two of the profiler; all pass."),
)  # fmt: skip

HASHES: Final = Sequence(
    name="hashes",
    stands_for="Redis: NOVALUES for HGETALL; the memory profiler extended to it; a test suite covering both",
    files=FILES,
    steps=STEPS,
    replies=_REPLIES,
    ceiling=10_000,
)
