"""The files in deploy/: they parse, and call the gateway by options that it has."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tenure.cli.main import made

DEPLOY = Path(__file__).parents[2] / "deploy"


def options() -> set[str]:
    serve: Any = get_command(made(["serve"])).commands["serve"]  # type: ignore[attr-defined]
    return {option for each in serve.params for option in each.opts}


def called() -> list[str]:
    """What the deployments pass to `tenure serve`."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes/gateway.yaml").read_text()))
    (container,) = manifests[0]["spec"]["template"]["spec"]["containers"]
    return [*compose["services"]["gateway"]["command"], *container["args"]]


def test_every_option_of_a_deployment_is_one_of_the_gateways() -> None:
    names = {each.partition("=")[0] for each in called()}
    assert {"--store", "--tokens", "--host"} <= names
    assert names <= options()


def test_probes_ask_where_the_gateway_answers() -> None:
    text = "".join(path.read_text() for path in DEPLOY.rglob("*") if path.is_file())
    asked = set(re.findall(r"/(?:readyz|healthz|metrics)\b", text))
    gateway = "".join(path.read_text() for path in (DEPLOY.parent / "src/tenure/gateway").glob("*.py"))
    assert asked == {"/readyz", "/healthz", "/metrics"}
    assert all(f'"{path}"' in gateway for path in asked)


def test_an_orchestrator_waits_longer_than_the_gateway_needs_to_end() -> None:
    settle = max(float(each.partition("=")[2]) for each in called() if each.startswith("--settle"))
    manifests = list(yaml.safe_load_all((DEPLOY / "kubernetes/gateway.yaml").read_text()))
    from tenure.cli.serve import DRAIN_S

    assert manifests[0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > settle + DRAIN_S


@pytest.mark.skipif(not shutil.which("haproxy"), reason="HAProxy is not installed")
def test_haproxy_reads_its_configuration() -> None:
    done = subprocess.run(["haproxy", "-c", "-f", DEPLOY / "haproxy.cfg"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
