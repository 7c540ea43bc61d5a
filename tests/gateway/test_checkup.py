import stat
from pathlib import Path

from tenure.gateway.checkup import Finding, checkup
from tenure.gateway.home import STORE
from tenure.store.store import Store

SECRET = "sk-0123456789-very-secret"


def found(environment: dict[str, str], home: Path) -> dict[tuple[str, str], Finding]:
    return {(each.area, each.name): each for each in checkup(environment, home, home / "state")}


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_an_agent_is_found_with_its_version_and_one_that_does_not_start_is_wrong(tmp_path: Path) -> None:
    program(tmp_path, "codex", "echo codex-cli 1.2.3")
    program(tmp_path, "pi", "echo no such module >&2; exit 3")
    findings = found({"PATH": str(tmp_path)}, tmp_path)
    assert findings["agents", "codex"].text == f"codex-cli 1.2.3, {tmp_path}/codex"
    assert findings["agents", "pi"].verdict == "wrong"
    assert "exit code 3: no such module" in findings["agents", "pi"].text
    assert findings["agents", "claude"].verdict == "absent"


def test_keys_are_named_and_never_shown(tmp_path: Path) -> None:
    environment = {"ANTHROPIC_API_KEY": SECRET, "OPENAI_BASE_URL": f"https://user:{SECRET}@proxy.example/v1?key={SECRET}"}
    findings = found(environment, tmp_path)
    assert findings["keys", "Anthropic"].text == "ANTHROPIC_API_KEY set"
    assert "proxy.example" in findings["addresses", "OPENAI_BASE_URL"].text
    assert SECRET not in str(findings)


def test_settings_that_would_win_over_the_wrapper_are_wrong(tmp_path: Path) -> None:
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude/settings.json").write_text('{"env": {"ANTHROPIC_BASE_URL": "https://other.example/v1"}}')
    assert found({}, tmp_path)["addresses", "ANTHROPIC_BASE_URL"].verdict == "wrong"
    (tmp_path / ".claude/settings.json").write_text('{"env": [')
    assert ("addresses", "ANTHROPIC_BASE_URL") not in found({}, tmp_path)


def test_a_store_is_opened_for_reading_only_and_others_may_not_look_into_it(tmp_path: Path) -> None:
    path = tmp_path / "state" / STORE
    assert found({}, tmp_path)["store", str(path)].verdict == "absent"
    path.parent.mkdir(mode=0o700)
    Store(f"sqlite:///{path}").close()
    assert "0 conversations" in found({}, tmp_path)["store", str(path)].text
    path.parent.chmod(0o755)
    assert "chmod 700" in found({}, tmp_path)["store", str(path)].text
    path.write_bytes(b"no store at all")
    assert found({}, tmp_path)["store", str(path)].verdict == "wrong"
