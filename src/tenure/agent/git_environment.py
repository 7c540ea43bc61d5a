"""Settings with which git runs nothing that a repository names. Pure.

What cannot be switched off from outside - filters, text conversions, external diffs - is judged by the repository's own settings instead; see
`admission.git_program` and `tools.shell.repository`.
"""

from collections.abc import Mapping
from typing import Final

# A folder that only looks like a repository is none, whoever runs git.
EVERYWHERE: Final = ("safe.bareRepository=explicit",)
# For git when it only looks.
LOOKING: Final = (
    *EVERYWHERE,
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.askPass=",
    "core.sshCommand=false",
    "credential.helper=",
    "protocol.allow=never",
    "status.showStash=false",
    "submodule.recurse=false",
    "diff.autoRefreshIndex=false",
    "log.showSignature=false",
    "advice.statusHints=false",
)
_LOOKING: Final[Mapping[str, str]] = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # not even what a repository allows
    "GIT_PAGER": "cat",
}
_KEPT: Final = frozenset(
    {"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_EXEC_PATH", "GIT_CEILING_DIRECTORIES"}
)


def looking(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment in which git looks at the folder that it is given, without locks, prompts, network or pager."""
    kept = {name: value for name, value in environment.items() if not name.startswith("GIT_") or name in _KEPT}
    return {**kept, **_LOOKING}


def configured(environment: Mapping[str, str], settings: tuple[str, ...]) -> dict[str, str]:
    """An environment in which git has further settings, `key=value`, which overrule those of its files."""
    given = environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    pairs = [setting.partition("=") for setting in settings]
    added = {f"GIT_CONFIG_{part}_{n}": pair[at] for n, pair in enumerate(pairs, first) for part, at in (("KEY", 0), ("VALUE", 2))}
    return {**environment, **added, "GIT_CONFIG_COUNT": str(first + len(pairs))}
