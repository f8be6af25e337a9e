"""Runs code and shell commands that a model wrote in an isolated environment, or not at all."""

from maniple.sandbox.backend import ExecutionResult, OnOutput, SandboxBackend, SandboxSession
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.chromium import find_chromium_isolation
from maniple.sandbox.edit_history import EditHistory, FileOperation, OperationReport
from maniple.sandbox.factory import open_sandbox
from maniple.sandbox.file_groups import FileGroup, group_files
from maniple.sandbox.file_names import clean_file_name, is_cache
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.uploads import StoredUpload, Upload
from maniple.sandbox.workspaces import (
    FileHead,
    TreeEntry,
    UploadStore,
    Workspace,
    WorkspaceListing,
    Workspaces,
)

__all__ = [
    "BubblewrapBackend",
    "EditHistory",
    "ExecutionResult",
    "FileGroup",
    "FileHead",
    "FileOperation",
    "OnOutput",
    "OperationReport",
    "Sandbox",
    "SandboxBackend",
    "SandboxSession",
    "StoredUpload",
    "TreeEntry",
    "Upload",
    "UploadStore",
    "Workspace",
    "WorkspaceListing",
    "Workspaces",
    "clean_file_name",
    "find_chromium_isolation",
    "group_files",
    "is_cache",
    "open_sandbox",
]
