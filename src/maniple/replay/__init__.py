"""A run as one HTML file that plays it without a server."""

from maniple.replay.file import Replay, build_replay

__all__ = ["Replay", "build_replay"]
