"""Runs code and shell commands that a model wrote where they can harm nobody, or not at all."""

from maniple.sandbox.backend import Backend, Completed, OnOutput, Session
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.factory import open_sandbox
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.workspaces import (
    FileHead,
    Files,
    History,
    Stored,
    Upload,
    Uploads,
    Workspace,
    Workspaces,
    file_name,
)
from maniple.types import Unavailable

__all__ = [
    "Backend",
    "BubblewrapBackend",
    "Completed",
    "FileHead",
    "Files",
    "History",
    "OnOutput",
    "Sandbox",
    "Session",
    "Stored",
    "Unavailable",
    "Upload",
    "Uploads",
    "Workspace",
    "Workspaces",
    "file_name",
    "open_sandbox",
]
