"""Reports: queries over events, written by Jinja2 templates and drawn by Vega-Lite. Nothing here knows the engine or what is measured."""
