"""LiteLLM's proxy as a process of its own, with the callback in its configuration: `pip install 'litellm[proxy]'`."""

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import Any, Final

import httpx
import openai
import pytest
from framework_work import FILE, RECALLED, work

from tenure.store.store import Store
from tenure.testing.provider import FakeProvider, serve

PROXY: Final = find_spec("litellm_proxy_extras") and which("litellm", path=str(Path(sys.executable).parent))
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(PROXY is None, reason="the proxy is not installed"),
]
KEY: Final = "sk-0123456789abcdefghijklmnopqrstuvwxyz"
READ: Final[Any] = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


def ask(client: openai.OpenAI, history: list[Any], *, streamed: bool) -> Any:
    if not streamed:
        return client.chat.completions.create(model="gpt", messages=history, tools=[READ]).choices[0].message
    with client.chat.completions.stream(model="gpt", messages=history, tools=[READ]) as stream:
        stream.until_done()
        return stream.get_final_completion().choices[0].message


@pytest.mark.parametrize("streamed", [False, True])
def test_the_proxy_keeps_to_the_budget_and_recalls_unseen(streamed: bool, tmp_path: Path) -> None:
    provider = FakeProvider(work(16, recalled=13))
    store = f"sqlite:///{tmp_path}/agent.db"
    (tmp_path / "tenure_callback.py").write_text(
        "from tenure import Budget\nfrom tenure.adapters.litellm import TenureCallback\n"
        f"callback = TenureCallback(store={store!r}, budget=Budget(ceiling=40_000))\n"
    )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with serve(provider.app) as url:
        (tmp_path / "config.yaml").write_text(
            f'model_list: [{{model_name: gpt, litellm_params: {{model: openai/gpt-5.1, api_base: "{url}/v1", api_key: "-"}}}}]\n'
            "litellm_settings: {callbacks: [tenure_callback.callback]}\n"
        )
        command = [str(PROXY), "--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
        environment = {**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            while process.poll() is None:
                try:
                    httpx.get(f"http://127.0.0.1:{port}/health/liveliness")
                    break
                except httpx.HTTPError:
                    time.sleep(0.2)
            history: list[Any] = [{"role": "user", "content": "Look."}]
            with openai.OpenAI(api_key=KEY, base_url=f"http://127.0.0.1:{port}/v1", max_retries=0, timeout=120) as client:
                while True:
                    message = ask(client, history, streamed=streamed)
                    history.append(message.model_dump(exclude_none=True))
                    if not message.tool_calls:
                        break
                    history += [{"role": "tool", "tool_call_id": call.id, "content": FILE} for call in message.tool_calls]
        finally:
            process.terminate()
            process.wait()
    assert [seen.violations for seen in provider.seen] == [()] * 18
    assert "recall" not in str(history)
    assert RECALLED in provider.seen[14].body
    assert len(str(history)) > 1.5 * max(len(seen.body) for seen in provider.seen)
    with Store(store) as kept:
        assert {kept.verify(sheet.id) for sheet in kept.conversations()} == {None}
