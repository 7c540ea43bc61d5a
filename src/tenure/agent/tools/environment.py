"""What a program that the agent starts knows of the agent's own environment."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from uuid import uuid4

from tenure.agent.admission.git_program import EVERYWHERE, LOOKING, configured, looking
from tenure.agent.tools.child import MARK

# Keys to models, by how their providers and the usual SDKs name them.
_KEYS: Final = re.compile(
    r"(?:ANTHROPIC|CLAUDE(?:_CODE)?|OPENAI|AZURE(?:_OPENAI|_AI)?|CODEX|GEMINI|GOOGLE(?:_AI|_GENERATIVE_AI)?|VERTEX|MISTRAL|CODESTRAL"
    r"|GROQ|DEEPSEEK|XAI|GROK|OPENROUTER|TOGETHER(?:_AI|AI)?|FIREWORKS(?:_AI)?|COHERE|CO|CEREBRAS|PERPLEXITY|PPLX|MOONSHOT|KIMI|ZAI|ZHIPU(?:AI)?"
    r"|GLM|DASHSCOPE|QWEN|MINIMAX|NVIDIA|NIM|SAMBANOVA|DEEPINFRA|HYPERBOLIC|NOVITA|REPLICATE|HF|HUGGINGFACE(?:HUB)?|BEDROCK|AI_GATEWAY"
    r"|LITELLM(?:_MASTER)?|VOYAGE|TENURE)_(?:API_|AUTH_|OAUTH_|BEARER_|ACCESS_)*(?:KEY|TOKEN|SECRET)S?(?:_\d+)?",
    re.IGNORECASE,
)
# A shell would act on them, or they make programs that only look run others, read other files or leave traces.
_UNWANTED: Final = frozenset(
    "BASH_ENV ENV PROMPT_COMMAND SHELLOPTS BASHOPTS PS4 CDPATH OLDPWD GLOBIGNORE IFS BASH_XTRACEFD EXECIGNORE LESSOPEN LESSCLOSE GREP_OPTIONS"
    " RIPGREP_CONFIG_PATH TAR_OPTIONS GIT_EXTERNAL_DIFF POSIXLY_CORRECT JQ_LIBRARY_PATH AWKPATH AWKLIBPATH MAGIC HISTFILE".split()
)
_WITH_HEADERS: Final = re.compile(
    r"(?:ANTHROPIC|OPENAI|OTEL_EXPORTER_OTLP)_(?:CUSTOM_)?HEADERS", re.IGNORECASE
)  # which hold keys as well

# Programs that would wait for a person, page, or draw; and Python, which would hold back what it prints.
_SETTLED: Final[Mapping[str, str]] = {
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "false",
    "EDITOR": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
}
_LONGEST: Final = 8  # characters; a shorter value is not looked for elsewhere


def scrubbed(environment: Mapping[str, str], names: Iterable[str] = ()) -> dict[str, str]:
    """The environment without the keys to models: known by their names, by `names`, or by having the value of one of these."""
    named = {name for name in environment if name in names or _KEYS.fullmatch(name) or _WITH_HEADERS.fullmatch(name)}
    values = {environment[name] for name in environment if name in named and len(environment[name]) > _LONGEST}
    return {
        name: value
        for name, value in environment.items()
        if name not in named and name not in _UNWANTED and not name.startswith("BASH_FUNC_") and value not in values
    }


def for_command(
    environment: Mapping[str, str], names: Iterable[str] = (), temporary: str = "", *, looks: bool = False
) -> dict[str, str]:
    """The environment of one command: scrubbed, settled, and marked so that what it starts can be found.

    In a command that only `looks`, git runs nothing that a repository names.
    """
    mark = ",".join(filter(None, (environment.get(MARK), uuid4().hex)))
    folder = {"TMPDIR": temporary} if temporary else {}
    settled = {**scrubbed(environment, names), **_SETTLED, **folder, MARK: mark}
    return configured(looking(settled), LOOKING) if looks else configured(settled, EVERYWHERE)
