"""That this file is here puts the folder on the path: tests below it find `replay_reader` too."""
