import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from calling import at_once, called, cut_off_after, here, listening, refused, stopped_after, told, workspace

from tenure.agent.tools.bash import Bash
from tenure.agent.tools.child import scrub
from tenure.agent.workspace import Workspace

BASH = Bash()


def is_alive(pid_file: Path) -> bool:
    """Whether the process that wrote its number there still runs."""
    for _ in range(200):  # its number may be written a moment later, and its end be seen
        with suppress(OSError, ValueError):
            state = Path(f"/proc/{int(pid_file.read_text())}/stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX":
                time.sleep(0.01)
                continue
        return False
    return True


def test_output_and_errors_come_in_order_with_exit_code_and_duration(tmp_path: Path) -> None:
    outcome = called(BASH, workspace(tmp_path), command="echo one; echo two >&2; echo three; exit 3")
    assert outcome.error
    assert outcome.text.startswith("one\ntwo\nthree\n[exit code 3, ")
    assert outcome.text.endswith(" s]")


def test_a_command_runs_in_the_workspace_without_input_or_terminal(ws: Workspace) -> None:
    text = told(
        BASH,
        ws,
        command="pwd; cat; read line || echo no input; test -t 0 || echo no terminal; (: < /dev/tty) 2>/dev/null || echo none",
    )
    assert text.startswith(f"{ws.root}\nno input\nno terminal\nnone\n")


def test_time_runs_out_for_children_that_take_no_notice_of_being_asked_to_end(ws: Workspace) -> None:
    command = "trap '' TERM; (trap '' TERM; echo $BASHPID > child; while :; do sleep 0.05; done) & echo begun; wait"
    text = refused(BASH, here(ws), command=command, timeout_s=0.2)
    assert text.startswith("begun\n[stopped after 0.2 s, with all that it had started; timeout_s can be up to 600")
    assert not is_alive(ws.root / "child")


def test_a_limit_that_is_asked_for_is_held_to_the_most_there_is(tmp_path: Path) -> None:
    place = here(workspace(tmp_path), limits={"command_most_s": 0.1})
    assert "stopped after 0.1 s" in refused(BASH, place, command="sleep 30", timeout_s=500)


def test_time_can_be_handed_in(tmp_path: Path) -> None:
    assert "stopped after 120 s" in refused(BASH, here(workspace(tmp_path), wait=at_once()), command="sleep 30")


def test_what_holds_the_pipe_open_behind_its_command_neither_delays_nor_survives_it(ws: Workspace) -> None:
    text = told(BASH, ws, command="sleep 600 & echo $! > child; echo done", timeout_s=20)
    assert text.startswith("done\n[exit code 0, ")
    assert "what it had left in the background was ended" in text
    assert not is_alive(ws.root / "child")


def test_a_server_in_a_session_of_its_own_may_stay(ws: Workspace) -> None:
    text = told(BASH, ws, command="setsid sh -c 'echo $$ > child; exec sleep 600' > log 2>&1 < /dev/null & sleep 0.1")
    assert "left" not in text
    pid = int((ws.root / "child").read_text())
    os.kill(pid, signal.SIGKILL)  # or it would be gone by itself, and this fails


def test_the_user_stops_it_and_keeps_what_it_had_said(ws: Workspace) -> None:
    outcome = stopped_after(0.2, BASH, here(ws), command="echo $$ > child; echo half; sleep 600")
    assert outcome.error
    assert outcome.text.startswith("half\n[stopped by the user after ")
    assert not is_alive(ws.root / "child")


@pytest.mark.parametrize("moment", [0.0, 0.02, 0.1, 0.25])
def test_a_cancelled_task_leaves_nothing_behind_not_even_what_left_its_group(moment: float, ws: Workspace) -> None:
    command = "trap '' TERM; setsid sh -c 'echo $$ > stray; sleep 600' & echo $$ > child; sleep 600"
    cut_off_after(moment, BASH, here(ws), command=command)
    assert not is_alive(ws.root / "child")
    assert not is_alive(ws.root / "stray")


def test_cancelling_while_the_last_output_is_waited_for_ends_all_too(ws: Workspace) -> None:
    cut_off_after(0.1, BASH, here(ws), command="setsid sh -c 'echo $$ > stray; sleep 600' & sleep 0.05")
    assert not is_alive(ws.root / "stray")


def test_output_is_told_as_it_comes_and_all_of_it(tmp_path: Path) -> None:
    heard, say = listening()
    text = told(BASH, here(workspace(tmp_path), say=say), command="for i in 1 2 3; do echo $i; sleep 0.12; done; printf end")
    assert len(heard) >= 3
    assert "".join(heard) == "1\n2\n3\nend"
    assert text.startswith("1\n2\n3\nend\n[exit code 0")


def test_hundreds_of_megabytes_pass_by_in_bounded_space_and_can_be_read_later(tmp_path: Path, ws: Workspace) -> None:
    heard, say = listening()
    place = here(ws, say=say, limits={"output_bytes": 4_000, "spill_bytes": 100_000}, part=tmp_path / "spills" / "a.part")
    outcome = called(BASH, place, command="seq 1 100000; yes | head -c 60000000; echo last")
    text, spill = outcome.text, outcome.spill
    assert spill is not None
    assert text.startswith("1\n2\n3\n")
    assert " of 60,588,900 bytes; of the output the first 100,000 bytes are kept (the limit is 100,000): recall" in text
    assert (spill.of_size, spill.of_lines) == (60_588_900, 30_100_001)
    assert "\ny\ny\nlast\n[exit code 0" in text
    assert len(text) < 5_000
    assert sum(map(len, heard)) < 1_000_000
    assert (tmp_path / "spills" / spill.sha256).stat().st_size == 100_000


def test_escape_sequences_progress_bars_and_binary_are_harmless(tmp_path: Path) -> None:
    command = r"""printf '\033[31mred\033[0m\033]0;title\007\n'; for i in 1 50 100; do printf '\r%d%%' $i; done; echo; head -c 3000 /dev/urandom"""
    heard, say = listening()
    text = told(BASH, here(workspace(tmp_path), say=say), command=command)
    assert text.startswith("red\n100%\n")
    assert "[binary: " in text
    assert not set(text + "".join(heard)) & set("\x1b\x07\r\x00\x9b")


def test_keys_to_models_stay_with_the_agent_and_others_do_not(tmp_path: Path) -> None:
    environment = {
        **dict.fromkeys(
            ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "MY_KEY"), "sk-secret-1"
        ),
        "COPY_UNDER_ANOTHER_NAME": "sk-secret-1",
        "BASH_ENV": "/nowhere",
        "GITHUB_TOKEN": "for-git",
        "OPENAI_BASE_URL": "http://localhost",
        "PATH": "/usr/bin:/bin",
    }
    place = here(workspace(tmp_path), environment=environment)
    text = told(Bash(keys=frozenset({"MY_KEY"})), place, command="env")
    assert "sk-secret" not in text
    assert "GITHUB_TOKEN=for-git" in text
    assert "OPENAI_BASE_URL=http://localhost" in text
    assert "BASH_ENV" not in text
    assert scrub({"XAI_API_KEY": "x", "AZURE_OPENAI_API_KEY": "y", "HF_TOKEN": "z", "STRIPE_API_KEY": "s"}) == {
        "STRIPE_API_KEY": "s"
    }


def test_temporary_files_have_a_folder_that_stays_from_call_to_call(ws: Workspace) -> None:
    told(BASH, ws, command="echo kept > $TMPDIR/note")
    assert told(BASH, ws, command="cat $TMPDIR/note").startswith("kept\n")


def test_signals_and_commands_that_cannot_be_started_are_said(tmp_path: Path, ws: Workspace) -> None:
    assert refused(BASH, ws, command="kill -SEGV $$").startswith("[killed by SIGSEGV, ")
    assert "cannot be started" in refused(BASH, ws, command="x" * 200_000)
    assert "expected a bash command" in refused(BASH, ws, command="  ")
    assert "found a NUL" in refused(BASH, ws, command="echo\0").replace("command: a NUL", "found a NUL")
    gone = workspace(tmp_path)
    subprocess.run(["rm", "-r", str(gone.root)], check=True)
    assert "cannot be started" in refused(BASH, gone, command="ls")


def test_many_at_once_do_not_mix(tmp_path: Path) -> None:
    import asyncio
    import json

    ws = workspace(tmp_path)

    async def run() -> list[str]:
        calls = [BASH.run(json.dumps({"command": f"echo {n}; sleep 0.05; echo {n}"}), here(ws)) for n in range(20)]
        return [outcome.text.partition("[")[0] for outcome in await asyncio.gather(*calls)]

    assert asyncio.run(run()) == [f"{n}\n{n}\n" for n in range(20)]
