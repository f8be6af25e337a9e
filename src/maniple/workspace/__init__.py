"""The files of each thread: its workspace, uploads and mirrors, and the history that undoes changes.

The code of the thread can write to the workspace, so everything in it is opened as untrusted.
"""

from maniple.workspace.edit_history import EditHistory
from maniple.workspace.file_groups import FileGroup, group_files
from maniple.workspace.file_names import clean_file_name, is_cache
from maniple.workspace.files import FileHead, TreeEntry, Workspace
from maniple.workspace.operations import FileOperation, OperationReport
from maniple.workspace.uploads import StoredUpload, Upload, UploadStore
from maniple.workspace.workspaces import WorkspaceListing, Workspaces

__all__ = [
    "EditHistory",
    "FileGroup",
    "FileHead",
    "FileOperation",
    "OperationReport",
    "StoredUpload",
    "TreeEntry",
    "Upload",
    "UploadStore",
    "Workspace",
    "WorkspaceListing",
    "Workspaces",
    "clean_file_name",
    "group_files",
    "is_cache",
]
