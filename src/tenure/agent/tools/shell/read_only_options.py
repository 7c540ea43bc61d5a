"""What is known to only look: programs, their subcommands and options, as tables in the notation of `grammar`. Pure.

What is not here asks. An option belongs here when the program's manual leaves no doubt that with it nothing is written, run, sent or set.
"""

from collections.abc import Mapping
from typing import Final

from tenure.agent.tools.shell.grammar import Grammar, grammar

_GREP: Final = (
    "-ivwxcloLqshHnzraEFGPUTbRVyIuZ -e:! -f@! -A: -B: -C: -m: -# --regexp=! --file=@! --ignore-case --no-ignore-case --invert-match --word-regexp"
    " --line-regexp --count --color=? --colour=? --files-without-match --files-with-matches --max-count= --only-matching --quiet --silent"
    " --no-messages --byte-offset --with-filename --no-filename --label= --line-number --initial-tab --null --after-context= --before-context="
    " --context= --text --binary-files= --exclude= --exclude-from=@ --exclude-dir= --include= --recursive --dereference-recursive --extended-regexp"
    " --fixed-strings --basic-regexp --perl-regexp --line-buffered --null-data --binary --version --help PATTERN READ"
    " DEEP=-r,-R,--recursive,--dereference-recursive FOLLOWS=-R,--dereference-recursive PASSES TELLS=--label"
)
_SUM: Final = "-bctwz --binary --check --tag --text --zero --ignore-missing --quiet --status --strict --warn NAME ANY"

_TABLES: Final[Mapping[str, str]] = {
    "ls": "-aAbBcCdfFgGhHiklLmnNopqQrRsStTuUvxXZ1 -I: -w: --all --almost-all --author --escape --block-size= --ignore-backups --color=? --directory"
    " --classify=? --file-type --format= --full-time --group-directories-first --no-group --human-readable --si --dereference --hide= --hyperlink=?"
    " --indicator-style= --inode --ignore= --kibibytes --literal --hide-control-chars --quote-name --quoting-style= --reverse --recursive --size"
    " --sort= --time= --time-style= --width= --context --zero --version --help NAME ANY LISTS TELLS=-g,-l,-n,-o,--format,--full-time,--hyperlink,--time-style",
    "cat": "-AbeEnstTuv --show-all --number --number-nonblank --show-ends --squeeze-blank --show-tabs --show-nonprinting --version --help READ ANY PASSES",
    "head": "-qvz -c: -n: -# --bytes= --lines= --quiet --silent --verbose --zero-terminated --version --help READ ANY PASSES",
    "tail": "-qvzr -c: -n: -# --bytes= --lines= --quiet --silent --verbose --zero-terminated --version --help READ ANY PASSES",
    "wc": "-clLmw --bytes --chars --lines --max-line-length --words --total= --version --help NAME PASSES",
    "nl": "-p -b: -d: -f: -h: -i: -l: -n: -s: -v: -w: --body-numbering= --number-format= --number-width= --number-separator= READ ANY",
    "tac": "-br -s: --before --regex --separator= READ ANY PASSES",
    "rev": "READ ANY",
    "fold": "-bs -w: --bytes --spaces --width= READ ANY",
    "fmt": "-cstu -w: -p: -g: -# --width= --split-only --uniform-spacing READ ANY",
    "expand": "-i -t: --initial --tabs= READ ANY",
    "unexpand": "-a -t: --all --first-only --tabs= READ ANY",
    "cut": "-nsz -b: -c: -d: -f: --bytes= --characters= --delimiter= --fields= --complement --only-delimited --output-delimiter= --zero-terminated READ ANY",
    "tr": "-cCdst --complement --delete --squeeze-repeats --truncate-set1 TEXT ANY",
    "paste": "-sz -d: --delimiters= --serial --zero-terminated READ ANY",
    "join": "-iz -a: -e: -1: -2: -j: -o: -t: -v: --check-order --nocheck-order --header --ignore-case READ ANY",
    "comm": "-123z --check-order --nocheck-order --output-delimiter= --total --zero-terminated READ ANY",
    "column": "-tneLxJ -s: -o: -c: -N: -R: -T: -E: -H: -d --table --separator= --output-separator= --columns= --fillrows READ",
    "strings": "-adfwi -n: -t: -e: -o -# --all --print-file-name --bytes= --radix= --encoding= READ RESPONSES",
    **dict.fromkeys("md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum".split(), f"{_SUM} -a: -l: -rs --length= --algorithm="),
    "diff": "-abBdeEHilnNpPqrstTuwyZ -c -C: -F: -I: -S: -U: -W: -x: -X@ -# --brief --report-identical-files --side-by-side --show-c-function --width="
    " --suppress-common-lines --recursive --new-file --text --ignore-case --ignore-all-space --ignore-space-change --ignore-blank-lines --unified=?"
    " --context=? --exclude= --color=? --label= --minimal --speed-large-files --strip-trailing-cr --tabsize= READ DEEP= FOLLOWS=",
    "cmp": "-bls -i: -n: --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent READ ANY",
    "diffstat": "-bcfhklmpqrstuvw -n: -w:",
    "od": "-abcdfhiloxsvBDOXF -A: -j: -N: -S: -t: -w? -e --address-radix= --skip-bytes= --read-bytes= --strings=? --format= --output-duplicates --width=?"
    " --endian= READ ANY",
    "hexdump": "-bcCdoxv -e: -f@ -n: -s: READ",
    "base64": "-diD -w: --decode --ignore-garbage --wrap= READ",
    "seq": "-w -f: -s: --format= --separator= --equal-width TEXT ANY",
    "stat": "-LftxnqsrlF -c: --dereference --file-system --format= --printf= --terse NAME ANY",
    "du": "-0aAbcDhHkLlmPsSx -B: -d: -t: --null --all --apparent-size --block-size= --bytes --total --dereference --max-depth= --human-readable --summarize"
    " --one-file-system --separate-dirs --exclude= --threshold= --time=? --si --inodes NAME",
    "df": "-aBhHiklPTvm -t: -x: --all --human-readable --inodes --local --print-type --type= --output=? --total --si NAME",
    "tree": "-adfilxFDhugpsnNCQqtrcvUA -L: -I: -P: --noreport --dirsfirst --filelimit= --prune --du --gitignore --charset= --si --inodes --device --sort=?"
    " --matchdirs --ignore-case NAME LAST",
    "file": "-bihLkNnrsv0E --brief --mime --mime-type --mime-encoding --dereference --no-dereference --keep-going --print0 --extension NAME",
    "which": "-as --all TEXT PASSES",
    "id": "-agGnruz --user --group --groups --name --real TEXT",
    "nproc": "--all --ignore=",
    "uptime": "-ps --pretty --since",
    "free": "-bkmghltvw --bytes --kibi --mebi --gibi --human --wide --total --si",
    "uname": "-asnrvmpio --all --kernel-name --nodename --kernel-release --kernel-version --machine --processor --operating-system",
    "tty": "-s",
    "locale": "-ack TEXT",
    "lsblk": "-abdfilmnpPrtOSs -o: --json -J --output= --all --fs NAME",
    "lscpu": "-abcxyepJ --json --extended=? --parse=?",
    "pwd": "-LP PASSES",
    "basename": "-az -s: --multiple --suffix= --zero TEXT ANY PASSES",
    "dirname": "-z --zero TEXT ANY PASSES",
    "realpath": "-eEmLPqsz --relative-to= --relative-base= --canonicalize-existing --canonicalize-missing --no-symlinks --strip --quiet NAME ANY",
    "readlink": "-efmnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline NAME ANY",
    "sleep": "TEXT ANY PASSES",
    "numfmt": "--from= --to= --field= --format= --padding= --suffix= --grouping --header=? -d: -z TEXT",
    "cal": "-13jmsyw -A: -B: TEXT",
    "pgrep": "-acfilnovwx -d: -g: -G: -P: -s: -t: -u: -U: --full --list-name --list-full --newest --oldest --exact --count --parent= --euid= --uid= TEXT",
    "pidof": "-cqsx -o: TEXT",
    "bzcat": "-s READ",
    "zstdcat": "-fqv READ",
    "grep": _GREP,
    "size": "-ABGdotx READ RESPONSES",
    "nm": "-aACDgnopPruSsv --defined-only --undefined-only --demangle --dynamic --extern-only --numeric-sort --print-size READ RESPONSES",
    "readelf": "-aehlSsgtrndVuWc -p: -x: --all --file-header --program-headers --segments --section-headers --sections --symbols --syms --dynamic --notes"
    " --relocs --version-info --wide READ RESPONSES",
    "objdump": "-afhxdDtTrRspwC -j: -M: --disassemble --disassemble-all --file-headers --section-headers --all-headers --full-contents --syms --wide READ RESPONSES",
    "sort": "-bdfgiMhnRrVcCmsuz -k: -t: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --month-sort --numeric-sort"
    " --human-numeric-sort --version-sort --random-sort --reverse --sort= --check=? --key= --merge --stable --field-separator= --unique --zero-terminated"
    " --parallel= READ PASSES",
    "shuf": "-erz -i: -n: --echo --input-range= --head-count= --repeat READ PASSES",
    "uniq": "-cdDiuz -f: -s: -w: --count --repeated --all-repeated=? --group=? --skip-fields= --ignore-case --skip-chars= --unique --zero-terminated"
    " --check-chars= 1 READ PASSES",
    "xxd": "-abeEiprCu -c: -g: -l: -n: -s: -o: 1 READ ALONE",
    "iconv": "-cls -f: -t: --from-code= --to-code= --list READ",
    "rg": "-NnilLcSswvxUFPoHIhpqa0.u -g: -t: -T: -A: -B: -C: -m: -M: -E: -j: -d: -r: -e:! -f@! -# --line-number --no-line-number --ignore-case --case-sensitive"
    " --smart-case --word-regexp --line-regexp --invert-match --count --count-matches --files-with-matches --files-without-match --files! --glob= --iglob="
    " --type= --type-not= --type-list! --type-add= --after-context= --before-context= --context= --max-count= --max-columns= --max-columns-preview --hidden"
    " --no-hidden --no-ignore --no-ignore-vcs --no-ignore-parent --follow --fixed-strings --pcre2 --multiline --multiline-dotall --only-matching --replace="
    " --heading --no-heading --with-filename --no-filename --column --no-column --color= --colors= --json --stats --null --sort= --sortr= --max-depth="
    " --max-filesize= --regexp=! --file=@! --text --trim --vimgrep --unrestricted --passthru --quiet --pretty --encoding= --threads= --engine= --no-messages"
    " --no-config --glob-case-insensitive --sort-files --crlf --binary --one-file-system --byte-offset --version --help PATTERN READ DEEP= FOLLOWS=-L,--follow HIDES",
    "fd": "-HIusigFapL0l1 -d: -t: -e: -E: -S: -c: -j: --hidden --no-ignore --unrestricted --case-sensitive --ignore-case --glob --fixed-strings --absolute-path"
    " --list-details --follow --full-path --print0 --max-depth= --min-depth= --exact-depth= --type= --extension= --exclude= --size= --changed-within="
    " --changed-before= --color= --max-results= --prune --strip-cwd-prefix PATTERN NAME LISTS TELLS=-l,--list-details",
    "jobs": "-lnprs",
    "dirs": "-clpv",
    "popd": "-n",
    **dict.fromkeys(("eza", "exa"), "-aAdfFghHiklLmnrRsStTuUx1 --all --long --tree --level= --git --header --icons NAME"),
    **dict.fromkeys(("zcat", "xzcat"), "-fq READ"),
    **dict.fromkeys(("docker ps", "podman ps"), "-aqlns -f: --all --quiet --latest --last= --no-trunc --size --format= --filter="),
    **dict.fromkeys(("docker images", "podman images"), "-aq -f: --all --quiet --no-trunc --digests --format= --filter= TEXT"),
    **dict.fromkeys(("whoami", "arch", "pip list", "pip3 list"), ""),
    **dict.fromkeys(
        "groups,factor,expr,wait,pip show,pip3 show,systemctl is-active,systemctl is-enabled,getent passwd,getent group,getent services,getent protocols".split(","),
        "TEXT",
    ),
    **dict.fromkeys("exit return break continue shift".split(), "TEXT ANY PASSES"),
    **dict.fromkeys(("true", "false", ":"), "TEXT ANY PASSES"),
    "type": "-afptP TEXT PASSES",
    "systemctl status": "--no-pager TEXT",
}  # fmt: skip
LOOKS: Final[Mapping[str, Grammar]] = {
    **{name: grammar(table) for name, table in _TABLES.items()},
    **dict.fromkeys(("egrep", "fgrep"), grammar(_TABLES["grep"])),
    "fdfind": grammar(_TABLES["fd"]),
}

# The only word behind the program, with which it says which version it is. Programs that a workspace's own files can have replaced or extended
# (cargo, go, yarn, gradle, pytest), or tell where to write its log (npm), are not here.
VERSIONS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(
        "python3 ruby perl php gcc g++ cc clang make cmake docker podman pip pip3 uv ruff black mypy tsc prettier bash sh zsh curl wget tar gh jq git"
        " sqlite3 rg fd sed awk".split(),
        frozenset({"--version"}),
    ),
    **dict.fromkeys(("node", "deno", "bun"), frozenset({"--version", "-v"})),
    **dict.fromkeys(("python", "python3"), frozenset({"--version", "-V"})),
}

_COMMON: Final = "--color=? --no-color --abbrev=? --no-abbrev -z"
_DIFF: Final = (
    "-puswbRar -B? -C? -M? -U: -S: -G: --patch --no-patch --unified= --raw --stat=? --numstat --shortstat --dirstat=? --summary --compact-summary --name-only"
    " --name-status --check --full-index --binary --diff-filter= --find-renames=? --find-copies=? --find-copies-harder --no-renames --pickaxe-all"
    " --pickaxe-regex --relative=? --text --ignore-all-space --ignore-space-change --ignore-space-at-eol --ignore-blank-lines --ignore-cr-at-eol"
    " --ignore-matching-lines= -I: --function-context -W --minimal --patience --histogram --diff-algorithm= --word-diff=? --word-diff-regex= --color-words=?"
    " --color-moved=? --no-prefix --src-prefix= --dst-prefix= --inter-hunk-context= --exit-code --quiet --patch-with-stat --no-ext-diff --no-textconv"
    " --ignore-submodules=? --stat-width= --stat-count= --merge-base --no-index --cached --staged --find-object= --line-prefix= --cc -c"
)
_LOG: Final = (
    "-# -n: -i -E -F -P -g -m -q -L: --oneline --decorate=? --no-decorate --decorate-refs= --graph --all --branches=? --tags=? --remotes=? --max-count= --skip="
    " --since= --after= --until= --before= --author= --committer= --grep= --all-match --invert-grep --regexp-ignore-case --extended-regexp --fixed-strings"
    " --perl-regexp --merges --no-merges --first-parent --follow --format= --pretty=? --date= --relative-date --reverse --topo-order --date-order"
    " --author-date-order --full-history --simplify-by-decoration --simplify-merges --ancestry-path=? --cherry --cherry-pick --cherry-mark --left-right"
    " --left-only --right-only --not --boundary --source --abbrev-commit --no-abbrev-commit --parents --children --walk-reflogs --reflog"
    " --show-notes=? --notes=? --no-notes --full-diff --log-size --no-walk=? --min-parents= --max-parents= --count --objects --glob= --exclude="
    " --diff-merges= --no-diff-merges --expand-tabs=? --no-expand-tabs --encoding= --mailmap --use-mailmap --no-mailmap --no-stat -t --root --always"
)
_REFS: Final = (
    "--sort= --format= --contains=? --no-contains=? --merged=? --no-merged=? --points-at= --ignore-case --column=? --no-column -i"
)

# Subcommands of git with which it only looks. Operands are revisions and paths.
GIT: Final[Mapping[str, Grammar]] = {
    name: grammar(f"{table} {_COMMON}")
    for name, table in {
        "status": "-sbvz --short --branch --show-stash --porcelain=? --long --verbose --untracked-files=? -u? --ignored=? --ignore-submodules=? --no-renames"
        " --renames --find-renames=? --ahead-behind --no-ahead-behind NAME",
        "diff": f"{_DIFF} -# READ",
        "log": f"{_DIFF.replace(' -c', '')} {_LOG} READ",
        "whatchanged": f"{_DIFF} {_LOG} READ",
        "show": f"{_DIFF} {_LOG} READ",
        "shortlog": f"{_LOG} -snec -w? --summary --numbered --email --group= READ",
        "rev-list": f"{_LOG} --objects-edge --disk-usage=? --timestamp --header --use-bitmap-index READ",
        "blame": "-blrtfnspewMCcs -L: -S@ --root --show-stats --show-name --show-number --show-email --porcelain --line-porcelain --incremental --since= --date="
        " --ignore-rev= --first-parent --reverse READ",
        "annotate": "-blrtfnspew -L: READ",
        "rev-parse": "--abbrev-ref=? --symbolic --symbolic-full-name --short=? --verify --quiet -q --show-toplevel --show-prefix --show-cdup --git-dir"
        " --absolute-git-dir --git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository"
        " --show-superproject-working-tree --all --branches=? --tags=? --remotes=? --not --show-object-format=? --default= --git-path= --path-format= TEXT",
        "ls-files": "-cdmoisktfuv -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed --directory --no-empty-directory --exclude="
        " --exclude-standard --error-unmatch --full-name --recurse-submodules --eol --deduplicate --format= NAME LISTS TELLS=--format",
        "ls-tree": "-dlrtz --long --name-only --name-status --object-only --full-name --full-tree --format= NAME",
        "cat-file": "-tspe READ",
        "describe": "--all --tags --contains --candidates= --exact-match --long --match= --exclude= --always --first-parent TEXT",
        "grep": "-ivwhHEGPFnlLcopWqIar -e:! -f@! -A: -B: -C: -m: -# --ignore-case --word-regexp --invert-match --full-name --extended-regexp --basic-regexp"
        " --perl-regexp --fixed-strings --line-number --column --files-with-matches --name-only --files-without-match --count --only-matching --break --heading"
        " --show-function --function-context --after-context= --before-context= --context= --all-match --quiet --max-depth= --threads= --cached --text --and --or"
        " --not --null PATTERN READ",
        "merge-base": "-a --all --octopus --independent --is-ancestor --fork-point TEXT",
        "name-rev": "--tags --refs= --exclude= --all --name-only --always TEXT",
        "for-each-ref": f"{_REFS} --count= --exclude= TEXT",
        "show-ref": "-dsqh --head --tags --heads --branches --dereference --hash=? --verify --quiet --exists TEXT",
        "show-branch": "-ragv --all --remotes --current --topo-order --list --more= --merge-base --independent --no-name --sha1-name --topics TEXT",
        "count-objects": "-vH --verbose --human-readable",
        "check-ignore": "-vnq --verbose --non-matching --quiet --no-index NAME",
        "check-attr": "-a --all --cached NAME",
        "check-ref-format": "--branch --normalize --allow-onelevel TEXT",
        "cherry": "-v --abbrev=? TEXT",
        "range-diff": f"{_DIFF} --creation-factor= --no-dual-color --left-only --right-only TEXT",
        "diff-tree": f"{_DIFF} {_LOG} READ",
        "diff-index": f"{_DIFF} READ",
        "diff-files": f"{_DIFF} READ",
        "symbolic-ref": "-q --short --quiet 1 TEXT",
        "version": "--build-options",
        "stash list": f"{_LOG} {_DIFF} TEXT",
        "stash show": f"{_DIFF} -# --include-untracked --only-untracked TEXT",
        "worktree list": "-v --porcelain --verbose",
        "remote": "-v --verbose",
        "remote get-url": "--push --all TEXT",
        "notes list": "TEXT",
        "bisect log": "",
        "reflog": f"{_LOG} {_DIFF}",
        "reflog show": f"{_LOG} {_DIFF} TEXT",
        "clean -n": "-dxXqn -e: --dry-run --exclude= NAME",
        "config": "-zl --null --list --show-origin --show-scope --name-only --includes --no-includes --global --local --system --worktree --type= --bool --int --path"
        " --get= --get-all= --get-regexp= --get-urlmatch= 1 TEXT",
        "config list": "-z --null --show-origin --show-scope --name-only --global --local --system --worktree",
        "config get": "-z --all --regexp --value= --show-origin --show-scope --global --local --system --worktree --default= 1 TEXT",
        "branch": f"{_REFS} -arvli --all --remotes --verbose --list --show-current",
        "branch --list": f"{_REFS} -arvli --all --remotes --verbose --list --show-current TEXT",
        "tag": f"{_REFS} -l -n? --list",
        "tag --list": f"{_REFS} -l -n? --list TEXT",
    }.items()
}  # fmt: skip
