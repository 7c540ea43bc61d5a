"""What a client is told when a command cannot be answered."""


class CommandError(Exception):
    """Begins with ERR, as clients expect."""

    def __str__(self):
        return f"ERR {super().__str__()}"


class WrongType(CommandError):
    """A key that holds something else."""

    def __str__(self):
        return "WRONGTYPE Operation against a key holding the wrong kind of value"
