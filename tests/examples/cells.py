"""Run the code cells of a notebook, `python -m tests.examples.cells FILE`, as Jupyter does without a kernel.

All cells share one namespace and one event loop, and may `await` at their top. What they display is written
into `displayed.json`, one list of kind and text (of bytes: in hexadecimal) each.
"""

import ast
import asyncio
import inspect
import json
import sys
import types
from pathlib import Path
from typing import Any


async def run_cells(cells: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Run the code of the cells in their order and return what they display."""
    shown: list[tuple[str, str]] = []
    # Jupyter with its kernel is two dozen packages; of all of it the notebook uses these three names.
    sys.modules["IPython"] = types.ModuleType("IPython")
    module = sys.modules["IPython.display"] = types.ModuleType("IPython.display")
    module.__dict__.update(
        Markdown=lambda text: ("markdown", text),
        Image=lambda content: ("image", content.hex()),
        display=shown.append,
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        if cell["cell_type"] == "code":
            code = compile("".join(cell["source"]), cell["id"], "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            outcome = eval(code, names)
            if inspect.iscoroutine(outcome):
                await outcome
    return shown


if __name__ == "__main__":
    notebook = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path("displayed.json").write_text(json.dumps(asyncio.run(run_cells(notebook["cells"]))))
