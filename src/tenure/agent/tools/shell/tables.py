"""Programs by what they do, as tables. Promise: what is not in a table of those that only look is never taken for one.

The words are those of the programs' own manuals; a program is added here by one word.
"""

import re
from collections.abc import Mapping
from typing import Final

# Programs that only look, whatever is asked of them.
LOOKS: Final = frozenset(
    "cat head tail wc echo pwd ls eza exa stat du df which whoami id nproc arch uptime free uname basename dirname realpath readlink true false :"
    " seq cut tr paste join comm column nl rev tac fold fmt expand unexpand md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum"
    " sum diff cmp strings od hexdump lsblk lscpu pgrep pidof printenv groups getent tty locale numfmt factor zcat xzcat bzcat zstdcat grep egrep"
    " fgrep zgrep jq tokei exit return break continue wait jobs sleep type nm readelf size base64 expr cal diffstat dirs shift".split()
)

# Programs that look unless one of these options is given: letters, names.
LOOKS_BUT: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "sort": ("oT", ("output", "compress-program", "temporary-directory")),
    "shuf": ("o", ("output",)),
    "iconv": ("o", ("output",)),
    "tree": ("o", ()),
    "file": ("C", ("compile",)),
    "date": ("s", ("set",)),
    "rg": ("", ("pre", "hostname-bin", "search-zip")),
    "yq": ("is", ("inplace", "in-place", "split-exp")),
    "hostname": ("bF", ("boot", "file")),
}

# What they say of themselves: free with this option or subcommand and nothing else.
VERSIONS: Final = frozenset({"--version", "-V", "version"})
VERSIONED: Final = frozenset(
    "python python3 node npm npx pnpm yarn deno bun ruby perl php go cargo rustc rustup gcc g++ clang make cmake java javac mvn gradle dotnet docker"
    " podman kubectl helm terraform pip pip3 uv poetry ruff black mypy pyright pytest tsc eslint prettier bash sh zsh curl wget tar gh aws".split()
)
QUERIES: Final[Mapping[str, frozenset[str]]] = {
    "npm": frozenset({"ls", "list", "root", "prefix"}),
    "pnpm": frozenset({"ls", "list", "root"}),
    "pip": frozenset({"list", "show", "freeze", "check"}),
    "pip3": frozenset({"list", "show", "freeze", "check"}),
    "cargo": frozenset({"tree", "pkgid", "locate-project"}),
    "go": frozenset({"version", "doc"}),
    "rustup": frozenset({"show"}),
    "docker": frozenset({"ps", "images", "logs", "inspect", "top", "port", "diff", "info"}),
    "podman": frozenset({"ps", "images", "logs", "inspect", "top", "port", "diff", "info"}),
    "kubectl": frozenset({"get", "describe", "logs", "explain", "top", "api-resources"}),
    "systemctl": frozenset({"status", "list-units", "is-active", "is-enabled"}),
}

# Programs whose first argument says what they do; the person allows them together.
SUBCOMMANDS: Final = frozenset(
    "git npm npx pnpm yarn bun deno cargo go docker podman kubectl make just task pip pip3 uv uvx poetry pdm hatch rake bundle gem gradle mvn"
    " dotnet tox nox composer php mix terraform helm gh aws gcloud az apt apt-get brew dnf apk conda systemctl service rails django-admin nx turbo lerna"
    " bazel cmake meson ninja ansible pulumi flutter dart swift zig stack cabal opam ./gradlew ./mvnw".split()
)
RUNNERS: Final = frozenset({"run", "exec", "compose", "tool"})  # a subcommand whose own first argument counts too

DESTROYERS: Final = frozenset(
    "shred wipe srm scrub wipefs fdisk sfdisk cfdisk parted gdisk sgdisk blkdiscard cryptsetup lvremove vgremove pvremove mkswap shutdown reboot"
    " poweroff halt telinit init userdel groupdel deluser delgroup dropdb dropuser badblocks debugfs hdparm".split()
)

# Subcommands that cannot be undone, or that the whole world sees.
DESTROYING: Final[Mapping[str, re.Pattern[str]]] = {
    "docker": re.compile(r"\b(?:rm|rmi|prune|kill|down)\b"),
    "podman": re.compile(r"\b(?:rm|rmi|prune|kill|down)\b"),
    "kubectl": re.compile(r"\b(?:delete|drain|replace|cordon)\b"),
    "terraform": re.compile(r"\b(?:destroy|apply|taint|state (?:rm|push))\b"),
    "pulumi": re.compile(r"\b(?:destroy|up|stack rm)\b"),
    "helm": re.compile(r"\b(?:uninstall|delete|rollback)\b"),
    "aws": re.compile(r"\b(?:rm|rb|delete-\S+|terminate-\S+|remove-\S+|purge-\S+)\b|--delete\b"),
    "gcloud": re.compile(r"\b(?:delete|rm)\b"),
    "gsutil": re.compile(r"\b(?:rm|rb)\b|\brsync\b.* -\w*d"),
    "az": re.compile(r"\b(?:delete|purge)\b"),
    "gh": re.compile(r"\bdelete\b|\bapi\b.*(?:DELETE|PUT|PATCH|POST)"),
    "npm": re.compile(r"\b(?:publish|unpublish|deprecate)\b"),
    "pnpm": re.compile(r"\bpublish\b"),
    "yarn": re.compile(r"\bpublish\b"),
    "cargo": re.compile(r"\b(?:publish|yank)\b"),
    "gem": re.compile(r"\b(?:push|yank)\b"),
    "twine": re.compile(r"\bupload\b"),
    "poetry": re.compile(r"\bpublish\b"),
    "uv": re.compile(r"\bpublish\b"),
    "redis-cli": re.compile(r"\bflush(?:all|db)\b|\bshutdown\b", re.IGNORECASE),
    "crontab": re.compile(r"(?:^| )-\w*r\b|(?:^| )-(?: |$)"),
    "iptables": re.compile(r"(?:^| )(?:-F|--flush|-X)\b"),
    "rsync": re.compile(r"--(?:delete|remove-source-files)"),
    "systemctl": re.compile(r"\b(?:poweroff|reboot|halt|kexec|isolate|emergency|rescue)\b"),
    "apt": re.compile(r"\b(?:remove|purge|autoremove)\b"),
    "apt-get": re.compile(r"\b(?:remove|purge|autoremove)\b"),
}

# Subcommands whose words are for people to read, and may speak of anything.
PROSE: Final = frozenset(
    {("git", "commit"), ("git", "tag"), ("git", "stash"), ("git", "notes"), ("git", "add"), ("gh", "pr"), ("gh", "issue")}
)

# Programs that run another one behind their own options: letters of options with a value, how many words come before it.
WRAPPERS: Final[Mapping[str, tuple[str, str, int]]] = {
    "nice": ("n", "", 0),
    "nohup": ("", "", 0),
    "timeout": ("ks", "v", 1),
    "time": ("", "p", 0),
    "builtin": ("", "", 0),
    "exec": ("a", "cl", 0),
    "command": ("", "p", 0),
    "stdbuf": ("ioe", "", 0),
    "setsid": ("", "cfw", 0),
    "ionice": ("cn", "t", 0),
    "xargs": ("adEILnPs", "0rtpx", 0),
}

SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash"})
LANGUAGES: Final = re.compile(
    r"(?:python|pypy|ruby|perl|lua|luajit|php|node|nodejs|tclsh|guile|Rscript|ghci|irb|scala|groovy|jshell)[\d.]*|deno|bun|ts-node|tsx|osascript"
)
ELSEWHERE: Final = frozenset(
    "sudo doas su pkexec runuser ssh scp sftp mosh chroot nsenter unshare systemd-run at batch crontab rclone ftp telnet nc ncat netcat socat"
    " useradd usermod passwd chpasswd visudo mount umount swapoff insmod rmmod modprobe sysctl iptables ip6tables nft ufw launchctl defaults".split()
)
DISKS: Final = re.compile(r"mkfs(?:\.\w+)?")
NAMES: Final = re.compile(
    r"[a-z_][a-z0-9_]*|[A-Z]|FILES?|DIRS?|NAMES?|PATTERN|COUNT|LINES?|RESULT|OUT|OUTPUT|ROOT|SRC|DST|START|END|ARGS"
)
SETTINGS: Final = frozenset(
    "LC_ALL LC_CTYPE LC_COLLATE LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR COLUMNS LINES TERM CI DEBUG VERBOSE PYTHONDONTWRITEBYTECODE"
    " PYTHONUNBUFFERED PYTHONIOENCODING RUST_BACKTRACE RUST_LOG NODE_ENV".split()
)
TELLTALES: Final = frozenset({*SHELLS, *DESTROYERS, "rm", "dd", "git", "find", "chmod", "chown", "chgrp", "rsync", "eval"})
SAID: Final = 4_000  # characters of a command in which a subcommand is looked for
LOOKED_AT: Final = 40  # arguments of an unknown program
WRAPPER_NAMES: Final = frozenset(
    {"--null", "--no-run-if-empty", "--foreground", "--verbose", "--preserve-status", "--wait", "--fork"}
)
KEY: Final = re.compile(r"[\w.:@/+-]+")
LISTED_BIN: Final = re.compile(r"(?:/usr)?/(?:local/)?s?bin/([\w.+-]+)")
ARITHMETIC: Final = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"})


def is_harmless(variable: str) -> bool:
    """Whether setting a variable changes nothing but the script's own words, or how something is printed."""
    return variable in SETTINGS or NAMES.fullmatch(variable) is not None
