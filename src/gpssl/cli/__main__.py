"""`python -m gpssl.cli`, where the command is not on the path."""

from .app import app

app(prog_name="gpssl")
