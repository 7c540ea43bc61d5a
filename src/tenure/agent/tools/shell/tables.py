"""What is not free, by how bad it is, and what a variable may be called, as tables. What is free stands in `looks`."""

import re
from collections.abc import Mapping
from typing import Final

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
    "rsync": re.compile(r"--(?:del|remove-s)"),
    "systemctl": re.compile(r"\b(?:poweroff|reboot|halt|kexec|isolate|emergency|rescue)\b"),
    "apt": re.compile(r"\b(?:remove|purge|autoremove)\b"),
    "apt-get": re.compile(r"\b(?:remove|purge|autoremove)\b"),
}

# Subcommands whose words are for people to read, and may speak of anything.
PROSE: Final = frozenset(
    {("git", "commit"), ("git", "tag"), ("git", "stash"), ("git", "notes"), ("git", "add"), ("gh", "pr"), ("gh", "issue")}
)

# Programs that run another one behind their own options: what is known of these (in `grammar`'s notation), how many words come before it.
WRAPPERS: Final[Mapping[str, tuple[str, int]]] = {
    "nice": ("-n: -# --adjustment=", 0),
    "nohup": ("", 0),
    "timeout": ("-v -k: -s: --foreground --verbose --preserve-status --kill-after= --signal=", 1),
    "time": ("-p", 0),
    "builtin": ("", 0),
    "exec": ("-cl -a:", 0),
    "command": ("-p", 0),
    "stdbuf": ("-i: -o: -e: --input= --output= --error=", 0),
    "setsid": ("-cfw --wait --fork", 0),
    "ionice": ("-t -c: -n:", 0),
    "xargs": (
        "-0rtx -a@ -d: -E: -e? -I: -i? -L: -l? -n: -P: -s: --null --no-run-if-empty --verbose --exit --arg-file=@ --delimiter= --max-lines=? --max-args="
        " --max-procs= --max-chars= --replace=?",
        0,
    ),
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
NAMES: Final = re.compile(r"[a-z_][a-z0-9_]*|[A-Z]|FILES?|DIRS?|NAMES?|PATTERN|COUNT|RESULT|OUT|ROOT|SRC|DST|START|END|ID")
SETTINGS: Final = frozenset(
    "LC_ALL LC_CTYPE LC_COLLATE LANG LANGUAGE TZ NO_COLOR FORCE_COLOR CLICOLOR COLUMNS LINES TERM CI DEBUG VERBOSE PYTHONDONTWRITEBYTECODE"
    " PYTHONUNBUFFERED PYTHONIOENCODING RUST_BACKTRACE RUST_LOG NODE_ENV".split()
)
TELLTALES: Final = frozenset({*SHELLS, *DESTROYERS, "rm", "dd", "git", "find", "chmod", "chown", "chgrp", "rsync", "eval"})
SAID: Final = 4_000  # characters of a command in which a subcommand is looked for
# Options with which a program is told where to write.
OUTPUTS: Final = re.compile(
    r"(?:--?(?:o|O|out[\w-]*|output[\w-]*|dest[\w-]*|target-dir[\w-]*|prefix|directory[\w-]*|dir|root|install[\w-]*|log-file|cache-dir|report[\w-]*)(?==|$)"
    r"|-(?:[oOCtdPs]|so)(?=[/~.]|$)|-o(?=\w)|-d(?=/)|of=)"
)
# Programs whose words may all be written to.
UNPACKERS: Final = frozenset(
    "tar bsdtar unzip unrar 7z cpio ar pax split csplit patch gzip gunzip bzip2 xz zstd zip sqlite3 ed ex vi vim nano".split()
)
LOOKED_AT: Final = 40  # arguments of an unknown program
KEY: Final = re.compile(r"[\w.:@/+-]+")
LISTED_BIN: Final = re.compile(r"(?:/usr)?/(?:local/)?s?bin/([\w.+-]+)")
# Variables of the environment that hold nothing secret.
_PUBLIC: Final = frozenset(
    "HOME USER LOGNAME PWD OLDPWD SHELL PATH LANG LANGUAGE TERM TMPDIR TMP TEMP HOSTNAME HOSTTYPE OSTYPE MACHTYPE UID EUID PPID RANDOM SECONDS LINENO SHLVL"
    " EPOCHSECONDS EPOCHREALTIME BASH BASH_VERSION BASHPID BASH_SOURCE FUNCNAME PIPESTATUS REPLY OPTARG OPTIND COLUMNS LINES EDITOR PAGER DISPLAY TZ CI"
    " VIRTUAL_ENV CONDA_PREFIX NVM_DIR GOPATH GOROOT GOBIN CARGO_HOME RUSTUP_HOME JAVA_HOME NODE_ENV PYTHONPATH XDG_CONFIG_HOME XDG_DATA_HOME"
    " XDG_CACHE_HOME XDG_STATE_HOME XDG_RUNTIME_DIR NO_COLOR COLORTERM".split()
)
_SECRET: Final = re.compile(r"KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH|DSN|COOKIE|SESSION|PRIVATE|SIGN|_URL|_URI|CERT", re.IGNORECASE)


def is_harmless(variable: str, value: str = "") -> bool:
    """Whether setting a variable changes nothing but the script's own words, or how something is printed."""
    if variable in SETTINGS:
        return re.fullmatch(r"[\w.@:,+-]*" if variable != "TZ" else r"[\w.@:,+/-]*", value) is not None
    return NAMES.fullmatch(variable) is not None and variable not in _PUBLIC


def is_public(variable: str) -> bool:
    """Whether the value of a variable that comes from the environment may be shown."""
    return variable in _PUBLIC or variable.startswith("LC_")


def sounds_secret(variable: str) -> bool:
    """Whether a variable of the environment may hold a key, by its name."""
    return variable not in _PUBLIC and _SECRET.search(variable) is not None


# Words that are enough.
_ALONE: Final = re.compile(
    r"\brm\s+(?:-\S{1,20}\s+){0,5}(?:-\w{0,10}[rRf]|--recursive|--force)|\bmkfs|\bshred\s|\bwipefs\b"
    r"|\bch(?:mod|own|grp)\s+(?:-\S{1,20}\s+){0,5}(?:-\w{0,10}R|--recursive)"
    r"|\b(?:drop|truncate)\s+(?:table|database|schema|index|view|user)\b|\bdelete\s+from\b|\bdropDatabase\b|\bflush(?:all|db)\b"
    r"|\brmtree\b|\bremovedirs\b|\brm_rf?\b|\brmSync\b|\brimraf\b|\bremoveSync\b|\bunlink(?:Sync)?\b|\bos\.remove\b|\bfs\.rm\b|\bremove_dir_all\b"
    r"|:\(\)\s{0,5}\{|>\s{0,5}/dev/(?:sd|nvme|hd|vd|disk|mapper)",
    re.IGNORECASE,
)

# What a program must be told in the same line for it to destroy.
_TOLD: Final[Mapping[str, re.Pattern[str]]] = {
    "git": re.compile(
        r"push\b.*(?:\s-\w*f|--force|--delete|--mirror|\s\+)|reset\b.*--hard|clean\b.*\s-\w*[fxd]|branch\b.*\s-D\b|stash\s+(?:drop|clear)"
    ),
    "find": re.compile(r"\s-delete\b|-exec\s+rm\b"),
    "dd": re.compile(r"\bof="),
    "curl": re.compile(r"\|\s*(?:sudo\s+)?(?:\w*sh|python\d?|perl|ruby|node)\b"),
}
_TOLD_TO: Final = re.compile(r"\b(git|find|dd|curl|wget)\s[^\n]{0,300}")


def destructive(text: str) -> str:
    """The first words of a text that speak of destroying; empty when none do."""
    if found := _ALONE.search(text):
        return found[0]
    for found in _TOLD_TO.finditer(text):
        if _TOLD["curl" if found[1] == "wget" else found[1]].search(found[0]):
            return found[0]
    return ""
