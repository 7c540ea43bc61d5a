"""Lines that look like errors, by phrases in lower case: one table, read for logs and for texts of no known shape.

Each row has a pattern, a line it was written for, and where that line comes from. A row may be wrong now and then: a line shown in vain costs
little, and each kind of line is shown once. Forms that need upper case or the beginning of a line stand in `log_lines`.
"""

import re
from typing import Final, NamedTuple


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
