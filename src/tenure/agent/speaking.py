"""From a chosen model to a speaker (an edge). Nothing is loaded that is not spoken with."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from tenure.agent.available import Unusable
from tenure.agent.catalogue import Chosen, is_scripted, script_path
from tenure.agent.keys import configuration_folder, has_other_way, key_for, sought
from tenure.apis import APIS
from tenure.extras import NotInstalled, is_installed
from tenure.models.speaker import SdkSpeaker, Speaker


def speaker_of(
    choice: Chosen,
    *,
    folder: Path,
    environment: Mapping[str, str],
    home: Path,
    done: int,
    seconds: Callable[[], float],
    wait: Callable[[float], Awaitable[None]],
) -> tuple[Chosen, Speaker]:
    """Who speaks for a model, and the model with what only that one knows. `done` replies of a script were heard before.

    Raises Unusable without a key, NotInstalled without the SDK, InputError for a script or a key file that cannot be read.
    """
    if not is_scripted(choice.spec):
        configuration = configuration_folder(environment, home)
        sdk = APIS[choice.api].speech.sdk
        if not is_installed(sdk):
            raise NotInstalled(sdk)
        key = key_for(choice, environment, configuration)
        keys = sought(choice, configuration)
        if key is None and not has_other_way(choice, environment, home):
            raise Unusable(f"there is no key for {choice.spec}: {keys}")
        return choice, SdkSpeaker(choice.name, choice.api, base_url=choice.base_url or None, api_key=key, keys=keys)
    from tenure.models.scripted import ScriptedSpeaker, read_script

    script = read_script(script_path(choice, folder))
    speaker = ScriptedSpeaker(script, done=done, now=seconds, wait=wait)
    return replace(choice, name=speaker.name, api=speaker.dialect), speaker
