"""Runs code and shell commands that a model wrote where they can harm nobody, or not at all."""

from maniple.sandbox.backend import Completed, Sandbox
from maniple.sandbox.bubblewrap import BubblewrapSandbox
from maniple.sandbox.probes import open_sandbox
from maniple.sandbox.workspace import FileHead, Files, Workspace, Workspaces
from maniple.types import Unavailable

__all__ = [
    "BubblewrapSandbox",
    "Completed",
    "FileHead",
    "Files",
    "Sandbox",
    "Unavailable",
    "Workspace",
    "Workspaces",
    "open_sandbox",
]
