import re
import textwrap
from pathlib import Path

import anthropic
import pytest

from tenure.testing.provider import FakeProvider, serve
from tenure.testing.script import Call, Reply, Script

ROOT = Path(__file__).parent.parent


def test_the_readmes_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    start = Call(name="delimiter", arguments='{"action":"start","name":"find-login","type":"expl"}')
    provider = FakeProvider(Script(replies=(Reply(text="I look.", calls=(start,)),)))
    monkeypatch.chdir(tmp_path)  # where its agent.db goes
    with serve(provider.app) as url:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "-")
        names: dict[str, object] = {}
        exec(compile(code, "README.md", "exec"), names)
        client = names["client"]
        assert isinstance(client, anthropic.Anthropic)
        client.close()
        names["context"].close()  # type: ignore[attr-defined]
    assert [seen.violations for seen in provider.seen] == [()]
    assert "started expl 'find-login'" in str(names["answers"])


def test_the_ten_lines_are_about_ten_lines() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(code.strip().splitlines()) <= 12


def test_the_python_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for code in re.findall(r"Python:\n\n((?:    .*\n)+)", page.read_text(encoding="utf-8")):
            names: dict[str, object] = {}
            exec(compile(textwrap.dedent(code), str(page), "exec"), names)
            names["context"].close()  # type: ignore[attr-defined]
