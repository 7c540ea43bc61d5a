"""The library's front door: one conversation's window, messages in and requests out."""

from tenure.context.context import Context

__all__ = ["Context"]
