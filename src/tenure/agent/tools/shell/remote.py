"""What programs do beyond this machine, and which of their words destroy, as tables. Pure.

An act on what others have or see cannot be undone from here, so a use that is not in a table counts as one: an unknown subcommand, or an option
before it that may be another program's value.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from tenure.agent.approval import CallEffect
from tenure.agent.tools.shell.effects import Asks, positional, texts
from tenure.agent.tools.shell.grammar import CommandLine, grammar
from tenure.agent.tools.shell.script import Word

_HELP: Final = frozenset({"--version", "-V", "--help", "-h", "version", "help"})
_GENERIC: Final = "list ls get show describe status logs info whoami inspect plan validate lint preview diff search"


class ProgramActs(Struct, frozen=True, kw_only=True):
    """What a program does beyond this machine, and what it destroys.

    `uses` change nothing elsewhere: subcommands, as `pr.view` with a second word, behind `options` that take a word; nor does what begins with
    `reads`. With neither the program stays here. `sends` are words that change something after all; what matches `destroys` cannot be undone.
    """

    uses: frozenset[str] = frozenset()
    options: frozenset[str] = frozenset()
    reads: re.Pattern[str] | None = None
    sends: re.Pattern[str] | None = None
    destroys: re.Pattern[str] | None = None

    def stay(self, rest: Sequence[Word]) -> bool:
        """Whether it changes nothing elsewhere with these words."""
        if self.reads is not None:
            words = " ".join(word.text if word.plain else "$" for word in rest)
            return self.reads.match(words) is not None or bool(rest and rest[0].text in _HELP)
        at = 0
        while at < len(rest) and rest[at].plain and rest[at].text.partition("=")[0] in self.options:
            at += 1 if "=" in rest[at].text else 2
        first, second = (rest[n].text if n < len(rest) and rest[n].plain else "" for n in (at, at + 1))
        if self.sends is not None and any(self.sends.search(word.text) or not word.plain for word in rest):
            return False
        return not self.uses or first in self.uses or f"{first}.{second}" in self.uses or first in _HELP


def _acts(uses: str = "", *, options: str = "", reads: str = "", sends: str = "", destroys: str = "") -> ProgramActs:
    patterns = {"reads": reads, "sends": sends, "destroys": destroys}
    compiled = {name: re.compile(pattern) for name, pattern in patterns.items() if pattern}
    return ProgramActs(uses=frozenset(uses.split()), options=frozenset(options.split()), **compiled)


def _pairs(table: str) -> str:
    """`pr: view list` as `pr.view pr.list`."""
    return " ".join(
        f"{noun}.{verb}" for noun, verbs in re.findall(r"(\w[\w-]*):((?: \w[\w-]*)+)", table) for verb in verbs.split()
    )


_TABLE: Final[Mapping[str, ProgramActs]] = {
    "kubectl oc": _acts(
        "get describe logs explain api-resources api-versions cluster-info top diff wait events completion kustomize "
        + _pairs("rollout: status history, config: view current-context get-contexts get-clusters, auth: can-i whoami"),
        options="-n --namespace --context --kubeconfig --cluster --request-timeout",
        sends="^--raw",
        destroys=r"\b(?:delete|drain|replace|cordon)\b",
    ),
    "helm": _acts(
        "list ls status get history show search template lint env pull create package dependency dep completion " + _pairs("repo: list add update"),
        options="-n --namespace --kube-context --kubeconfig",
        destroys=r"\b(?:uninstall|delete|rollback)\b",
    ),
    "terraform tofu terragrunt": _acts(
        "plan validate fmt show output providers graph get init console test " + _pairs("state: list show pull, workspace: list show"),
        options="-chdir",
        destroys=r"\b(?:destroy|apply|taint|state (?:rm|push))\b",
    ),
    "pulumi": _acts("preview logs about whoami new " + _pairs("stack: ls output graph history, config: get"), options="-C --cwd", destroys=r"\b(?:destroy|up|stack rm)\b"),
    "gh": _acts(
        "status search browse completion "
        + _pairs(
            "pr: view list diff status checks checkout, issue: view list status, repo: view list clone, run: view list watch download, workflow: view list,"
            " release: view list download, auth: status, label: list, secret: list, variable: list get, gist: view list clone, cache: list, ruleset: view"
            " list check, org: list, project: view list item-list field-list, extension: list, alias: list, config: get list"
        ),
        options="-R --repo",
        destroys=r"\b(?:delete|merge)\b|\bapi\b.*(?:DELETE|PUT|PATCH|POST)",
    ),
    "glab": _acts("completion " + _pairs("mr: view list diff checkout, issue: view list, repo: view list clone, ci: view list status trace lint, release: view list"), options="-R --repo"),
    "git lfs": _acts("ls-files track untrack fetch pull checkout env status install logs pointer"),
    "npm pnpm": _acts(
        "install i ci add remove rm uninstall un update up upgrade run run-script rum test t tst start stop restart exec x dlx create init c it ls list ll la outdated view v info show search"
        " audit fund pack link ln unlink rebuild rb prune dedupe ddp explain why query config bin root prefix doctor ping help-search completion cache version"
        " fetch import patch patch-commit store env licenses build pm repl install-test bug bugs docs home repo sbom shrinkwrap "
        + _pairs("dist-tag: ls, access: list, owner: ls, team: ls, token: list"),
        options="--prefix -C --dir -w --workspace --filter -F --loglevel",
        destroys=r"\b(?:publish|unpublish|deprecate)\b",
    ),
    "cargo": _acts(
        "build b check c test t run r bench doc d fmt clippy tree metadata add remove rm update fetch fix init new clean install uninstall search info vendor"
        " generate-lockfile locate-project pkgid package verify-project expand nextest audit outdated deny miri llvm-cov watch sweep udeps hack machete insta tarpaulin"
        " criterion flamegraph bloat geiger semver-checks rustc rustdoc report config",
        options="-Z -C --color --config",
        destroys=r"\b(?:publish|yank)\b",
    ),
    "gem": _acts(
        "install i uninstall list search info build update which contents dependency outdated cleanup check environment env query specification fetch unpack pristine sources rdoc",
        destroys=r"\b(?:push|yank)\b",
    ),
    "twine": _acts("check", destroys=r"\bupload\b"),
    "poetry pdm hatch rye": _acts(
        "add build cache check config debug env export init install list lock new remove run self search shell show sync update fix info import use venv"
        " outdated test fmt dep clean project python status tools toolchain pin",
        options="-C -p --project",
        destroys=r"\bpublish\b",
    ),
    "uv": _acts("add build cache export format init lock pip python remove run self sync tool tree venv", options="--directory --project", destroys=r"\bpublish\b"),
    "flit maturin": _acts("build install develop new init"),
    "docker podman nerdctl": _acts(
        "build run exec ps images pull logs inspect start stop restart create cp diff events export history import info load port rename save search stats tag"
        " top unpause pause update wait attach commit rm rmi kill compose container image network volume system builder",
        options="--log-level",
        sends=r"^(?:push|login|publish|--push|--host|-H|--context|-c=|-c$)|type=registry|^--cache-to",
        destroys=r"\b(?:rm|rmi|prune|kill|down|push)\b",
    ),
    "hg": _acts(
        "add addremove annotate archive backout bisect blame bookmarks branch branches bundle cat clone commit ci config copy cp diff export files forget graft grep"
        " heads identify id import incoming init locate log manifest merge outgoing parents paths phase pull recover remove rename resolve rm root shelve"
        " status st summary tag tags tip unbundle unshelve update up verify rebase histedit absorb amend purge strip rollback",
        options="-R --cwd",
        destroys=r"\b(?:purge|strip|rollback)\b|--clean\b|(?:^| )-C\b",
    ),
    "svn": _acts(
        "add blame cat changelist checkout co cleanup diff export info list ls log merge resolve status st switch update up upgrade revert",
        destroys=r"\b(?:revert|delete|commit|ci)\b",
    ),
    "gsutil": _acts("ls cat du stat hash", destroys=r"\b(?:rm|rb)\b|\brsync\b.* -\w*d"),
    "redis-cli": _acts(
        " ".join(f"{name} {name.upper()}" for name in "get mget keys scan info ping hget hgetall hkeys hlen lrange llen smembers scard zrange zcard ttl pttl type exists dbsize strlen".split()),
        options="-h -p -n -a --user --pass -u",
        destroys=r"(?i:\bflush(?:all|db)\b|\bshutdown\b)",
    ),
    "wrangler": _acts("dev tail types whoami"),
    "vercel netlify": _acts("dev build pull link ls list inspect logs whoami", destroys=r"\b(?:rm|remove|delete|\S*destroy|--prod)\b"),
    "firebase supabase": _acts("emulators.start start stop serve init"),
    "heroku fly flyctl railway": _acts(_GENERIC, destroys=r"\b(?:rm|remove|delete|\S*destroy|--prod)\b"),
    "aws": _acts(
        reads=r"(?:[a-z0-9-]+ (?:(?:describe|get|list|head|lookup|search|scan|query|batch-get|select|filter|estimate|validate|wait|help)\b|ls\b)|configure (?:list|get)\b)",
        destroys=r"\b(?:rm|rb|delete-\S+|terminate-\S+|remove-\S+|purge-\S+)\b|--delete\b",
    ),
    "gcloud": _acts(
        reads=r"(?:alpha |beta )?(?:(?:compute|container|run|sql|functions|storage|logging|projects|services|iam|app|dns|kms|pubsub|secrets|artifacts|auth|config)"
        r" (?:[a-z-]+s )*(?:list|describe|read)\b|(?:projects|services|auth|config) list\b|info\b)",
        destroys=r"\b(?:delete|rm)\b",
    ),
    "az": _acts(
        reads=r"(?:account|group|vm|vmss|aks|acr|webapp|functionapp|network|storage|keyvault|sql|monitor|ad|resource|disk|image|aro|cosmosdb|redis|servicebus|eventhubs)"
        r"(?: (?:vnet|nsg|nic|public-ip|lb|account|container|blob|server|db|repository|secret|user|app|sp))? (?:list|show)\b",
        destroys=r"\b(?:delete|purge)\b",
    ),
    "yarn": _acts(destroys=r"\bpublish\b"),
    "crontab": _acts(destroys=r"(?:^| )-\w*r\b|(?:^| )-(?: |$)"),
    "iptables": _acts(destroys=r"(?:^| )(?:-F|--flush|-X)\b"),
    "rsync": _acts(destroys=r"--(?:del|remove-s)"),
    "systemctl": _acts(destroys=r"\b(?:poweroff|reboot|halt|kexec|isolate|emergency|rescue)\b"),
    "apt apt-get": _acts(destroys=r"\b(?:remove|purge|autoremove)\b"),
    "vault consul nomad etcdctl argocd flux istioctl eksctl doctl surge eb sam serverless sls cdk cdktf amplify fastlane eas snapcraft vsce"
    " ovsx goreleaser semantic-release release-it np lerna sentry-cli dvc wandb huggingface-cli hf airflow linode-cli hcloud oci cf ibmcloud stripe skaffold"
    " cloudflared ngrok tailscale bq databricks snowsql sfdx sf ansible ansible-playbook ansible-pull salt mail mailx mutt neomutt sendmail msmtp swaks s-nail"
    " mongosh mongo cqlsh sqlplus sqlcmd mosquitto_pub kcat kafka-console-producer rabbitmqadmin skopeo oras cosign crane s3cmd s5cmd azcopy mc lftp ncftp": _acts(
        _GENERIC,
    ),
}  # fmt: skip
_ACTS: Final[Mapping[str, ProgramActs]] = {
    name: acts for names, acts in _TABLE.items() for name in (["git lfs"] if names == "git lfs" else names.split())
}
_LONGEST: Final = 4_000  # characters of a command in which a word that destroys is looked for

# Programs that run what a project calls by a name: it may be one that sends the project away.
_NAMED_WORK: Final = frozenset(
    "make gmake just task rake invoke inv nox tox npm pnpm yarn bun deno gradle ./gradlew mvn ./mvnw sbt ant nx turbo composer bazel mix rails cap dotnet lein poe hatch pdm".split()
)
_SENDING_WORK: Final = re.compile(
    r"(?:^|[^a-z0-9])(?:un)?(?:deploy|publish|release|push|upload|ship|promote|rollback|login|migrate|yank)(?:$|[^a-z0-9])",
    re.IGNORECASE,
)

_CURL: Final = grammar(
    "-sSfLkivIOJgN46#vjZ0 -o: -H: -m: -w: -A: -e: -u: -b: -X: -r: -y: -Y: -C: -z: --silent --show-error --fail --fail-with-body --location --insecure --include --verbose --head"
    " --remote-name --remote-header-name --remote-name-all --no-buffer --ipv4 --ipv6 --compressed --progress-bar --no-progress-meter --globoff --parallel"
    " --output= --output-dir= --create-dirs --header= --max-time= --connect-timeout= --write-out= --user-agent= --referer= --user= --cookie= --request= --range= --retry= --retry-delay="
    " --retry-max-time= --retry-all-errors --retry-connrefused --continue-at= --time-cond= --url= --cacert= --max-filesize= --proto= --oauth2-bearer= --resolve="
    " --location-trusted --max-redirs= --ssl-reqd --no-keepalive --limit-rate= --version --help TEXT"
)
_WGET: Final = grammar(
    "-qvdcNSpkKEmrHnxb46 -O: -o: -a: -P: -t: -T: -w: -Q: -l: -A: -R: -D: -I: -X: -U: -i: --quiet --verbose --no-verbose --continue --timestamping --server-response --spider --recursive"
    " --mirror --no-parent --page-requisites --convert-links --adjust-extension --no-clobber --no-directories --no-host-directories --force-directories --content-disposition"
    " --output-document= --output-file= --directory-prefix= --tries= --timeout= --wait= --random-wait --level= --accept= --reject= --domains= --user-agent= --header= --user= --password="
    " --no-check-certificate --https-only --show-progress --progress= --max-redirect= --input-file= --limit-rate= --retry-connrefused --waitretry= --cut-dirs= --version --help TEXT"
)
_GH_API: Final = grammar(
    "-i -H: -q: -t: -p: -X: --include --header= --jq= --template= --preview= --method= --paginate --slurp --silent --cache= --hostname= --verbose 1 TEXT"
)
_HTTP: Final = {"curl": _CURL, "wget": _WGET, "gh api": _GH_API}
_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADER: Final = re.compile(r"\s*(?:accept[\w-]*|authorization|user-agent|content-type|cache-control|x-api-key|private-token|api-key|if-[\w-]+|range|cookie|referer|host|x-github-api-version)\s*[:;].*", re.IGNORECASE)  # fmt: skip
_ADDRESS: Final = re.compile(r"(?!\w+://).*|https?://.*", re.IGNORECASE)
_SQL: Final = grammar(
    "-tAqxXwWNBslE0z1 -c: -e: -h: -p? -P: -u: -U: -d: -D: -q: -F: --list --tuples-only --no-align --quiet --expanded --no-psqlrc --no-password --csv --html --table --batch --raw"
    " --skip-column-names --silent --vertical --command= --execute= --query= --host= --port= --username= --user= --dbname= --database= --password=? --field-separator= 2 TEXT"
)
_SQL_CLIENTS: Final = frozenset("psql mysql mariadb pgcli mycli usql cockroach clickhouse-client".split())
_STATEMENT: Final = re.compile(
    r"\s*(?:\\(?:d\w*\+?|l\+?|z|conninfo)(?:\s+[\w.*\"]+)?|(?:select|show|describe|desc|explain\s+select|table)\b[^;\\]*);?\s*",
    re.IGNORECASE,
)
_CALLED: Final = re.compile(r"([\w.\"$]+)\s*\(")
_HARMLESS_CALLS: Final = frozenset(
    "count sum min max avg coalesce lower upper length round abs now date_trunc cast in exists values over distinct as and or not from where select on any all"
    " concat substring trim extract to_char nullif greatest least row_number rank left right replace version current_database current_user".split()
)
_SQL_WRITES: Final = re.compile(
    r"\b(?:into|for\s+(?:no\s+key\s+)?(?:update|share)|outfile|dumpfile)\b|/\*!|--|\$\$", re.IGNORECASE
)
_ON_ANOTHER_HOST: Final = re.compile(r"rsync://|(?![./~])[\w.@-]+:(?!\\)")


def acts_remotely(name: str, rest: Sequence[Word]) -> bool:
    """Whether a program with these words may change, send or publish something elsewhere."""
    action = f"{name} {rest[0].text}" if rest and rest[0].plain else ""
    if action in _HTTP:
        return not _only_fetches(action, rest[1:])
    if name in _HTTP:
        return not _only_fetches(name, rest)
    if name in ("http", "https", "xh", "xhs"):
        named = texts(rest[1:] if rest and rest[0].text in _METHODS else rest)
        alone = all(word.plain for word in rest) and re.fullmatch(
            r"(?!-|\w+$)(?:(?!\w+://)|https?://).*", named[0] if named else ""
        )
        return not alone or not all(re.fullmatch(r"(?!-)[^=:@]*==.*", item) for item in named[1:])
    if name in _SQL_CLIENTS:
        return not _only_asks(rest)
    if name == "rsync":
        return any(_ON_ANOTHER_HOST.match(word.text) or not word.plain for word in rest)
    if name in _NAMED_WORK and any(_SENDING_WORK.search(word.text) for word in positional(rest)):
        return True
    return name in _ACTS and not _ACTS[name].stay(rest)


def cannot_be_undone(name: str, rest: Sequence[Word]) -> bool:
    """Whether a program with these words destroys something, here or elsewhere; what is too long to be looked through counts."""
    destroys = _ACTS[name].destroys if name in _ACTS else None
    line = " ".join(texts(rest))
    return destroys is not None and (len(line) > _LONGEST or destroys.search(line) is not None)


def remotely(name: str, key: str = "") -> Asks:
    """What such an act asks."""
    return Asks(
        reason=f"`{name}` may change or publish something elsewhere, which cannot be undone", key=key, act=CallEffect.REMOTE
    )


def _only_fetches(name: str, rest: Sequence[Word]) -> bool:
    line = CommandLine(_HTTP[name], rest)
    methods = [value.text for value in line.values("-X", "--request", "--method")] if name != "wget" else []
    headers = [value.text for value in line.values("-H", "--header")]
    return (
        not line.unknown
        and all(word.plain and "%output" not in word.text for word in rest)
        and set(methods) <= _METHODS
        and all(map(_HEADER.fullmatch, headers))
        and all(_ADDRESS.fullmatch(word.text) and word.text != "graphql" for word in (*line.operands, *line.values("--url")))
    )


def _only_asks(rest: Sequence[Word]) -> bool:
    line = CommandLine(_SQL, rest)
    if line.unknown or not all(word.plain for word in rest):
        return False
    statements = [value.text for value in line.values("-c", "-e", "--command", "--execute", "--query")]
    return bool(statements or {"-l", "--list"} & line.given.keys()) and all(
        _STATEMENT.fullmatch(text)
        and not _SQL_WRITES.search(text)
        and {call.lower() for call in _CALLED.findall(text)} <= _HARMLESS_CALLS
        for text in statements
    )
