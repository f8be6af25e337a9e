"""A run as one HTML file that plays it, anywhere and without a server."""

from maniple.replay.file import Replay, replay_of

__all__ = ["Replay", "replay_of"]
