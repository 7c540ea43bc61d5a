"""What programs do: which write, which run others (which only look: `read_only_options`). Pure. An unknown program is never taken for a free one."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import structs

from tenure.agent.tools.shell.builtins import BUILTINS
from tenure.agent.tools.shell.effects import (
    FREE,
    OPAQUE,
    QUIET,
    Asks,
    Effect,
    Effects,
    Prints,
    Reads,
    Rule,
    Runs,
    RunsFile,
    RunsInput,
    RunsText,
    Writes,
    destroys,
    has_option,
    positional,
    reaches,
    texts,
)
from tenure.agent.tools.shell.filters import awk, fd, find, jq, sed
from tenure.agent.tools.shell.git import git
from tenure.agent.tools.shell.grammar import CommandLine, Grammar, grammar
from tenure.agent.tools.shell.read_only_options import LOOKS, VERSIONS
from tenure.agent.tools.shell.remote import acts_remotely, cannot_be_undone, remotely
from tenure.agent.tools.shell.script import CLOSE, OPEN, OUTPUT, PRINTED, Word
from tenure.agent.tools.shell.variables import is_harmless

# Programs whose first argument says what they do; the person allows them together.
_SUBCOMMANDS: Final = frozenset(
    "git npm npx pnpm yarn bun deno cargo go docker podman kubectl make just task pip pip3 uv uvx poetry pdm hatch rake bundle gem gradle mvn"
    " dotnet tox nox composer php mix terraform helm gh aws gcloud az apt apt-get brew dnf apk conda systemctl service rails django-admin nx turbo lerna"
    " bazel cmake meson ninja ansible pulumi flutter dart swift zig stack cabal opam ./gradlew ./mvnw".split()
)
_RUNNERS: Final = frozenset({"run", "exec", "compose", "tool"})  # a subcommand whose own first argument counts too

# Programs that can do what cannot be undone.
_DESTROYERS: Final = frozenset(
    "shred wipe srm scrub wipefs fdisk sfdisk cfdisk parted gdisk sgdisk blkdiscard cryptsetup lvremove vgremove pvremove mkswap shutdown reboot"
    " poweroff halt telinit init userdel groupdel deluser delgroup dropdb dropuser badblocks debugfs hdparm".split()
)
_DISKS: Final = re.compile(r"mkfs(?:\.\w+)?")

# Programs that run another one behind their own options: what is known of these, in the notation of `grammar`.
_WRAPPERS: Final[Mapping[str, str]] = {
    "nice": "-n: -# --adjustment=",
    "nohup": "",
    "timeout": "-v -k: -s: --foreground --verbose --preserve-status --kill-after= --signal=",
    "time": "-p",
    "builtin": "",
    "exec": "-cl -a:",
    "command": "-p",
    "stdbuf": "-i: -o: -e: --input= --output= --error=",
    "setsid": "-cfw --wait --fork",
    "ionice": "-t -c: -n:",
    "xargs": "-0rtx -a@ -d: -E: -e? -I: -i? -L: -l? -n: -P: -s: --null --no-run-if-empty --verbose --exit --arg-file=@ --delimiter= --max-lines=?"
    " --max-args= --max-procs= --max-chars= --replace=?",
}
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ksh", "mksh", "fish", "ash", "csh", "tcsh", "rbash"})
_LANGUAGES: Final = re.compile(
    r"(?:python|pypy|ruby|perl|lua|luajit|php|node|nodejs|tclsh|guile|Rscript|ghci|irb|scala|groovy|jshell)[\d.]*|deno|bun|ts-node|tsx|osascript"
)
_ELSEWHERE: Final = frozenset(
    "sudo doas su pkexec runuser ssh scp sftp mosh chroot nsenter unshare systemd-run at batch crontab rclone ftp telnet nc ncat netcat socat"
    " useradd usermod passwd chpasswd visudo mount umount swapoff insmod rmmod modprobe sysctl iptables ip6tables nft ufw launchctl defaults".split()
)
_TELLTALES: Final = frozenset({*_SHELLS, *_DESTROYERS, "rm", "dd", "git", "find", "chmod", "chown", "chgrp", "rsync", "eval"})
_LOOKED_AT: Final = 40  # arguments of an unknown program
# Options with which a program is told where to write.
_OUTPUTS: Final = re.compile(
    r"(?:--?(?:o|O|out[\w-]*|output[\w-]*|dest[\w-]*|target-dir[\w-]*|prefix|directory[\w-]*|dir|root|install[\w-]*|log-file|cache-dir|report[\w-]*)(?==|$)"
    r"|-(?:[oOCtdPs]|so)(?=[/~.]|$)|-o(?=\w)|-d(?=/)|of=)"
)
# Programs whose words may all be written to.
_UNPACKERS: Final = frozenset(
    "tar bsdtar unzip unrar 7z cpio ar pax split csplit patch gzip gunzip bzip2 xz zstd zip sqlite3 ed ex vi vim nano rsync jar ffmpeg convert magick qpdf gs".split()
)
_KEY: Final = re.compile(r"[\w.:@/+-]+")
_LISTED_BIN: Final = re.compile(r"(?:/usr)?/(?:local/)?s?bin/([\w.+-]+)")


def effects(words: Sequence[Word]) -> Effects:
    """What a command does."""
    program, rest = words[0], words[1:]
    if not program.plain:
        return (OPAQUE,)
    listed = _LISTED_BIN.fullmatch(program.text)
    name = listed[1] if listed else program.text
    if name in _RULES:
        return _RULES[name](rest)
    if len(rest) == 1 and rest[0].plain and rest[0].text in VERSIONS.get(name, ()):
        return FREE
    action = f"{name} {rest[0].text}" if rest and rest[0].plain else ""
    if action in LOOKS:
        name, rest = action, rest[1:]
    if name in LOOKS:
        looks = LOOKS[name].effects(name, rest)
        return (*looks, *_outputs(rest)) if any(isinstance(effect, Asks) for effect in looks) else looks
    return _unknown(name, rest)


def _outputs(rest: Sequence[Word]) -> Iterator[Effect]:
    """What a program may write that is not known, by the options with which programs are told where to."""
    for n, word in enumerate(rest):
        if (named := _OUTPUTS.match(word.text)) is None:
            continue
        value = word.text[named.end() :].removeprefix("=")
        target = structs.replace(word, text=value, template="") if value else rest[n + 1] if n + 1 < len(rest) else None
        if target is not None and not target.text.startswith("-") and (target.plain or "/" in target.text):
            yield Writes(target=target)


def _unknown(name: str, rest: Sequence[Word]) -> Effects:
    """A program that is not known to only look, with what may be hidden among its arguments."""
    if cannot_be_undone(name, rest) or name in _DESTROYERS or _DISKS.fullmatch(name):
        return (destroys(f"`{name}` can do what cannot be undone"),)
    hidden = tuple(
        Runs(words=tuple(rest[n:]))
        for n, word in enumerate(rest[:_LOOKED_AT])
        if word.text.rpartition("/")[2] in _TELLTALES or _DISKS.fullmatch(word.text)
    )
    if name in _ELSEWHERE:
        unknown = () if all(word.plain for word in rest) else (OPAQUE,)
        return (reaches(f"`{name}` acts beyond the workspace or as somebody else"), *hidden, *unknown)
    if name in _SHELLS:
        return _shell(name, rest)
    if _LANGUAGES.fullmatch(name):
        far = (remotely(name),) if acts_remotely(name, rest) else ()
        return (*_language(name, rest), *hidden, *far, *_fetched(name, rest))
    own = (RunsFile(file=Word(text=name)),) if "/" in name else ()
    written = (Writes(target=word) for word in positional(rest) if word.plain) if name in _UNPACKERS else ()
    key = _key(name, rest)
    asks = remotely(name, key) if acts_remotely(name, rest) else Asks(reason=f"`{name}` may change something", key=key)
    return (*own, asks, *hidden, *_fetched(name, rest), *_outputs(rest), *written)


# Programs that fetch another one and run it, behind these words if there are any.
_FETCHERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        ("npx", "bunx", "pnpx", "uvx", "pipx", "corepack", "dotenv", "direnv", "doppler", "aws-vault", "op"), frozenset[str]()
    ),
    **dict.fromkeys(
        ("npm", "pnpm", "yarn", "bun", "uv", "poetry", "pdm", "hatch", "rye", "bundle", "conda", "mise", "asdf"),
        _RUNNERS | {"dlx", "x"},
    ),
}


def _fetched(name: str, rest: Sequence[Word]) -> Iterator[Effect]:
    """What a program runs that it may have to fetch first: the first of its words that could be a program's name, and what stands behind."""
    words = _FETCHERS.get(name)
    if words is None or (words and not words & set(texts(rest))):
        return
    for n, word in enumerate(rest[:_LOOKED_AT]):
        for called in re.findall(r"[^@/]+", word.text)[:2]:  # @scope/name@version
            if word.plain and called not in words and acts_remotely(called, rest[n + 1 :]):
                yield remotely(called)


def _key(name: str, rest: Sequence[Word]) -> str:
    """What a person can allow for all calls of the kind: the program, with its subcommand where it has such."""
    words = [Word(text=name)]
    if name in _SUBCOMMANDS and rest:
        first = next((n for n, word in enumerate(rest) if not word.text.startswith("-")), len(rest))
        count = 2 if first < len(rest) and rest[first].text in _RUNNERS else 1
        words += rest[first : first + count]
        last = words[-1].text
        if len(words) <= count or last.startswith("-") or last in _SHELLS or _LANGUAGES.fullmatch(last):
            return ""
    return " ".join(texts(words)) if all(word.plain and _KEY.fullmatch(word.text) for word in words) else ""


_SHELL_OPTION: Final = re.compile(r"-[ceuxl]+")
# What means something else to other shells: in `[[ a > b ]]` they write a file, `$'a'` and `{a,b}` are no quotes and no alternatives, and values are split.
_ONLY_BASH: Final = re.compile(r"\[\[|\$['\"]|<<<|[<>]\(|\{[^{}]*(?:,|\.\.)|\b(?:export|readonly|local|declare|typeset|select)\b")


def _shell(name: str, rest: Sequence[Word]) -> Effects:
    """A shell: what it runs is a text, a file, or what comes in."""
    is_text = False
    at = 0
    known = name in ("bash", "sh", "dash")  # others read some texts differently
    while at < len(rest) and rest[at].text[:1] in ("-", "+") and rest[at].text != "-":
        option = rest[at].text
        at += 1
        if option == "--":
            break
        if option.startswith("--"):
            at += option in ("--rcfile", "--init-file")
            known = False
        else:
            is_text = is_text or "c" in option
            known = known and rest[at - 1].plain and _SHELL_OPTION.fullmatch(option) is not None
            at += option[-1] in "oO"
            if "s" in option:
                return (RunsInput(script=True),)
    if at >= len(rest) or rest[at].text == "-":
        return (RunsInput(script=True),)
    if not is_text:
        return _file(name, rest[at])
    known = known and not (name != "bash" and _ONLY_BASH.search(rest[at].text))
    unknown = () if known else (Asks(reason=f"`{name}` is not known to only read its text with these options"),)
    return (*unknown, RunsText(text=rest[at]))


def _language(name: str, rest: Sequence[Word]) -> Effects:
    """An interpreter of another language."""
    for n, word in enumerate(rest):
        if word.text == "-":
            break
        if word.text == "-m" and name.startswith(("python", "pypy")):
            module = rest[n + 1].text if n + 1 < len(rest) and rest[n + 1].plain else ""
            far = acts_remotely(module, rest[n + 2 :])
            key = f"{name} -m {module}" if _KEY.fullmatch(module) else ""
            return (remotely(module, key) if far else Asks(reason=f"`{name}` may change something", key=key),)
        if not word.plain and word.text[:1] in ("*", "?", "["):
            return (OPAQUE,)
        if re.match(r"-\w*[ceEpr]|--(?:eval|print|exec)", word.text):
            return (Asks(reason=f"`{name}` runs code that may change something"),) if n + 1 < len(rest) else (OPAQUE,)
        if not word.text.startswith("-"):
            return _file(name, word)
    return (RunsInput(script=False),)


def _file(name: str, word: Word) -> Effects:
    """A script in a file; one that is made as it runs cannot be looked at."""
    if not word.plain or word.text.startswith(("/dev/", "/proc/")):
        return (OPAQUE,)
    key = f"{name} {word.text}" if _KEY.fullmatch(word.text) else ""
    return (RunsFile(file=word), Asks(reason=f"it runs {word.text}", key=key))


def _wrapper(name: str) -> Rule:
    before = 1 if name == "timeout" else 0  # words before the other program
    known = grammar(f"{_WRAPPERS[name]} TEXT")

    def rule(rest: Sequence[Word]) -> Effects:
        if name == "command" and rest and rest[0].plain and rest[0].text in ("-v", "-V"):
            return QUIET
        at = _behind_options(known, rest) + before
        line = CommandLine(known, rest[: at - before])
        inner = [*rest[at:]]
        if line.unknown or line.doubtful or any(word.loose for word in rest[at - before : at]):
            return (*_unknown(name, rest), *([Runs(words=(*inner, PRINTED))] if inner and name == "xargs" else ()))
        if name == "xargs":
            token = next((value.text for value in line.values("-I", "-i", "--replace")), "")
            token = token or ("{}" if {"-i", "--replace"} & line.given.keys() else "")
            inner = [*(_filled(word, token) for word in inner or [Word(text="echo")]), *(() if token else (PRINTED,))]
        session = [Asks(reason="it runs a command in a session of its own")] if name == "setsid" else []
        return (*(Reads(target=word) for word in line.files), *session, Runs(words=tuple(inner)) if inner else Prints())

    return rule


def _behind_options(known: Grammar, rest: Sequence[Word]) -> int:
    """Where the command begins that a wrapper runs: behind its options and their values."""
    at = 0
    while at < len(rest) and rest[at].text.startswith("-") and rest[at].plain:
        option = rest[at].text
        at += 1
        if option == "--":
            break
        name = option if option.startswith("--") else f"-{option[-1]}"
        alone = option.startswith("--") or all(known.options.get(f"-{letter}") == "" for letter in option[1:-1])
        at += alone and known.options.get(name) in (":", "@")
    return at


def _filled(word: Word, token: str) -> Word:
    """The word as xargs leaves it, which puts what it reads in place of the token."""
    if not token or token not in word.text:
        return word
    template = word.text.replace(token, f"{OPEN}{OUTPUT}{CLOSE}")
    return Word(text=word.text.replace(token, "*"), plain=False, template=template)


def _env(rest: Sequence[Word]) -> Effects:
    at = 0
    changes = Asks(reason="it changes the environment of a command")
    asks: list[Asks] = []
    while at < len(rest):
        text = rest[at].text
        if text in ("-", "-i", "--ignore-environment", "-0", "--null"):
            at += 1
        elif text in ("-u", "--unset"):
            asks.append(changes)
            at += 2
        elif text.startswith("-"):
            return _unknown("env", rest)
        elif "=" in text:
            name, _, value = text.partition("=")
            asks += [] if is_harmless(name, value) else [changes]
            at += 1
        else:
            return (*asks, Runs(words=tuple(rest[at:])))
    return (*asks, reaches("it shows the environment, where keys may be kept"))


def _rm(rest: Sequence[Word]) -> Effects:
    if has_option(rest, "rR", "recursive no-preserve-root") or any(not word.plain for word in rest):
        return (destroys("it deletes files that cannot be brought back"),)
    return (Asks(reason="it deletes a file"), *(Writes(target=word, ends=True) for word in positional(rest)))


def _writer(name: str, *, last: bool = False, skip: int = 0, recursive: bool = False, sources: bool = False) -> Rule:
    """A program that changes what its arguments name: all of them, or the `last` one; `sources`: what the others name is changed as well."""

    def rule(rest: Sequence[Word]) -> Effects:
        if recursive and has_option(rest, "R", "recursive"):
            return (destroys("it changes a whole folder at once"),)
        named = positional(rest, "mstS" if name in ("install", "mkdir", "truncate", "touch") else "tS")
        into = [rest[n + 1] for n, word in enumerate(rest[:-1]) if word.text in ("-t", "--target-directory")]
        into += [
            structs.replace(word, text=found[1], template="")
            for word in rest
            if (found := re.match(r"(?:--target-directory=|-t)(.+)", word.text))
        ]
        targets = into or (named[-1:] if last else named[skip:])
        writes = [Writes(target=word) for word in targets]
        if name in _ENDING and targets and not has_option(rest, "nbu", "no-clobber backup update"):
            writes.append(Writes(target=targets[-1], ends=True, by=tuple(named if into else named[:-1]) if last else ()))
        writes += [Writes(target=word) for word in named] if sources else []
        unknown = () if named or rest else (Asks(reason=f"`{name}` may change something"),)
        return (Asks(reason=f"`{name}` changes files", key=name), *writes, *unknown)

    return rule


_ENDING: Final = frozenset({"mv", "cp", "install", "truncate", "tee"})


def _dd(rest: Sequence[Word]) -> Effects:
    writes = any(word.text.startswith("of=") or not word.plain for word in rest)
    return (destroys("it overwrites a file or a device") if writes else Asks(reason="`dd` may change something"),)


def _net(name: str) -> Rule:
    def rule(rest: Sequence[Word]) -> Effects:
        asks = remotely(name) if acts_remotely(name, rest) else Asks(reason="it speaks to the network")
        return (asks, *_outputs(rest))

    return rule


_PS: Final = re.compile(
    r"[aAfghjlmrSTuvwxX]+|-[AadefFHjlLTwy]+|-aux|-[op][\w,.=-]+|\d[\d,]*|--(?:sort|format|pid|ppid)=[\w,.%+-]+|--(?:forest|no-headers|headers)"
)
_PS_VALUE: Final = re.compile(r"-(?:[AadefFHjlLTwy]*o|[pCuUGgtq])|--p?pid")
_ENVIRONMENT: Final = reaches("it shows what other programs keep in their environment")


def _ps(rest: Sequence[Word]) -> Effects:
    """`ps`: its letters without a dash, some with one, and a format can ask for what programs keep in their environment."""
    if any("env" in word.text.lower() for word in rest):
        return (_ENVIRONMENT,)
    at = 0
    while at < len(rest):
        word, value = rest[at], rest[at + 1 : at + 2]
        at += 1
        if (
            word.plain
            and _PS_VALUE.fullmatch(word.text)
            and all((each.plain or each.number) and each.text[:1] != "-" for each in value)
        ):
            at += 1
        elif not word.plain or not _PS.fullmatch(word.text):
            shows = re.fullmatch(r"-?[a-zA-Z]*[eE][a-zA-Z]*", word.text)
            return (_ENVIRONMENT,) if shows else _unknown("ps", rest)
    return FREE


_DATE: Final = grammar("-uRn -d: -r: -I? -j --date= --reference= --utc --universal --iso-8601=? --rfc-email --rfc-3339= TEXT")


def _date(rest: Sequence[Word]) -> Effects:
    """`date`: a word without a plus sets the clock."""
    line = CommandLine(_DATE, rest)
    shows = not line.unknown and not line.doubtful and all(word.text.startswith("+") for word in line.operands)
    return FREE if shows else (Asks(reason="`date` may set the clock"),)


def _hostname(rest: Sequence[Word]) -> Effects:
    shows = all(word.plain and word.text in ("-s", "-f", "-i", "-I", "-d") for word in rest)
    return FREE if shows else _unknown("hostname", rest)


def _kill(rest: Sequence[Word]) -> Effects:
    given = texts(rest)
    everything = "-1" in given[1:] or "1" in given or given == ["-1"]
    return (destroys("it ends every process") if everything else Asks(reason="it ends a process"),)


_RULES: Final[Mapping[str, Rule]] = {
    **{name: _wrapper(name) for name in _WRAPPERS},
    "env": _env,
    "git": git,
    "find": find,
    **dict.fromkeys(("fd", "fdfind"), fd),
    **dict.fromkeys(("sed", "gsed"), sed),
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), awk),
    "jq": jq,
    "rm": _rm,
    "dd": _dd,
    **{name: _net(name) for name in ("curl", "wget")},
    **{name: _writer(name) for name in ("touch", "mkdir", "rmdir", "unlink", "tee", "truncate", "mkfifo", "mknod")},
    **{name: _writer(name, last=True) for name in ("cp", "install")},
    # Of mv what it takes away; and through a link of ln to what lies outside that could be changed.
    **{name: _writer(name, last=True, sources=True) for name in ("mv", "ln")},
    **{name: _writer(name, skip=1, recursive=True) for name in ("chmod", "chown", "chgrp")},
    "date": _date,
    "hostname": _hostname,
    **BUILTINS,
    **dict.fromkeys(("source", "."), lambda rest: _file("source", rest[0]) if rest else FREE),
    "ps": _ps,
    "kill": _kill,
}
