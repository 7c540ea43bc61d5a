"""Where keys and passwords are kept, as one table: the judge of commands asks before a look there, and the wall hides it.

Places are known by their names, wherever they lie; `in_home` lists those that are in a home folder, `below` those in a folder.
"""

import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Final

# Folders and files below a home. The wall hides each that is there.
HOME: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/tenure",
    ".password-store", ".local/share/keyrings", ".netrc", "_netrc", ".pgpass", ".git-credentials", ".config/git/credentials", ".npmrc",
    ".pypirc", ".htpasswd", ".docker/config.json", ".mozilla", ".config/google-chrome", ".config/chromium", ".thunderbird", ".claude.json",
    ".claude/.credentials.json", ".codex/auth.json", ".gemini/oauth_creds.json", ".local/share/opencode/auth.json",
)  # fmt: skip
SYSTEM: Final = (
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
)

_NAMED: Final = "|".join(re.escape(place) for place in HOME)
# Templates of secrets hold none.
_SECRET: Final = re.compile(
    rf"(?:^|/)(?:{_NAMED}|keyrings)(?:/|$)"
    r"|(?:^|/)credentials\.json$"
    r"|(?:^|/)\.env(?:\.(?!example$|sample$|template$|dist$)[^/]*)?$"
    r"|(?:^|/)id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$"
    rf"|^(?:{'|'.join(re.escape(place) for place in SYSTEM)})(?:/|$)"
    r"|^/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem)$"
)
_PASSED_OVER: Final = frozenset({".git", "node_modules", ".venv", "venv", "target", "dist", "build", "__pycache__"})
LOOKED_AT: Final = 4_000  # names below a folder, nearest first


def is_secret(path: str) -> bool:
    """Whether a path is a place where keys are kept, or lies in one."""
    return _SECRET.search(path) is not None


def in_home(home: Path) -> Iterator[Path]:
    """The places of a home and of the system that are there."""
    for path in (*(home / place for place in HOME), *map(Path, SYSTEM)):
        if os.path.lexists(path):
            yield path


def below(folder: Path, most: int = LOOKED_AT) -> Iterator[Path]:
    """The places in a folder, of the first `most` names; links are not followed, nor are folders of what was fetched or built."""
    waiting = deque([str(folder)])
    while waiting:
        try:
            entries = os.scandir(waiting.popleft())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if (most := most - 1) < 0:
                    return
                if is_secret(entry.path[len(str(folder)) :]):
                    yield Path(entry.path)
                elif entry.name not in _PASSED_OVER and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
