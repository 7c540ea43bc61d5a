from pathlib import Path

import pytest

from chats import chat_file, exchange
from tenure.cli.main import main


def session_file(path: Path) -> str:
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for n in range(4):
        text = "\n".join(f"line {line} of file {n}" for line in range(400)) + f"\ndef verify_token_{n}(x):"
        messages += exchange(str(n), "read", {"path": f"src/{n}.py"}, text)
    return str(chat_file(path, messages))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--words", "verifyToken_2"], " line 401: def verify_token_2(x):"),
        (["--pattern", r"^def \w+_3"], " line 401: def verify_token_3(x):"),
        (["--path", "src/1.py"], "read:2@"),
        (["read:1", "--words", "verify"], "read:1@"),
        (["--path", "src/1.py", "--pattern", "^def"], "def verify_token_1"),
        (["read:1, read:2", "--lines", "1"], "line 0 of file 1"),
        (["read:1", "--cap", "1k"], "Go on with: recall handle="),
    ],
)
def test_what_is_asked_for_is_printed(options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recall", session_file(tmp_path / "s.json"), *options]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--pattern", "("], "is no regular expression"),
        (["--words", "unheard"], "nothing in the record matches"),
        (["read:1", "--cap", "0"], "--cap"),
        (["--words", "x", "--raw"], "a handle alone"),
        (["--words", "x", "--lines", "1"], "lines beside a handle"),
        ([], "--words, --path or --pattern"),
    ],
)
def test_what_cannot_be_done_is_a_sentence(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["recall", session_file(tmp_path / "s.json"), *options]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
