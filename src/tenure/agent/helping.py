"""A model that answers questions, the session's own or another: for briefs and titles (an edge)."""

from threading import Event

from tenure.agent.catalogue import Chosen, chosen, family_of, is_scripted, url_elsewhere
from tenure.agent.keys import configuration_folder, key_for
from tenure.agent.opening import Parts
from tenure.agent.speaking import speaker_of
from tenure.models.model import SpeakerModel, model_named
from tenure.models.question import Answer, Cancel, Model, Question


def helper_of(parts: Parts) -> Model:
    """The session's own model, as one that takes questions. Raises InputError or ModelError when there is none."""
    if is_scripted(parts.choice.spec) or parts.world.speaker is not None:
        return SpeakerModel(parts.speaker)
    return _model(parts.choice, parts)


def helper_named(parts: Parts, spec: str) -> Model:
    """Another model, named as `--model` takes it. Raises InputError or ModelError when there is none."""
    settings, world = parts.settings, parts.world
    same = family_of(spec.partition(":")[0]) == parts.choice.family  # then it is where the session's own model is
    choice = chosen(spec, base_url=parts.choice.base_url if same else url_elsewhere(spec, world.environment))
    if world.speaker is not None:
        return SpeakerModel(world.speaker(choice))
    if is_scripted(spec):
        return SpeakerModel(
            speaker_of(
                choice,
                folder=settings.folder,
                environment=world.environment,
                home=world.home,
                done=0,
                seconds=world.seconds,
                wait=world.wait,
            )[1]
        )
    return _model(choice, parts)


def _model(choice: Chosen, parts: Parts) -> Model:
    world = parts.world
    key = key_for(choice, world.environment, configuration_folder(world.environment, world.home))
    return model_named(f"{choice.api}:{choice.name}", base_url=choice.base_url or None, api_key=key, provider=choice.provider)


def stoppable(helper: Model, stop: Event) -> Model:
    """The same model; every question ends when `stop` is set."""

    def stopped(question: Question, *, cancel: Cancel | None = None) -> Answer:  # noqa: ARG001 - there is one who stops it
        return helper(question, cancel=stop)

    return stopped
