"""What OpenHands tells a model about its workspace, and the knowledge that a keyword called up: version 0's `recall` observations."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

# After the templates of OpenHands, `additional_info.j2` and `microagent_info.j2`; their wording changed a little over the versions.
REPOSITORY: Final = "<REPOSITORY_INFO>\nAt the user's request, repository {} has been cloned to the current working directory {}.\n</REPOSITORY_INFO>"
INSTRUCTIONS: Final = "<REPOSITORY_INSTRUCTIONS>\n{}\n</REPOSITORY_INSTRUCTIONS>"
RUNTIME: Final = "<RUNTIME_INFORMATION>\n{}\n</RUNTIME_INFORMATION>"
HOSTS: Final = (
    "The user has access to the following hosts for accessing a web application, each of which has a corresponding port:\n{}"
)
SECRETS: Final = "<CUSTOM_SECRETS>\nYou have access to the following environment variables\n{}\n</CUSTOM_SECRETS>"
TODAY: Final = "Today's date is {} (UTC)."
CONVERSATION: Final = "<CONVERSATION_INSTRUCTIONS>\n{}\n</CONVERSATION_INSTRUCTIONS>"
LATER: Final = "knowledge"  # the type of a recall that a later message causes
KNOWLEDGE: Final = (
    '<EXTRA_INFO>\nThe following information has been included based on a keyword match for "{}".\n'
    "It may or may not be relevant to the user's request.\n\n{}\n</EXTRA_INFO>"
)


class Knowledge(Struct, frozen=True, gc=False):
    """One micro-agent, or skill."""

    name: str | None = None
    trigger: str | None = None
    content: str | None = None


class Recall(Struct, frozen=True, gc=False):
    """The extras of the observation."""

    recall_type: str | None = None
    repo_name: str | None = None
    repo_directory: str | None = None
    repo_instructions: str | None = None
    runtime_hosts: dict[str, int | str | None] | None = None
    additional_agent_instructions: str | None = None
    date: str | None = None
    custom_secrets_descriptions: dict[str, str | None] | None = None
    conversation_instructions: str | None = None
    microagent_knowledge: list[Knowledge] | None = None

    @property
    def known(self) -> list[Knowledge]:
        """The knowledge, never null."""
        return self.microagent_knowledge or []

    def texts(self, before: set[str]) -> Iterator[str]:
        """What the model reads; later on only knowledge, without what was called up `before`, by name."""
        later = self.recall_type == LATER
        if not later and (context := "\n".join(self._context())):
            yield context
        for one in self.known:
            if one.content and not (later and one.name in before):
                yield KNOWLEDGE.format(one.trigger or "", one.content)

    def _context(self) -> Iterator[str]:
        if self.repo_name or self.repo_directory:
            yield REPOSITORY.format(self.repo_name or "", self.repo_directory or "")
        if self.repo_instructions and self.repo_instructions.strip():
            yield INSTRUCTIONS.format(self.repo_instructions)
        if runtime := "\n".join(self._runtime()):
            yield RUNTIME.format(runtime)
        if self.conversation_instructions:
            yield CONVERSATION.format(self.conversation_instructions)

    def _runtime(self) -> Iterator[str]:
        if self.runtime_hosts:
            yield HOSTS.format("\n".join(f"* {host} (port {port})" for host, port in self.runtime_hosts.items()))
        if self.additional_agent_instructions:
            yield self.additional_agent_instructions
        if secrets := self.custom_secrets_descriptions:
            yield SECRETS.format("\n".join(f"* $**{name}**: {description}" for name, description in secrets.items()))
        if self.date:
            yield TODAY.format(self.date)
