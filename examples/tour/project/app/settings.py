"""Settings of the application, from a file such as app.ini."""

import configparser

KNOWN = ("name", "folder", "verbose")


def load(text):
    """The settings in a text."""
    parser = configparser.ConfigParser()
    parser.read_string(text)
    section = dict(parser["app"])
    return {key: section[key] for key in KNOWN if key in section}
