"""The program that starts a command behind Landlock and seccomp, and the rules of both (an edge: it speaks to the kernel).

Run as a script, `python -I -S landlock.py BOUNDS STATUS -- command`, it takes from itself what `BOUNDS` takes, says so on the descriptor `STATUS`
and becomes the command. It exits with `FAILED` when the kernel does not do all of it. So it needs nothing but the standard library.

https://docs.kernel.org/userspace-api/landlock.html, versions 1 to 6 of its interface; what an older one lacks is left to seccomp.
"""

import ctypes
import json
import os
import platform
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

FAILED: Final = 126
MADE: Final = b"made"

# https://git.kernel.org/.../include/uapi/linux/landlock.h
_WRITE_FILE, _READ_FILE, _TRUNCATE, _IOCTL = 1 << 1, 1 << 2, 1 << 14, 1 << 15
_CHANGE = sum(1 << bit for bit in (1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
_OF_FILES = 1 | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_KNOWN: Final = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}  # later ones: all sixteen
_TCP: Final = 3  # to bind and to connect
_SCOPES: Final = 3  # abstract sockets, and signals
_NETWORK_SINCE: Final = 4
_SCOPES_SINCE: Final = 6
_TRUNCATE_SINCE: Final = 3

_DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
_MORE_DEVICES: Final = ("ptmx", "pts", "shm", "dri", "kvm", "fuse", "net")

# Numbers of system calls: x86-64, then 64-bit ARM; -1 where there is none.
_SOCKET: Final = (41, 198)
_OPENING: Final = (((2, -1), 24), ((257, 56), 32))  # open and openat, and where in their arguments the flags are
_KEYS: Final = ((248, 217), (249, 218), (250, 219))  # the kernel's key rings
_RINGS: Final = ((425, 425),)  # io_uring, which makes sockets and opens files past this filter
_DEBUGGING: Final = ((101, 117), (304, 265))  # ptrace; open_by_handle_at
_ATTRIBUTES: Final = (  # modes, owners, attributes and times, which Landlock does not guard
    (90, -1), (91, 52), (268, 53), (452, 452), (92, -1), (93, 55), (94, -1), (260, 54), (188, 5), (189, 6), (190, 7), (197, 14), (198, 15),
    (199, 16), (463, 463), (466, 466), (469, 469), (132, -1), (235, -1), (261, -1), (280, 88),
)  # fmt: skip
_TRUNCATING: Final = ((76, 45), (437, 437))  # truncate; openat2, whose flags no filter sees
MACHINES: Final[Mapping[str, tuple[int, int]]] = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_DENY: Final = 0x00050000 | 13  # EACCES
_ALLOW: Final = 0x7FFF0000


def version() -> int:
    """Which version of Landlock this kernel has; 0 for none, or for a machine whose system calls are not known here."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        return 0
    found = int(_libc().syscall(444, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))
    return max(0, found)


def seccomp(sockets: str, *, attributes: bool = True, truncating: bool = True) -> bytes:
    """A seccomp program that refuses what would go round a wall, and sockets: "none" are allowed, "local" ones or "all".

    Without `attributes` modes, owners and times of files cannot be changed, and without `truncating` nothing is cut that was opened to be read.
    """
    machine, audited = MACHINES[platform.machine()]
    forbidden = [*_KEYS, *_RINGS, *_DEBUGGING, *(() if attributes else _ATTRIBUTES), *(() if truncating else _TRUNCATING)]
    deny = _step(0x06, _DENY)
    program = [_step(0x20, 4), _step(0x15, audited, 1, 0), deny]  # 32-bit calls have other numbers
    program += [_step(0x20, 0), _step(0x45, 0x40000000, 0, 1), deny]  # as have those of x32
    for number in (pair[machine] for pair in forbidden if pair[machine] >= 0):
        program += [_step(0x15, number, 0, 1), deny]
    for pair, flags in () if truncating else _OPENING:
        if pair[machine] >= 0:  # O_TRUNC with O_RDONLY
            program += [_step(0x15, pair[machine], 0, 5), _step(0x20, flags), _step(0x54, 0x203), _step(0x15, 0x200, 0, 1), deny]
            program += [_step(0x06, _ALLOW)]
    if sockets != "all":
        program += [_step(0x15, _SOCKET[machine], 0, 3 if sockets == "local" else 1)]
        program += [_step(0x20, 16), _step(0x15, 1, 1, 0)] if sockets == "local" else []  # AF_UNIX
        program += [deny]
    return b"".join([*program, _step(0x06, _ALLOW)])


def restrict(bounds: Mapping[str, Any]) -> None:
    """Take from this process what the bounds take. Raises OSError when the kernel does not do it.

    `writable` are folders that may be changed; `hidden` what may not be read; `looking`: nothing else may be done at all; `network`.
    """
    libc, known = _libc(), min(version(), int(bounds.get("version", 99)))
    if not known:
        raise OSError("Landlock is not to be had")
    looking, writable, hidden = bool(bounds["looking"]), tuple(bounds["writable"]), frozenset(bounds["hidden"])
    possible = _KNOWN.get(known, (1 << 16) - 1)
    handled = (_CHANGE | (_READ_FILE if looking or hidden else 0)) & possible
    tcp = _TCP if not bounds["network"] and known >= _NETWORK_SINCE else 0
    scopes = _SCOPES if looking and known >= _SCOPES_SINCE else 0
    layout = (handled, tcp, scopes)[: 3 if known >= _SCOPES_SINCE else 2 if known >= _NETWORK_SINCE else 1]
    packed = struct.pack(f"={len(layout)}Q", *layout)
    ruleset = int(libc.syscall(444, packed, ctypes.c_size_t(len(packed)), ctypes.c_uint32(0)))
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for path, access in _grants(writable, hidden, looking=looking):
        _grant(libc, ruleset, path, access & handled)
    if libc.prctl(38, 1, 0, 0, 0):  # no new privileges
        raise OSError(ctypes.get_errno(), "prctl")
    if libc.syscall(446, ruleset, ctypes.c_uint32(0)):
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)
    sockets = "none" if looking else "all" if bounds["network"] else "local"
    _filter(libc, seccomp(sockets, attributes=not looking, truncating=known >= _TRUNCATE_SINCE))


def _grants(writable: Iterable[str], hidden: frozenset[str], *, looking: bool) -> Iterator[tuple[str, int]]:
    """Every path that the command may use, and for what: with all that is below it."""
    # A look has no business with devices, nor with other processes: what of /proc has a number is one.
    processes: set[str] = {entry.path for entry in os.scandir("/proc") if entry.name.isdigit()} if looking else set()
    blind = hidden.union(processes, ["/dev"] if looking else [])
    if looking or hidden:
        for path in _around("/", blind):
            yield path, _READ_FILE
    for folder in writable:
        yield folder, _CHANGE | (0 if any(path.startswith(f"{folder}/") for path in hidden) else _READ_FILE)
    for device in (
        _DEVICES
        if looking
        else (*_DEVICES, *_MORE_DEVICES, *(entry.name for entry in os.scandir("/dev") if entry.name.startswith("nvidia")))
    ):
        yield f"/dev/{device}", _CHANGE | _READ_FILE


def _around(place: str, hidden: frozenset[str]) -> Iterator[str]:
    """The fewest paths that hold everything in a place but what is hidden. Links are left out: what they lead to is named itself."""
    if place in hidden:
        return
    below = place.rstrip("/") + "/"
    if not any(path.startswith(below) for path in hidden):
        yield place
        return
    try:
        entries = list(os.scandir(place))
    except OSError:
        return
    for entry in entries:
        if not entry.is_symlink():
            yield from _around(entry.path, hidden)


def _grant(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # not there, or gone by now
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            access &= _OF_FILES
        if access and libc.syscall(445, ruleset, ctypes.c_uint32(1), struct.pack("=Qi", access, opened), ctypes.c_uint32(0)):
            raise OSError(ctypes.get_errno(), "landlock_add_rule", path)
    finally:
        os.close(opened)


def _filter(libc: ctypes.CDLL, program: bytes) -> None:
    held = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("@HP", len(program) // 8, ctypes.addressof(held))
    if libc.prctl(22, 2, header, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def _step(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _main(arguments: list[str]) -> None:
    bounds, status, _, *command = arguments
    os.set_inheritable(int(status), False)
    try:
        restrict(json.loads(bounds))
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"Landlock: {error}\n")
        sys.exit(FAILED)
    os.write(int(status), MADE)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is the user's own
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.exit(127)


if __name__ == "__main__":
    _main(sys.argv[1:])
