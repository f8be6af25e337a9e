"""The model that answers when nothing is configured: a server already here, or our own child process."""

from maniple.llms.embedded.discover import find_local_server
from maniple.llms.embedded.endpoint import Endpoint
from maniple.llms.embedded.fetch import ensure_model_file
from maniple.llms.embedded.progress import Progress, Silent
from maniple.llms.embedded.server import open_embedded

__all__ = ["Endpoint", "Progress", "Silent", "ensure_model_file", "find_local_server", "open_embedded"]
