"""Figures of matplotlib are stored in the workspace."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from platformdirs import user_cache_path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import Sandbox, open_sandbox
from maniple.sandbox.package_environment import find_environment
from maniple.workspace import Workspace
from tests.sandbox.figures import DRAW_ONE, plant_fake_matplotlib

pytestmark = pytest.mark.anyio

_PREPARED = find_environment(SandboxSettings(), user_cache_path("maniple", appauthor=False))


@pytest.fixture(autouse=True)
def fake_matplotlib(workspace: Workspace, request: pytest.FixtureRequest) -> None:
    if "real" not in request.node.name:
        plant_fake_matplotlib(workspace)


def _figures(workspace: Workspace) -> list[str]:
    return [path for path, _ in workspace.files(100) if path.endswith(".png")]


def _pictures_in(folder: Path) -> list[Path]:
    return list(folder.glob("*.png"))


async def test_a_figure_that_is_open_at_the_end_of_a_call_is_retained(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    completed = await sandbox.run_python(DRAW_ONE, key="t", workspace=workspace)
    assert completed.images == ("figures/figure-1.png",)
    assert workspace.read("figures/figure-1.png", 4).content == b"\x89PNG"


async def test_a_figure_is_stored_once_and_never_replaces_another(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    workspace.write("figures/figure-2.png", b"the user's own")
    images = [
        (await sandbox.run_python(code, key="t", workspace=workspace)).images
        for code in (DRAW_ONE, "1", DRAW_ONE)
    ]
    assert images == [("figures/figure-1.png",), (), ("figures/figure-3.png",)]
    assert workspace.read("figures/figure-2.png", 20).content == b"the user's own"


async def test_showing_keeps_a_figure_and_the_next_begins_empty(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    code = f"{DRAW_ONE}\nplt.show()\nleft = plt.get_fignums()\nplt.plot([1])\nplt.show()\nleft"
    completed = await sandbox.run_python(code, key="t", workspace=workspace)
    assert (completed.images, completed.value) == (("figures/figure-1.png", "figures/figure-2.png"), "[]")


async def test_saving_in_a_later_call_writes_the_figure_that_was_drawn_last(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    drawing = (
        "import matplotlib.pyplot as plt\nplt.figure(1).padding = b'first'\nplt.figure(2).padding = b'last'"
    )
    await sandbox.run_python(drawing, key="t", workspace=workspace)
    saved = await sandbox.run_python("plt.savefig('again.png')", key="t", workspace=workspace)
    assert (saved.exit_code, saved.images) == (0, ()), "no empty figure beside it"
    assert workspace.read("again.png", 1000).content.endswith(b"last")
    code = "plt.plot([1]).padding = b'newer'\nplt.savefig('new.png')"
    await sandbox.run_python(code, key="t", workspace=workspace)
    assert workspace.read("new.png", 1000).content.endswith(b"newer")


async def test_figures_of_a_failed_call_are_stored(sandbox: Sandbox, workspace: Workspace) -> None:
    failed = await sandbox.run_python(f"{DRAW_ONE}\n1 / 0", key="t", workspace=workspace)
    assert failed.exit_code == 1
    assert failed.images == ("figures/figure-1.png",)


async def test_a_figure_that_cannot_be_drawn_is_reported_once_and_changes_no_result(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    drawing = "import matplotlib.pyplot as plt\nplt.figure(1).padding = 'no bytes'\nplt.figure(2)\n"
    completed = await sandbox.run_python(f"{drawing}6 * 7", key="t", workspace=workspace)
    assert (completed.exit_code, completed.value) == (0, "42")
    assert completed.stderr.count("not kept: TypeError: ") == 1
    assert completed.images == ("figures/figure-1.png",), "the other one is kept"
    failed = await sandbox.run_python(f"{drawing}1 / 0", key="t", workspace=workspace)
    assert failed.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"
    after = await sandbox.run_python("1", key="t", workspace=workspace)
    assert (after.exit_code, after.value, after.stderr, after.images) == (0, "1", "", ())


async def test_a_file_in_the_place_of_the_folder_of_figures_costs_the_figures_only(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    workspace.write("figures", b"a file")
    completed = await sandbox.run_python(f"{DRAW_ONE}\n1", key="t", workspace=workspace)
    assert (completed.exit_code, completed.value, completed.images) == (0, "1", ())
    assert "not kept: FileExistsError" in completed.stderr
    assert (await sandbox.run_python("2", key="t", workspace=workspace)).stderr == ""


async def test_too_many_figures_and_too_large_ones_are_left_out_with_words(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    code = "import matplotlib.pyplot as plt\nfor n in range(1, 15): plt.figure(n)"
    completed = await sandbox.run_python(code, key="t", workspace=workspace)
    assert len(completed.images) == 10
    assert "only the first 10 figures" in completed.stderr
    code = "plt.figure(1).padding = bytes(6_000_000)"
    completed = await sandbox.run_python(code, key="t", workspace=workspace)
    assert completed.images == ()
    assert "draw it smaller" in completed.stderr
    assert len(_figures(workspace)) == 10


async def test_a_folder_of_figures_that_leads_elsewhere_is_the_codes_own_loss(
    sandbox: Sandbox, workspace: Workspace, tmp_path: Path
) -> None:
    await sandbox.run_bash(f"ln -s {tmp_path} figures", key="t", workspace=workspace)
    completed = await sandbox.run_python(DRAW_ONE, key="t", workspace=workspace)
    assert "not kept: FileExistsError" in completed.stderr
    assert _figures(workspace) == []
    assert _pictures_in(tmp_path) == []


@pytest.mark.skipif(
    _PREPARED is None or not _PREPARED.is_ready, reason="the packages are prepared by `maniple doctor`"
)
async def test_a_real_figure_is_drawn_shown_and_stored(workspace: Workspace) -> None:
    cache_dir = user_cache_path("maniple", appauthor=False)
    async with open_sandbox(SandboxSettings(), cache_dir=cache_dir) as sandbox:
        code = """
import matplotlib.pyplot as plt
plt.plot([1, 4, 9])
plt.show()
fig, axes = plt.subplots(2)
plt.title("second")
"""
        completed = await sandbox.run_python(code, key="t", workspace=workspace)
        await sandbox.run_python("plt.savefig('again.png', format='png')", key="t", workspace=workspace)
    assert completed.images == ("figures/figure-1.png", "figures/figure-2.png")
    assert completed.stderr == ""
    kept = workspace.read("figures/figure-2.png", 1_000_000).content
    assert kept.startswith(b"\x89PNG")
    assert workspace.read("again.png", 1_000_000).content == kept


@pytest.fixture
async def prepared() -> AsyncIterator[Sandbox]:
    cache_dir = user_cache_path("maniple", appauthor=False)
    async with open_sandbox(SandboxSettings(), cache_dir=cache_dir) as sandbox:
        yield sandbox


REAL = "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots()\naxes.plot([1, 3, 2])\n"


@pytest.mark.skipif(_PREPARED is None or not _PREPARED.is_ready, reason="no packages are prepared")
@pytest.mark.parametrize(
    ("code", "pictures"),
    [
        ("plt.savefig('a.png', dpi=200)\nplt.show()", ("a.png",)),
        ("figure.savefig('out.jpg', bbox_inches='tight')", ("out.jpg",)),
        ("plt.show()\nplt.savefig('a.png', dpi=50)", ("a.png",)),
        ("figure.savefig('a.png')\naxes.set_title('more')\nplt.show()", ("figures/figure-1.png",)),
        (
            "figure.savefig('a.png')\nother, _ = plt.subplots()\nother.savefig('a.png')\nplt.show()",
            ("figures/figure-1.png", "a.png"),
        ),
        ("figure.savefig('a.svg')", ("figures/figure-1.png",)),
        ("figure.savefig('a.png')\nimport os; os.remove('a.png')", ("figures/figure-1.png",)),
    ],
)
async def test_a_real_figure_that_is_saved_and_shown_is_one_picture(
    prepared: Sandbox, workspace: Workspace, code: str, pictures: tuple[str, ...]
) -> None:
    completed = await prepared.run_python(REAL + code, key="t", workspace=workspace)
    assert (completed.images, completed.stderr) == (pictures, "")
    drawn = [path for path in _figures(workspace) if path.startswith("figures/")]
    assert drawn == [path for path in pictures if path.startswith("figures/")]


@pytest.mark.skipif(_PREPARED is None or not _PREPARED.is_ready, reason="no packages are prepared")
async def test_a_real_figure_that_a_later_call_saves_larger_is_still_one_item(
    prepared: Sandbox, workspace: Workspace
) -> None:
    await prepared.run_python(REAL, key="t", workspace=workspace)
    later = await prepared.run_python("plt.savefig('large.png', dpi=300)", key="t", workspace=workspace)
    assert later.stderr == ""
    assert _figures(workspace) == ["figures/figure-1.png", "large.png"]
    contents = {workspace.read(path, 10**7).content for path in _figures(workspace)}
    assert len(contents) == 1, "equal files are one item"


_DRAWN = r"""
class Drawn:
    def __init__(self, content): self.content = content
    def _repr_png_(self): return self.content
    def __repr__(self): return "Drawn"
"""


@pytest.mark.parametrize(
    ("ending", "pictures"),
    [
        (r"Drawn(b'\x89PNG\r\n\x1a\n and more')", ("figures/figure-1.png",)),
        (r"Drawn(b'\x89PNG\r\n\x1a\n and more');", ()),
        ("Drawn(b'no picture')", ()),
        ("Drawn(None)", ()),
        ("Drawn", ()),
        (r"Drawn(b'\x89PNG\r\n\x1a\n' + bytes(6_000_000))", ()),
    ],
    ids=["shown", "hidden by ;", "no PNG", "nothing", "a class", "too large"],
)
async def test_what_shows_itself_in_notebooks_is_a_figure_as_the_last_expression(
    sandbox: Sandbox, workspace: Workspace, ending: str, pictures: tuple[str, ...]
) -> None:
    completed = await sandbox.run_python(f"{_DRAWN}\n{ending}", key="t", workspace=workspace)
    assert (completed.exit_code, completed.images) == (0, pictures)


async def test_a_picture_that_cannot_be_drawn_leaves_the_value_and_the_reason(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    drawing = "    def _repr_png_(self): raise OSError('no ink')\n    def __repr__(self): return 'Bad'\n"
    code = f"class Bad:\n{drawing}\nBad()"
    completed = await sandbox.run_python(code, key="t", workspace=workspace)
    assert (completed.exit_code, completed.images, completed.value) == (0, (), "Bad")
    assert "no ink" in completed.stderr


_BARE = (
    "from matplotlib.figure import Figure\nfigure = Figure()\naxes = figure.subplots()\naxes.plot([1, 2])\n"
)


@pytest.mark.skipif(_PREPARED is None or not _PREPARED.is_ready, reason="no packages are prepared")
@pytest.mark.parametrize(
    ("code", "pictures"),
    [
        ("from PIL import Image\nImage.new('RGB', (9, 9))", 1),
        ("from PIL import Image\nImage.new('CMYK', (9, 9))", 1),
        ("from PIL import Image\nImage.new('RGB', (9_000, 9_000))", 1),
        (f"{_BARE}figure", 1),
        (f"{_BARE}axes", 1),
        (f"{REAL}figure", 1),
        (f"{REAL}plt.show()\nfigure", 1),
        (f"{REAL}import pandas as pd\npd.Series([1, 2]).plot()", 1),
    ],
)
async def test_a_real_picture_or_figure_as_the_last_expression_is_shown_once(
    prepared: Sandbox, workspace: Workspace, code: str, pictures: int
) -> None:
    completed = await prepared.run_python(code, key="t", workspace=workspace)
    assert completed.exit_code == 0, completed.stderr
    assert len(completed.images) == len(_figures(workspace)) == pictures
