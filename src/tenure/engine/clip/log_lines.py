"""What a line of a log is.

Failures are told by form, never by a word alone: a passing test called `test_error`, `0 errors` and `"error": null` are none. The forms are
tables; each begins with letters rather than with a condition, since the engine skips to letters about ten times faster.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

# What a line is; one byte each, so that a gap of a million lines is counted by `bytearray.count`.
OTHER, PASSED, PROGRESS, ERROR, WARNING, SUMMARY, TRACE, FAILED_NAME = range(8)

LONGEST: Final = 400  # characters of a line that are looked at
BLANK: Final = ("", " ", "\t")

_ANSI: Final = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
# What stands before a message: a CI job's columns, a container's name, a time. Every repetition is bounded: lines may be hostile.
_STAMP: Final = re.compile(
    r"(?:[^\t]{1,80}\t[^\t]{1,80}\t\ufeff?(?=\d{4}-))?(?:[A-Za-z][\w.-]{1,40} +\| )?"
    r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[T ,]{1,2})?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]? ?)?"
)
_DIGITS: Final = frozenset("0123456789[")


def _nested(words: Iterable[str]) -> str:
    """A pattern of alternatives by first letter, then second, and so on: twice as fast as a flat list of them."""
    rests: dict[str, list[str]] = {}
    for word in words:
        rests.setdefault(word[:1], []).append(word[1:])
    if "" in rests:
        return ""
    parts = [re.escape(first) + _nested(rest) for first, rest in rests.items()]
    return f"(?:{'|'.join(parts)})"


# A line with none of these, and with no start or symbol of those below, says nothing of an outcome. In lower case.
TELLING: Final = tuple(
    "err|fail|fatal|exception|panic|traceback|warn|critical|sever|emerg|alert|***|not ok|caused by|kill|abort|core dump|cannot|could not|unable to"
    "|no such|denied|refused|undefined|unhandled|uncaught|not recog|timed out|enoent|eacces|econn|eaddr|eperm|etimed|elifecycle|not found|of mem"
    "|segm|segf|sigsegv|passed|passing|skip|ignored|=== |--- |____|exit|build|problem|succe|finished|compil|summary|total|%|assert|went wrong"
    "|deprec|level|lvl|download|collecting|fetching|unpacking|installing|checking|... ok|...ok|xfail|stdout ---"
    "|multiple def|ld returned|no rule|and not used|no required|unresolved|no match|candidate|unmet|conflict|mismatch|integrity|eresolve|illegal"
    "|signal|oom|heap|stack |double free|free(): |corrupt|sanitizer|protection|not perm|read-only|no space|quota|too many|too long|busy|broken"
    "|enospc|emfile|enotf|eexist|syntax|unbound|bad |connection|deadline|unreach|no route|resolution|not known|certif|handshake|already in"
    "|gateway|unavail|unauth|forbid|rate limit|backoff|errimage|manifest|did not|reject|merge|violat|duplicate|deadlock|not exist|sqlstate|ora-"
    "|truncat|left out".split("|")
)
_TELLING: Final = re.compile(_nested(TELLING))
_SYMBOLS: Final = re.compile(
    "[\u2717\u2718\u2716\xd7\u274c\u2a2f\u25cf\u26a0\u2713\u2714\u221a\u25cb\u2193]"
)  # of test runners: crosses, ticks, dots
_TELLING_START: Final = re.compile(
    r"[\W_]*(?:ok\b|pass|fail|e {2}|\d[\d,]* [a-z]|\d+:\d+|\[\d+/\d+\] |tests?\b|found |ran |checked |snapshots|suites|done in |all checks|[iwef]\d{4} )"
    r"|\S+ [.fesx]+\s+\[|[.sx]{10}"
)

_RESULT: Final = (
    r"(?:passed|failed|pass|fail|passing|failing|skipped|pending|errors?|failures?|warnings?|problems?|tests?|suites?|xfailed|xpassed"
    r"|deselected|ignored|vulnerabilit(?:y|ies)|issues?|examples?|specs?|assertions?|todo)\b"
)
_TIME: Final = r"(?:\[?(?:\d{4}[-/]\d\d[-/]\d\d[t ,]{1,2})?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:z|[+-]\d\d:?\d\d)?\]? ?)?"
_COLUMNS: Final = r"(?:[^\t]{1,80}\t[^\t]{1,80}\t\ufeff?(?=\d{4}-))?(?:[a-z][\w.-]{1,40} +\| )?"
_STAMPED_START: Final = re.compile(rf"(?>{_TIME})(?:{_TELLING_START.pattern})")
_COLUMNED_START: Final = re.compile(rf"(?>{_COLUMNS}{_TIME})(?:{_TELLING_START.pattern})")
_SUMMARY: Final = re.compile(  # in lower case, without ornaments before it
    rf"\d[\d,]* (?:of \d+ |out of \d+ )?{_RESULT}"
    r"|(?:\w+\] )?(?:tests?|test suites|test files|suites|tests run|snapshots|found|ran|checked|total|pass|fail|skipped)\b:?\s{1,20}\d"
    r"|(?:\w+\] )?(?:tests run|test result|failures|results)\s?:|(?:\w+\] )?build (?:success|fail)"
    r"|ok\s+\S+\s+(?:[\d.]+m?s\b|\(cached\))|ok$|ok \(|failed \(|fail$|fail\t|make(?:\[\d+\])?: \*\*\*"
    r"|error: (?:could not compile|process didn't exit|test failed|aborting|\d+ )|warning: .{1,80} generated \d+ warning"
    r"|finished .{1,60} in [\d.]+|success: |all checks|done in \d|failures:$|short test summary|error summary|failed tests"
    r"|(?:webpack|compiled|successfully|vite|rollup)\b.{0,60}(?:compiled|success|with \d)"
    r"|(?:test|build|lint|type.?check|compilation|deploy\w*) (?:succeeded|failed|passed|completed)\b"
)
_ORNAMENTS: Final = " \t=#*|[]-_\u2500\u2501\u23af\u2716\u2713\u2717\xd7"
_EXIT: Final = re.compile(r"exit (?:code|status)[: ]{1,3}-?\d|exited with (?:code |status )?-?\d|exit code:? \d")
_FAILED_NAME: Final = re.compile(
    r"(?:FAILED|ERROR) [\w./\\-]{1,300}(?:::| - )|FAIL:? {1,4}[\w./\\-]{1,300}(?: >|$| \()|test \S{1,300} \.\.\. FAILED$| {4}\w+(?:::\w+)+$"
    r"|\[  FAILED  \] \w|FAIL\t\S|\(fail\) \S"
)
_PASSED: Final = re.compile(r"\s*(?:ok \d+\b|--- PASS: |[\u2713\u2714\u221a] |\[ {7}OK \]|\(pass\) )")
_PASSED_ENDS: Final = (" PASSED", "... ok", "...ok", ": PASS", "... PASSED")
_PASSED_SHARE: Final = re.compile(r"PASSED\s+\[ *\d+%\]$")
_PROGRESS: Final = re.compile(
    r"\s*(?:=== (?:RUN|PAUSE|CONT|NAME)\b|PASS(?:\s|$)|--- SKIP|\[ RUN |\u25cb |\u2193 "
    r"|(?:Compiling|Downloading|Downloaded|Collecting|Fetching|Unpacking|Installing|Checking|Building) \S)"
    r"|\S{1,300} [.sxX]+\s+\[ *\d+%\]$|[.sxX]{10,}\s*(?:\[ *\d+%\])?$|\[ *\d{1,3}%\] |\[\d+/\d+\] \S|Downloading from |Downloaded from "
)
_PROGRESS_ENDS: Final = (" SKIPPED", " XFAIL", "... ignored", "... skipped")
_PROGRESS_SHARE: Final = re.compile(r"(?:SKIPPED(?: \([^)]{0,200}\))?|XFAIL)(?:\s+\[ *\d+%\])?$|skipped ['\"(]")
_BAR: Final = re.compile(r"%(?<=\d%)(?:\||\s{0,3}[\[=#>\u2588-\u258f]|.{0,60}\d ?[kKMG]i?B)|\s{0,8}\d{1,3}% ")
# Phrases that say there was no error, taken out before errors are looked for.
_NONE: Final = re.compile(
    r"\b(?:0|no|without|zero|any) (?:\w{1,20} )?(?:errors?|failures?|failed|problems?|issues?|exceptions?|warnings?)\b"
    r"|\b(?:errors?|failures?|failed|exception|err|warnings?|exc_info|stderr)\b[\"']?\s{0,4}[:=]\s{0,4}"
    r"(?:null|none|nil|false|undefined|<nil>|0\b|\"\"|''|\[\]|\{\})",
    re.IGNORECASE,
)
_LEVEL_KEY: Final = re.compile(r"(?:level|severity|lvl)\"?\s{0,4}[:=]\s{0,4}\"?(\w+)")
_LEVEL_WORD: Final = re.compile(
    r"(?:TRACE|DEBUG|VERBOSE|INFO|NOTICE|LOG|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|SEVERE|PANIC|EMERG|ALERT)(?=[\]\s:|)]|$)"
)
_LEVEL_START: Final = re.compile(r"\[?(trace|debug|info|notice|warn|warning|error|fatal)(?:\]|: )|([iwef])\d{4} \d\d:")
_BEFORE_LEVEL: Final = frozenset(" \t[(|")
_CALM_LEVELS: Final = frozenset("trace debug verbose info notice log i 10 20 30".split())
_WARN_LEVELS: Final = frozenset("warn warning w 40".split())
_BAD_LEVELS: Final = frozenset("error err fatal critical crit severe panic emerg emergency alert e f 50 60".split())

_ERROR_START: Final = re.compile(
    r"\W{0,20}(?i:error|fatal|panic|exception|failure|aborted)(?:\[[\w:-]{1,40}\]|\s[A-Z]{0,6}\d{1,6})?(?:\s?[:!]| (?:in|at|while|during)\b)"
    r"|\W{0,20}(?i:failed)\b(?!\s*[:=]\s*0)|[\w.@/-]{1,60}: (?i:error|fatal|panic)\b|\s*\d+:\d+\s+error\b"
    r"|(?:npm|pnpm|yarn) (?:ERR!|error)\b|\s*not ok\b(?!.{0,300}# ?(?i:todo|skip))|\s*[\u2717\u2718\u2716\xd7\u274c\u2a2f] ?\S|\s*\u25cf .{1,200} \u203a"
    r"|\s*(?:panic: |Caused by: |--- FAIL: )|Killed\b|E {2,10}\S"
)
_ERROR_WORD: Final = re.compile(
    r"(?:ERROR(?<![\w./$=-]ERROR)|FATAL(?<![\w./$=-]FATAL)|CRITICAL(?<![\w./$=-]CRITICAL)|SEVERE(?<![\w./$=-]SEVERE)|PANIC(?<![\w./$=-]PANIC)"
    r"|FAILURE(?<![\w./$=-]FAILURE)|FAILED(?<![\w./$=-]FAILED)|FAIL(?<![\w./$=-]FAIL)|ERR!)(?![\w/=-]|\.\w)"
    r"|(?:Error|Exception|Panic|Interrupt)(?=: |:?$)|Traceback \(most recent call|Exception in thread"
)
_WARNING: Final = re.compile(r"warn(?<![\w/.-]warn)(?:ing)?s?(?=[\s:\[(\]]|$)|\u26a0")  # in lower case
_WARNING_NAME: Final = re.compile(r"Warning(?<=[a-z]Warning)(?!\w)")

_ROUGH: Final = re.compile(
    r"ERROR\b|FATAL\b|CRITICAL\b|SEVERE\b|PANIC\b|FAIL(?:ED|URE)?\b|[Ee]rror(?=:|\[| TS| in )|Exception\b|Traceback|fatal|panic|not ok\b"
    r"|<failure|ENOENT|[Ss]egmentation fault|out of memory|No such file|[Ff]ailed (?:to|with|in|at|after)|denied|refused|timed out|[Cc]annot|could not|unable to|[\u2717\u2718\u2716\u274c]"
    r"|[Ww]arn(?:ing)?s?\b|WARN(?:ING)?\b|Warning\b|\u26a0"
)
_IN_ROUGH: Final = (  # letters that each of its errors has: looked for ten times faster
    "rror|RROR|FATAL|fatal|CRIT|SEVERE|anic|PANIC|FAIL|ail|xception|raceback|not ok|ENOENT|egmentation|memory|such|enied|efused|timed|annot"
    "|ould not|nable to|\u2717|\u2718|\u2716|\u274c"
).split("|")
_COUNTED: Final = re.compile(  # in lower case: where a number says whether there was an error
    r"\d (?:\w{1,20} )?(?:error|failure|failed|problem|issue|exception|warning)|(?:error|failure|failed|exception|err|warning|stderr|exc_info)s?\b[\"']?"
    r"\s{0,4}[:=]\s{0,4}\d|level\"?\s{0,4}[:=]\s{0,4}\"?\d"
)
_LONGEST_FORM: Final = 4 * LONGEST  # bytes
ZEROS: Final = bytes.maketrans(b"23456789", b"11111111")  # all that counts of a number is whether it is 0
_ALIKE: Final = bytes.maketrans(b"123456789", b"000000000")
UNSURE: Final = 255  # a form whose numbers decide: `0 errors`
_COUNTABLE: Final = ("err", "fail", "warn", "problem", "issue", "exc", "level")


def forms_of(lines: Sequence[str]) -> list[bytes]:
    """The start of each line with its digits alike: lines of one form are of one class, so each form is looked at once."""
    if not lines:
        return []
    forms = "\n".join(lines).encode("utf-8", "surrogatepass").translate(_ALIKE).split(b"\n")
    return [form[:_LONGEST_FORM] for form in forms] if max(map(len, lines), default=0) > LONGEST else forms


def class_of_form(line: str) -> int:
    """The class of all lines of this line's form, or UNSURE."""
    text = bare(line)
    kind = classified(text)
    low = text.lower()
    counted = kind != PASSED and any(word in low for word in _COUNTABLE) and _COUNTED.search(low)
    return UNSURE if counted else kind


def telling(lines: Sequence[str], places: Iterable[int]) -> list[int]:
    """Of the lines at these places those that may say anything of an outcome."""
    text = "\n".join(lines)
    text = (_ANSI.sub("", text) if "\x1b" in text else text).lower()
    lows = text.split("\n")
    if len(lows) != len(lines):  # which takes a letter that is a line break in lower case
        return list(places)
    word = _TELLING.search
    start = (_COLUMNED_START if "\t" in text or "| " in text else _STAMPED_START).match
    found = [at for at in places if word(lows[at], 0, LONGEST) or start(lows[at])]
    if text.isascii():
        return found
    return sorted({*found, *(at for at in places if _SYMBOLS.search(lows[at], 0, LONGEST))})


def errors_in_long_lines(lines: Sequence[str]) -> dict[int, int]:
    """The lines whose first error stands behind what is looked at of every line, and at which character it begins."""
    places: dict[int, int] = {}
    for at, line in enumerate(lines):
        if len(line) <= LONGEST or not any(word in line for word in _IN_ROUGH):
            continue
        start = bare(line)
        if level_of(start, start.lower()) in _CALM_LEVELS:
            continue
        error = next((match for match in _ROUGH.finditer(line) if match[0][0] not in "wW\u26a0"), None)
        if error is not None:
            places[at] = error.start()
    return places


def roughly(line: str) -> int:
    """The class of a line by its words, some ten times faster than `classified`: for logs in which no two telling lines are alike."""
    if line.endswith(_PASSED_ENDS):
        return PASSED
    match = _ROUGH.search(line, 0, LONGEST)
    if match is None:
        return OTHER
    return WARNING if match[0][0] in "wW\u26a0" else ERROR


def classified(text: str) -> int:
    """What a line without its colours and time is, by itself."""
    if _PASSED.match(text) or text.endswith(_PASSED_ENDS) or ("PASSED" in text and _PASSED_SHARE.search(text)):
        return PASSED
    low = text.lower()
    level = level_of(text, low)
    if level in _CALM_LEVELS:
        return SUMMARY if _SUMMARY.match(low.lstrip(_ORNAMENTS)) else OTHER
    if not level and not (_TELLING.search(low) or _TELLING_START.match(low) or (not low.isascii() and _SYMBOLS.search(low))):
        return OTHER
    if _FAILED_NAME.match(text):
        return FAILED_NAME
    if _PROGRESS.match(text) or text.endswith(_PROGRESS_ENDS) or _PROGRESS_SHARE.search(text):
        return PROGRESS
    if _SUMMARY.match(low.lstrip(_ORNAMENTS)) or ("exit" in low and _EXIT.search(low)):
        return SUMMARY
    if level in _WARN_LEVELS:
        return WARNING
    if level in _BAD_LEVELS or _is_error(text, low):
        cleared = _NONE.sub("", text)
        if cleared == text or _is_error(cleared, cleared.lower()):
            return ERROR
        text, low = cleared, cleared.lower()
    if _WARNING_NAME.search(text) or (_WARNING.search(low) and _WARNING.search(_NONE.sub("", low))):
        return WARNING
    return PROGRESS if "%" in text and _BAR.search(text) else OTHER


def _is_error(text: str, low: str) -> bool:
    return bool(_ERROR_START.match(text) or _ERROR_WORD.search(text) or PHRASE.search(low))


def level_of(text: str, low: str) -> str:
    """The level a logger wrote near the start of a line, in lower case; `low` is the line in lower case; empty when the line does not say."""
    for match in _LEVEL_WORD.finditer(text, 0, 160):
        if not match.start() or text[match.start() - 1] in _BEFORE_LEVEL:
            return match[0].lower()
    if "level" in low or "lvl" in low or "severity" in low:
        keyed = _LEVEL_KEY.search(low, 0, 160)
        if keyed:
            return keyed[1]
    started = _LEVEL_START.match(low)
    return (started[1] or started[2]) if started else ""


def plain_start(line: str) -> str:
    """The start of a line without colours."""
    line = line[:LONGEST]
    return _ANSI.sub("", line) if "\x1b" in line else line


def stamp(start: str) -> int:
    """How many characters of job columns, container name and time stand before the message."""
    if not start or not (start[0] in _DIGITS or "| " in start[:50] or "\t" in start[1:82]):
        return 0
    match = _STAMP.match(start)
    return match.end() if match else 0


def bare(line: str) -> str:
    """The start of a line without colours, job columns and time."""
    start = line[:LONGEST]
    if "\x1b" in start:
        start = _ANSI.sub("", start)
    return start[stamp(start) :].rstrip()


def indented(line: str) -> int:
    """How deep a line begins."""
    return len(line) - len(line.lstrip()) if line[:1] in BLANK else 0


class Form(NamedTuple):
    """A kind of error line."""

    pattern: str  # searched in the line in lower case; begins with letters, which the engine skips to
    example: str
    source: str


FORMS: Final[tuple[Form, ...]] = (
    # compilers, linkers, build tools
    Form(r"error(?<=[:)-] error)(?: [a-z]{1,6}\d{1,6})?: ", "src/a.ts(4,7): error TS2322: Type 'x' is not assignable.", "tsc"),
    Form(r"fatal error: ", "a.c:1:10: fatal error: nope.h: No such file or directory", "gcc"),
    Form(r"undefined (?:reference|symbol)", "main.o: undefined reference to `f'", "ld"),
    Form(r"multiple definition of", "b.o:(.data+0x0): multiple definition of `x'", "ld"),
    Form(r"ld returned \d", "collect2: error: ld returned 1 exit status", "gcc"),
    Form(r"error(?<=\] error) \d", "make: *** [Makefile:4: all] Error 2", "make"),
    Form(r"no rule to make target", "make: *** No rule to make target 'x'.  Stop.", "make"),
    Form(r"recipe for target .{0,100}failed", "Makefile:4: recipe for target 'all' failed", "make"),
    Form(r"declared and not used", "./a.go:3:2: declared and not used: x", "go"),
    Form(r"no required module provides", "a.go:3:8: no required module provides package x; to add it:", "go"),
    Form(r"unresolved import", "unresolved import `serde`", "rustc"),
    Form(r"cannot (?:find|open|read|write|access|resolve|connect|allocate|execute|import|use)\b", "cannot find -lssl", "ld"),
    Form(r"what went wrong", "* What went wrong:", "Gradle"),
    Form(
        r"(?:build|tests?|job|step|task|command|compilation|request|check|deployment|connection|query|import|assertion|fetch) failed\b",
        "Task failed with an exception.",
        "CI",
    ),
    Form(r"failed (?:to|with|in|at|after)\b", "nginx.service: Failed with result 'exit-code'.", "systemd"),
    Form(r"could not\b", "ERROR: Could not find a version that satisfies the requirement x", "pip"),
    Form(r"unable to\b", "E: Unable to locate package libfoo-dev", "apt"),
    # packages
    Form(r"no matching (?:distribution|version|package)", "No matching distribution found for numpy==99.0", "pip"),
    Form(r"has no installation candidate", "E: Package 'x' has no installation candidate", "apt"),
    Form(r"unmet dependencies|dependency conflict|conflicting dependencies", "The following packages have unmet dependencies:", "apt"),
    Form(r"hash sum mismatch|integrity check", "Hash Sum mismatch", "apt"),
    Form(r"eresolve\b", "code ERESOLVE", "npm"),
    # processes and memory
    Form(r"segmentation fault|segfault|sigsegv", "Segmentation fault", "shell"),
    Form(r"core dumped", "Aborted (core dumped)", "shell"),
    Form(r"bus error|illegal instruction|floating point exception", "Bus error", "shell"),
    Form(r"abort trap|terminated by signal|signal: killed|killed by", "signal: killed", "go"),
    Form(r"out of memory|oom-?kill", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "PyTorch"),
    Form(r"killed process \d", "Out of memory: Killed process 4242 (postgres)", "Linux"),
    Form(r"heap out of|heap limit", "FATAL ERROR: Reached heap limit Allocation failed", "Node"),
    Form(r"stack overflow|stack smashing|stack level too deep", "*** stack smashing detected ***: terminated", "glibc"),
    Form(r"double free|free\(\): invalid|corrupted ", "free(): invalid pointer", "glibc"),
    Form(r"sanitizer: ", "==1==ERROR: AddressSanitizer: heap-use-after-free", "clang"),
    Form(r"runtime error: ", "a.c:3:5: runtime error: signed integer overflow", "UBSan"),
    Form(r"kernel panic|general protection fault", "Kernel panic - not syncing: VFS", "Linux"),
    Form(r"panicked at\b", "thread 'main' panicked at src/main.rs:2:5:", "Rust"),
    Form(r"unhandled\s|uncaught\s", "Uncaught TypeError: x is not a function", "browsers"),
    Form(r"assert(?:ion)? .{0,200}failed", "a.out: a.c:3: main: Assertion `x == 1' failed.", "glibc"),
    # files and rights
    Form(r"no such file or directory|no such (?:table|option|command|host)", "ls: cannot access 'x': No such file or directory", "coreutils"),
    Form(r"permission denied|access (?:is )?denied|access denied for", "find: '/root': Permission denied", "findutils"),
    Form(r"operation not permitted|read-only file system", "rm: cannot remove 'x': Operation not permitted", "coreutils"),
    Form(r"no space left|disk quota exceeded", "write failed: No space left on device", "Linux"),
    Form(r"too many open files|argument list too long", "accept4: Too many open files", "Linux"),
    Form(r"input/output error|device or resource busy|broken pipe", "read error: Input/output error", "Linux"),
    Form(r"(?:enoent|eacces|econn[a-z]+|eaddrinuse|etimedout|eperm|enospc|emfile|enotfound|eexist|elifecycle)\b", "ENOENT: no such file, open 'x'", "Node"),
    # shells
    Form(r"command not found|not found(?=$|: )", "sh: 1: foo: not found", "dash"),
    Form(r"is not recognized as", "'foo' is not recognized as an internal or external command", "cmd"),
    Form(r"syntax error", "bash: -c: line 1: syntax error near unexpected token `('", "bash"),
    Form(r"unbound variable|bad substitution|bad interpreter|exec format error", "./a.sh: line 3: X: unbound variable", "bash"),
    # network and services
    Form(r"connection (?:refused|reset|aborted|timed out)", "curl: (7) connection refused", "curl"),
    Form(r"timed out\b|deadline exceeded", "context deadline exceeded", "go"),
    Form(r"network is unreachable|no route to host", "connect: No route to host", "Linux"),
    Form(r"name resolution|name or service not known", "Temporary failure in name resolution", "glibc"),
    Form(r"certificate verify failed|certificate has expired|handshake fail", "SSL: CERTIFICATE_VERIFY_FAILED certificate verify failed", "OpenSSL"),
    Form(r"address already in use", "bind: address already in use", "Linux"),
    Form(r"internal server error|bad gateway|service unavailable|gateway time-?out|too many requests|unauthorized\b|403 forbidden", "HTTP/1.1 502 Bad Gateway", "HTTP"),
    Form(r"quota exceeded|rate limit exceeded", "429 rate limit exceeded", "HTTP"),
    Form(r"crashloopbackoff|imagepullbackoff|errimagepull|oomkilled", "web-1 0/1 CrashLoopBackOff 12", "kubectl"),
    Form(r"manifest unknown|did not complete successfully", "process \"/bin/sh -c make\" did not complete successfully: exit code: 2", "docker"),
    # versions and data
    Form(r"conflict \(|merge conflict|automatic merge failed|\[rejected\]", "CONFLICT (content): Merge conflict in a.py", "git"),
    Form(r"violates \S+ \S*\s?constraint|duplicate key|deadlock", "duplicate key value violates unique constraint \"users_pkey\"", "PostgreSQL"),
    Form(r"relation \S{1,80} does not exist|sqlstate|ora-\d{5}", "relation \"users\" does not exist", "PostgreSQL"),
    # reports
    Form(r"<(?:failure|error)(?=[ />])", "<failure message=\"assert 1 == 2\">", "JUnit"),
    # output that was cut before it came here
    Form(r"output (?:was )?truncated|truncated output|\[truncated|\[left out: ", "... [truncated 4096 bytes] ...", "harnesses"),
)  # fmt: skip
PHRASE: Final = re.compile("|".join(form.pattern for form in FORMS))  # in lower case
