"""A package named matplotlib for sandboxes that have none: just enough of pyplot to draw an empty picture."""

from maniple.workspace import Workspace

DRAW_ONE = "import matplotlib.pyplot as plt\nplt.plot([1, 2]);"

_PYPLOT = r"""
import base64
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_open = {}

class Figure:
    def __init__(self, number):
        self.number = number
        self.padding = b""

    def savefig(self, file, format="png"):
        if isinstance(file, str):
            with open(file, "wb") as opened:
                return self.savefig(opened)
        file.write(PNG + self.padding)

def figure(number=None):
    number = number or len(_open) + 1
    return _open.setdefault(number, Figure(number))

def gcf():
    return figure(max(_open, default=1))

def plot(*points):
    return gcf()

def savefig(file):
    gcf().savefig(file)

def get_fignums():
    return list(_open)

def close(number):
    _open.pop(number, None)

def show():
    raise RuntimeError("there is no screen")
"""


def plant_fake_matplotlib(workspace: Workspace) -> None:
    """Let code in this workspace import it; a real one in the sandbox is hidden by it."""
    workspace.write("matplotlib/__init__.py", b"")
    workspace.write("matplotlib/pyplot.py", _PYPLOT.encode())
