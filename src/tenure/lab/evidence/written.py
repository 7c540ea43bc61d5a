"""Pages, figures and rows put into a folder (an edge): each whole or not at all, and nothing that somebody else put there is touched."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

from msgspec.structs import replace

from tenure.errors import StoreError
from tenure.lab.evidence.contents import NAMES, command, figures, index
from tenure.lab.evidence.gathered import Gathered
from tenure.lab.evidence.page import Section, page

MADE: Final = "<!-- made by `tenure evidence`: do not edit -->\n"
INDEX: Final = "README.md"
ROWS_MOST: Final = 1_000_000  # bytes of one file of rows; larger ones are not kept beside the pages


def files_of(found: Gathered, made: Sequence[Section], *, is_whole: bool) -> dict[str, bytes]:
    """What is to be written, by file name; the index only when all sections were made."""
    files: dict[str, bytes] = {}
    for section in made:
        files |= dict(_of_section(section))
    if is_whole:
        files[INDEX] = (MADE + index(found, made)).encode()
    return files


def _of_section(section: Section) -> Iterator[tuple[str, bytes]]:
    if len(section.rows) > ROWS_MOST:
        size = f"The rows that these tables come from take {len(section.rows) / 1e6:.1f} MB and are not kept here."
        section = replace(section, rows=b"", parts=(*section.parts, size))
    yield f"{section.name}.md", (MADE + page(section, command(section.name))).encode()
    for figure in figures(section):
        yield f"{figure.name}.svg", (MADE + figure.svg).encode()
    if section.rows:
        yield f"{section.name}.jsonl", section.rows


def write(folder: Path, files: dict[str, bytes], *, is_whole: bool) -> None:
    """Put them there; with `is_whole`, what an earlier run made and this one did not goes. Raises StoreError when the disk will not have them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, body in files.items():
            _put(folder / name, body)
        for path in _left_over(folder, files) if is_whole else ():
            path.unlink()
    except OSError as error:
        raise StoreError(f"{error.filename or folder}: cannot be written ({error.strerror or error})") from error


def _put(path: Path, body: bytes) -> None:
    with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(body)
            file.flush()
            Path(file.name).chmod(0o644)
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def _left_over(folder: Path, files: dict[str, bytes]) -> Iterator[Path]:
    """Files of ours from an earlier run: pages and figures that say so, and rows that go with a page."""
    for path in sorted(folder.iterdir()):
        if path.name in files:
            continue
        if path.suffix == ".jsonl" and path.stem in NAMES:
            yield path
        elif path.suffix in (".md", ".svg"):
            with suppress(OSError), path.open("rb") as file:
                if file.read(len(MADE.encode())) == MADE.encode():
                    yield path
