"""Runs code and shell commands that a model wrote in an isolated environment, or not at all."""

from maniple.sandbox.backend import ExecutionResult, OnOutput, SandboxBackend, SandboxSession
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.factory import open_sandbox
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.workspaces import (
    EditHistory,
    FileHead,
    StoredUpload,
    Upload,
    UploadStore,
    Workspace,
    WorkspaceListing,
    Workspaces,
    clean_file_name,
)
from maniple.types import Unavailable

__all__ = [
    "BubblewrapBackend",
    "EditHistory",
    "ExecutionResult",
    "FileHead",
    "OnOutput",
    "Sandbox",
    "SandboxBackend",
    "SandboxSession",
    "StoredUpload",
    "Unavailable",
    "Upload",
    "UploadStore",
    "Workspace",
    "WorkspaceListing",
    "Workspaces",
    "clean_file_name",
    "open_sandbox",
]
