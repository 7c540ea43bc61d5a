import unittest

from server import Database, execute
from server.errors import CommandError


class HashesTest(unittest.TestCase):
    def setUp(self):
        self.database = Database()
        execute(self.database, ["HSET", "user:1", "name", "Ann", "town", "Ulm"])

    def test_all_of_a_hash_is_listed_in_turn(self):
        self.assertEqual(execute(self.database, ["HGETALL", "user:1"]), ["name", "Ann", "town", "Ulm"])

    def test_an_estimate_is_what_the_reply_weighs(self):
        self.assertEqual(execute(self.database, ["MEMORY", "PROFILE", "HGETALL", "user:1"]), 4 + 4 * 5 + 14)

    def test_a_flag_that_a_command_does_not_know_is_an_argument_too_many(self):
        with self.assertRaises(CommandError):
            execute(self.database, ["HKEYS", "user:1", "WITHVALUES"])


if __name__ == "__main__":
    unittest.main()
