"""`python -m gpssl.cli`, where the command is not on the path."""

from . import app

app(prog_name="gpssl")
