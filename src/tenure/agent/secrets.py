"""Where keys and passwords are kept, as one table: the judge of commands asks before a look there, and the wall hides it.

Places are known by their names, wherever they lie; `in_home` lists those that are in a home folder, `below` those in a folder.
"""

import os
import re
from collections import deque
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Final

# Folders and files below a home. The wall hides each that is there.
HOME: Final = (
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci", ".chef", ".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op",
    ".config/rclone", ".config/doctl", ".config/hcloud", ".config/stripe", ".config/solana", ".config/github-copilot", ".config/keepassxc", ".config/sops",
    ".config/tenure", ".password-store", ".local/share/keyrings", ".local/share/kwalletd", "Library/Keychains", "Library/Cookies", ".electrum", ".bitcoin",
    ".ethereum", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".git-credentials", ".config/git/credentials", ".npmrc", ".pypirc", ".htpasswd", ".dockercfg",
    ".docker/config.json", ".config/containers/auth.json", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".composer/auth.json",
    ".m2/settings.xml", ".gradle/gradle.properties", ".nuget/NuGet.Config", ".terraformrc", ".terraform.d/credentials.tfrc.json", ".vault-token", ".s3cfg",
    ".boto", ".databrickscfg", ".snowsql/config", ".kaggle/kaggle.json", ".huggingface/token", ".cache/huggingface/token",
    ".cache/huggingface/stored_tokens", ".mozilla", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge",
    ".config/vivaldi", ".config/opera", ".thunderbird", "Library/Application Support/Google/Chrome", "Library/Application Support/Firefox",
    ".subversion/auth", ".pip/pip.conf", ".config/pip/pip.conf", ".pulumi/credentials.json", ".config/ngrok/ngrok.yml",
    ".ngrok2/ngrok.yml", ".config/scw/config.yaml", ".config/linode-cli", ".config/netlify/config.json", ".local/share/com.vercel.cli/auth.json",
    ".config/.wrangler", ".wrangler/config", ".fly/config.yml", ".config/configstore", ".config/filezilla", ".mc/config.json", ".sbt/.credentials",
    ".ivy2/.credentials", ".local/share/fish/fish_history", ".node_repl_history", ".sqlite_history", ".rediscli_history", ".irb_history", ".lesshst",
    ".claude.json", ".claude/.credentials.json", ".codex/auth.json", ".codex/.credentials.json", ".gemini/oauth_creds.json", ".gemini/google_accounts.json",
    ".qwen/oauth_creds.json", ".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json", ".config/goose/secrets.yaml",
    ".config/cursor/auth.json", ".pi/agent/auth.json", ".bash_history", ".zsh_history", ".python_history", ".psql_history", ".mysql_history",
    ".copilot", ".codeium/config.json", ".cline/data/secrets.json",
    ".config/io.datasette.llm/keys.json", ".config/aichat/config.yaml", ".config/opencode/opencode.json", ".local/share/crush/crush.json",
    ".config/crush/crush.json", ".local/share/amp/secrets.json", ".factory/auth.json", ".iflow/oauth_creds.json", ".augment/session.json", ".mcp-auth",
    ".config/anthropic", ".config/openai",
    ".config/pnpm/rc", ".config/pypoetry/auth.toml", ".condarc", ".local/share/uv/credentials",
    ".local/share/gem/credentials", ".config/composer/auth.json", ".hex/hex.config", ".m2/settings-security.xml", ".jfrog", ".config/helm/registry",
    ".minikube", ".config/argocd", ".argocd", ".circleci/cli.yml", ".sentryclirc", ".supabase/access-token", ".railway/config.json", ".doppler",
    ".config/Bitwarden CLI", ".config/1Password", ".config/age", ".config/exercism/user.json", ".local/share/heroku", ".config/turborepo/config.json",
    ".wgetrc", ".curlrc", ".msmtprc", ".fetchmailrc", ".mbsyncrc", ".offlineimaprc", ".authinfo", ".authinfo.gpg", ".smbcredentials", ".vnc/passwd",
    ".Xauthority", ".ICEauthority", ".local/share/remmina", ".config/Signal", ".config/Slack", ".config/discord", ".local/share/TelegramDesktop", ".purple",
)  # fmt: skip
# Likewise, but in a workspace they are files of a project, which seldom hold keys.
AT_HOME: Final = (
    ".cursor/mcp.json", ".continue/config.json", ".continue/config.yaml", ".aider.conf.yml", ".claude/settings.json", ".claude/settings.local.json",
    ".codex/config.toml", ".gemini/settings.json", ".yarnrc.yml", ".bunfig.toml", ".bundle/config",
)  # fmt: skip
SYSTEM: Final = (
    "/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssl/private", "/etc/security/opasswd",
    "/etc/master.passwd", "/etc/NetworkManager/system-connections", "/etc/wpa_supplicant", "/etc/wireguard", "/etc/openvpn", "/etc/ppp",
    "/etc/ipsec.secrets", "/etc/mysql/debian.cnf", "/etc/rancher", "/etc/kubernetes", "/run/secrets", "/run/credentials", "/var/backups/shadow.bak",
    "/var/backups/gshadow.bak", "/var/lib/kubelet", "/var/lib/sss", "/var/lib/samba/private", "/etc/docker/key.json", "/etc/postfix/sasl_passwd",
    "/etc/exim4/passwd.client", "/etc/letsencrypt/accounts", "/etc/letsencrypt/archive", "/etc/letsencrypt/live", "/var/spool/cron", "/var/lib/systemd/credential.secret",
)  # fmt: skip

_NAMED: Final = "|".join(re.escape(place) for place in HOME)
# Templates of secrets hold none.
_SECRET: Final = re.compile(
    rf"(?:^|/)(?:{_NAMED}|keyrings)(?:/|$)"
    r"|(?:^|/)\.env(?:rc)?(?:[._~-](?!(?:[^/]*[._-])?(?:example|sample|template|dist|defaults?)$)[^/]*)?$"
    r"|(?:^|/)(?!(?:[^/]*[._-])?(?:example|sample|template|dist|defaults?|test)\.env$)[^/]+\.env$"
    r"|(?:^|/)(?:id|[^/]+)_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?$|(?:^|/)(?:client_secret[^/]*|service[-_]account[^/]*)\.json$|(?:^|/)\.?vault[-_]pass[^/]*$"
    r"|(?:^|/)(?:secrets?|credentials?)\.(?:ya?ml|json|toml|env|txt|ini|csv|properties|tfvars)$|(?:^|/)(?:kubeconfig|wallet\.dat|secring\.gpg)$"
    r"|(?:^|/)[^/]+\.(?:kdbx|ppk|p12|p8|pk8|pfx|jks|keystore|keytab|ovpn|kubeconfig|tfstate|tfstate\.backup)$"
    rf"|^(?:{'|'.join(re.escape(place) for place in SYSTEM)}|/etc/krb5\.keytab|/etc/ssh/ssh_host_[^/]*_key)(?:/|$)"
    r"|^/proc/[^/]+/(?:task/[^/]+/)?(?:environ|mem|maps|cwd|root|fd|map_files|auxv)(?:/|$)|^/proc/kcore$"
    r"|^/dev/(?:mem|kmem|port|sd|hd|vd|xvd|nvme|disk|dm-|mapper|md\d|loop|mmcblk)",
    re.IGNORECASE,
)
_SECRET_AT_HOME: Final = re.compile(rf"^/(?:.*/)?(?:{'|'.join(map(re.escape, AT_HOME))})$", re.IGNORECASE)
# Keys by their ending; those that come with packages and tests are nobody's.
_KEY: Final = re.compile(r"\.(?:pem|key)$", re.IGNORECASE)
_NOBODYS: Final = re.compile(
    r"(?:^|/)(?:node_modules|site-packages|dist-packages)/|^(?!/)(?:.*/)?(?:vendor|tests?|__tests__|testdata|fixtures?|examples?|docs?)/"
    r"|^/etc/ssl/(?:certs|cert\.pem)|^/usr/(?:share|lib)/"
)
# Places by which a pattern of a shell is tried; `~` is home.
_TRIED: Final = (*(f"~/{place}" for place in (*HOME, *AT_HOME)), "~/.ssh/id_rsa", "~/.ssh/id_ed25519", "~/.ssh/config", "~/.aws/credentials", "~/.config/gh/hosts.yml",
    "~/.kube/config", "~/.gnupg/x", "~/.env", *SYSTEM, "/proc/self/environ", "/proc/1/environ", "/proc/self/root/etc/shadow", ".env", ".envrc", "id_rsa",
    "credentials.json", "secrets.yaml",
)  # fmt: skip
_PASSED_OVER: Final = frozenset({".git", "node_modules", ".venv", "venv", "target", "dist", "build", "__pycache__"})
LOOKED_AT: Final = 4_000  # names below a folder, nearest first


@lru_cache(maxsize=2**14)  # a wall asks for the same names before every command
def is_secret(path: str, near: str = "") -> bool:
    """Whether a path is a place where keys are kept, or lies in one. `near` is the path as seen from the workspace, if it is in there."""
    near = near or path
    return bool(_SECRET.search(path) or _SECRET_AT_HOME.match(near) or (_KEY.search(path) and not _NOBODYS.search(near)))


def may_be_secret(pattern: str, home: str) -> bool:
    """Whether a shell's pattern could become a place where keys are kept, of those that are usual."""
    return any(fnmatchcase(place.replace("~", home, 1), pattern) for place in _TRIED)


def in_home(home: Path) -> Iterator[Path]:
    """The places of a home and of the system that are there."""
    for path in (*(home / place for place in (*HOME, *AT_HOME)), *map(Path, SYSTEM)):
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
                if is_secret(name := entry.path[len(str(folder)) :], name[1:]):
                    yield Path(entry.path)
                elif entry.name not in _PASSED_OVER and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
