"""The command `gpssl`."""

from .app import app

__all__ = ["app"]
