"""The models that options of commands name: a provider's, the answers of a batch's file, or what stands in for one."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.console import Console

from tenure.cli import words
from tenure.errors import InputError

if TYPE_CHECKING:  # wanted only by those who name one
    from tenure.models.question import Model

STAND_IN: Final = "stand-in"  # where no model is at hand
BATCH: Final = "batch:"
KINDS: Final = f"{STAND_IN}, openai:NAME, anthropic:NAME or {BATCH}[MODEL@]FILE"


def model_for(option: str, name: str, stand_in: "Model") -> "Model":
    """The model of that name. Raises InputError for another name, ModelError when there is no key."""
    if name == STAND_IN:
        return stand_in
    if name.startswith(BATCH):
        from tenure.models.batch import batch_named

        return batch_named(name)
    from tenure.models.model import model_named

    if ":" not in name:
        raise InputError(option, repr(name), KINDS)
    return model_named(name)


@contextmanager
def answering(console: Console, *models: "Model | None") -> Generator[None]:
    """Have models answer; at the end the questions that a batch's file did not answer are written, and where they are is said."""
    from tenure.models.batch import BatchModel

    batches = [model for model in models if isinstance(model, BatchModel)]
    for batch in batches:
        if batch.unknown:
            console.print(
                f"{words.plain(str(batch.path))}: {words.several(batch.unknown, 'line')} hold no answer", style="yellow"
            )
    yield
    for batch in batches:
        batch.close()
        if batch.waiting:
            count = words.several(len(batch.waiting), "question")
            console.print(f"{count} without an answer: {words.plain(str(batch.questions))}", style="yellow")
