"""The model that is used if none is configured: a local server that already runs, or a child process."""

from maniple.llms.embedded.discovery import LocalEndpoint, find_local_server
from maniple.llms.embedded.model_file import Progress, SilentProgress, ensure_model_file
from maniple.llms.embedded.server import open_embedded

__all__ = [
    "LocalEndpoint",
    "Progress",
    "SilentProgress",
    "ensure_model_file",
    "find_local_server",
    "open_embedded",
]
