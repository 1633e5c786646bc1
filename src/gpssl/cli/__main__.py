"""`python -m gpssl.cli`, where the command is not on the path."""

from ._app import app

app(prog_name="gpssl")
