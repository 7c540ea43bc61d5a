"""Options that several commands share: one meaning for each, wherever it is given."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Final

import typer

from tenure.errors import StoreError
from tenure.lifecycle.budget import Budget, parse_tokens

DEFAULT_CEILING: Final = "80k"  # CWL paper, section 5: where the cost fell and accuracy did not
STDOUT: Final = "-"

Target = Annotated[str, typer.Option(help="Act above this when it pays, such as 80k or 50%.")]
Ceiling = Annotated[str, typer.Option(help="Never send more than this; 80k unless --target is given.")]
Floor = Annotated[str, typer.Option(help="How far down one batch goes; 60% of the limit by default.")]
Window = Annotated[str, typer.Option(help="The model's limit less its output reserve; 180k by default.")]
PricedAs = Annotated[str, typer.Option(help="Price and count as this model; by default the one in the log.")]
HeadTokens = Annotated[str, typer.Option(help="Tokens of system prompt and tools, which most logs leave out.")]


def budget_of(target: str, ceiling: str, floor: str, window: str, *, bounded: bool = True) -> Budget:
    """The budget of the options; without any limit, the default ceiling if it is to be `bounded`. Raises InputError for nonsense."""
    limit = ceiling or ("" if target or not bounded else DEFAULT_CEILING)
    return Budget.parse(target=target or None, ceiling=limit or None, floor=floor or None, window=window or None)


def head_of(tokens: str) -> int:
    """Raises InputError for what is no number of tokens."""
    return 0 if tokens.strip() == "0" else parse_tokens("--head-tokens", tokens, of=None)


@contextmanager
def output(path: str) -> Generator[IO[bytes] | None]:
    """The file that was asked for, `-` for standard output; a disk that is full is said, and what was written before stays."""
    if not path:
        yield None
    elif path == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    else:
        try:
            with Path(path).open("wb") as file:
                yield file
        except BrokenPipeError:
            raise
        except OSError as error:
            raise StoreError(f"{path}: cannot be written ({error.strerror or error})") from error
