"""What the arguments of the tools of known agents hold, by their names."""

from typing import Final

# Arguments that hold what an edit must find, as the tools of known agents name them.
TARGETS: Final = frozenset("old_string old_str oldText oldString old_text search find original target_text old_content".split())
PATCHES: Final = frozenset("patchText patch diff input".split())
PLACES: Final = frozenset(
    "file_path filePath path absolute_path notebook_path dir_path directory workdir cwd file filename".split()
)
PATTERNS: Final = frozenset("pattern query regex words".split())
BODIES: Final = frozenset(
    "content new_string new_str newText newString new_text replace replacement file_text patchText patch diff".split()
)
# What an agent says of a call, or chooses from a list that its tools give it.
REMARKS: Final = frozenset(
    "description activeForm status priority output_mode format type subagent_type model timeout run_in_background include glob multiline"
    " head_limit offset limit justification explanation".split()
)
COMMANDS: Final = frozenset("command cmd script code keystrokes".split())
