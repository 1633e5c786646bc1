"""The command `gpssl`."""

from ._app import app

__all__ = ["app"]
