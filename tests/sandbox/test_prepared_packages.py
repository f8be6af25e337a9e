"""The packages that the coder was promised, as setup.sh prepares them, inside the real sandbox."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.config import Settings
from maniple.config.settings import FetchSettings, SandboxSettings
from maniple.egress import AddressGuard, EgressRoute
from maniple.sandbox import Sandbox, open_sandbox
from maniple.sandbox.package_environment import find_environment, list_installed_packages
from maniple.workspace import Workspace
from tests.crawler.web import Reply, Site, open_site
from tests.sandbox.wheels import write_wheel

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

ALLOWED = "127.0.0.2"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """As for all tests, but for a whole module: its tests share a server."""
    return "asyncio"


@pytest.fixture(scope="module")
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": Reply("through")}, ALLOWED) as site:
        yield site


@pytest.fixture
async def fitted(site: Site) -> AsyncIterator[Sandbox]:
    """With the prepared packages, and a way to the site alone."""
    guard = AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)))

    async def resolve(host: str, port: int, /) -> str:
        return await guard.resolve(ALLOWED if host == "site.test" else host, port)

    settings = SandboxSettings(
        network="allowlist", allow_hosts=(f"site.test:{site.port}",), timeout_seconds=60
    )
    cache_dir = Settings().cache_dir
    environment = find_environment(settings, cache_dir)
    if environment is None or not environment.is_ready:
        pytest.fail("The tests need the sandbox's packages: run `.venv/bin/maniple doctor --packages`.")
    leads = EgressRoute(resolve, asyncio.open_connection)
    async with open_sandbox(settings, cache_dir=cache_dir, egress=leads) as sandbox:
        yield sandbox


CALCULATIONS = {
    "numpy": ("import numpy; int((numpy.ones((500, 500)) @ numpy.ones((500, 500))).sum())", "125000000"),
    "pandas": ("import pandas; pandas.DataFrame({'a': [1, 2]}).a.sum().item()", "3"),
    "pandas in Excel": (
        "import pandas; pandas.DataFrame({'a': [1, 2]}).to_excel('a.xlsx'); len(pandas.read_excel('a.xlsx'))",
        "2",
    ),
    "pandas in Markdown": ("import pandas; pandas.DataFrame({'a': [1]}).to_markdown()[:1]", "'|'"),
    "scipy and statsmodels": (
        "import statsmodels.api as s, scipy.stats\ns.OLS([1, 2, 3], [[1], [2], [3]]).fit().params.round(2)",
        "array([1.])",
    ),
    "scikit-learn": (
        "from sklearn.cluster import KMeans\nlen(set(KMeans(2).fit([[1.0], [1.1], [9.0]]).labels_))",
        "2",
    ),
    "python-docx": ("import docx; docx.Document().save('a.docx'); docx.Document('a.docx').paragraphs", "[]"),
    "pypdf": ("import pypdf; len(pypdf.PdfWriter().pages)", "0"),
    "setuptools after distutils": ("import distutils.core, setuptools; setuptools.__name__", "'setuptools'"),
    "pytest": ("import pytest; pytest.approx(1) == 1.0000001", "True"),
    "yfinance": ("import yfinance; yfinance.Ticker('MSFT').ticker", "'MSFT'"),
    "beautifulsoup4": ("from bs4 import BeautifulSoup; BeautifulSoup('<p>x', 'lxml').p.text", "'x'"),
    "pillow": ("from PIL import Image; Image.new('RGB', (2, 2)).size", "(2, 2)"),
}


async def test_what_the_coder_was_promised_works(
    fitted: Sandbox, workspace: Workspace, subtests: pytest.Subtests
) -> None:
    for name, (code, value) in CALCULATIONS.items():
        with subtests.test(name):
            completed = await fitted.run_python(code, key="t", workspace=workspace)
            assert completed.value == value, completed.text()
            assert completed.stderr == ""


@pytest.mark.slow
async def test_what_matplotlib_and_seaborn_draw_is_retained(fitted: Sandbox, workspace: Workspace) -> None:
    code = (
        "import matplotlib.pyplot as p, seaborn; seaborn.lineplot(x=[1, 2], y=[2, 1]); p.title('ü'); p.show()"
    )
    completed = await fitted.run_python(code, key="t", workspace=workspace)
    assert completed.stderr == "", "no warning of fonts or of folders that cannot be written"
    assert len(completed.images) == 1
    assert workspace.read(completed.images[0], 8).content == b"\x89PNG\r\n\x1a\n"


async def test_matplotlib_finds_its_list_of_fonts(fitted: Sandbox, workspace: Workspace) -> None:
    environment = find_environment(SandboxSettings(), Settings().cache_dir)
    assert environment is not None
    assert environment.font_list(), "made by `maniple doctor`"
    code = "import logging; logging.basicConfig(level='INFO'); import matplotlib.font_manager"
    completed = await fitted.run_python(code, key="t", workspace=workspace)
    assert "generated new fontManager" not in completed.text()


WAYS = {
    "requests": "import requests; requests.get('http://{place}/').text",
    "curl_cffi, which yfinance uses": "import curl_cffi; curl_cffi.get('http://{place}/').text",
    "pandas": "import pandas; pandas.read_csv('http://{place}/').columns[0]",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_they_reach_a_named_host(way: str, fitted: Sandbox, site: Site, workspace: Workspace) -> None:
    code = way.format(place=f"site.test:{site.port}")
    completed = await fitted.run_python(code, key="t", workspace=workspace)
    assert completed.value == "'through'", completed.text()


async def test_pip_reaches_an_allowed_index(fitted: Sandbox, site: Site, workspace: Workspace) -> None:
    index = f"http://site.test:{site.port}/simple"
    command = f"pip download --retries 0 --index-url {index} --trusted-host site.test nothing-there"
    completed = await fitted.run_bash(command, key="t", workspace=workspace)
    assert completed.exit_code == 1
    assert ("GET", "/simple/nothing-there/") in [(method, path) for method, path, _ in site.requests]


@pytest.mark.slow
async def test_its_packages_are_reported_by_name_and_version(fitted: Sandbox, workspace: Workspace) -> None:
    told = dict(one.split(" ") for one in list_installed_packages(SandboxSettings(), Settings().cache_dir))
    code = "import numpy, pandas, yfinance; [m.__version__ for m in (numpy, pandas, yfinance)]"
    completed = await fitted.run_python(code, key="t", workspace=workspace)
    assert completed.value == repr([told[name] for name in ("numpy", "pandas", "yfinance")])


async def test_what_pip_installs_is_there_at_once_and_ends_with_the_session(
    fitted: Sandbox, site: Site, workspace: Workspace, tmp_path: Path
) -> None:
    wheel = write_wheel(tmp_path, "tiny")
    site.pages["/simple/tiny/"] = Reply(f'<a href="/{wheel.name}">{wheel.name}</a>')
    site.pages[f"/{wheel.name}"] = Reply(wheel.read_bytes(), content_type="application/zip")
    index = f"--index-url http://site.test:{site.port}/simple --trusted-host site.test"
    absent = await fitted.run_python("import tiny", key="t", workspace=workspace)
    assert "No module named 'tiny'" in absent.stderr
    installed = await fitted.run_bash(f"pip install {index} tiny", key="t", workspace=workspace)
    assert "Successfully installed tiny-1.0" in installed.stdout, installed.text()
    there = await fitted.run_python("import tiny; tiny.VERSION", key="t", workspace=workspace)
    assert there.value == "'1.0'", there.text()
    beside = await fitted.run_bash("python -c 'import tiny; tiny.main()'", key="t", workspace=workspace)
    assert beside.stdout == "tiny /opt/python/bin/python\n", beside.text()
    assert workspace.files(10) == []


@pytest.mark.parametrize("label", ["增长率（百分比）", "日本語の見出し", "Größe − 5"])
async def test_labels_of_charts_are_drawn_in_any_script_that_a_font_has(
    fitted: Sandbox, workspace: Workspace, label: str
) -> None:
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        f"import matplotlib.pyplot as plt\nplt.plot([1, -2])\nplt.title({label!r})\nplt.xlabel('share')\n"
        "plt.savefig('chart.png')"
    )
    completed = await fitted.run_python(code, key="t", workspace=workspace)
    assert (completed.exit_code, completed.stderr) == (0, ""), "a missing glyph is a warning"


@pytest.mark.slow
@pytest.mark.parametrize(
    "setting",
    [
        "plt.rcParams['font.family'] = 'SimHei'",
        "plt.rcParams['font.sans-serif'] = ['Microsoft YaHei', 'SimHei']",
        "plt.rc('font', family=['Arial Unicode MS', 'serif'])",
        "import seaborn; seaborn.set_theme(style='whitegrid')",
        "plt.style.use('ggplot'); plt.rcdefaults()",
        "plt.rcParams['font.monospace'] = ['Consolas']; plt.rcParams['font.family'] = 'monospace'",
    ],
)
async def test_labels_are_drawn_when_the_code_names_a_font_that_lacks_them_or_is_missing(
    fitted: Sandbox, workspace: Workspace, setting: str
) -> None:
    code = (
        "import warnings; warnings.simplefilter('error')\n"
        f"import matplotlib.pyplot as plt\n{setting}\nplt.plot([1, 2])\n"
        "plt.title('增长率 10 %', weight='bold')\n"
        "plt.savefig('chart.png'); plt.savefig('chart.svg')"
    )
    completed = await fitted.run_python(code, key="t", workspace=workspace)
    assert (completed.exit_code, completed.stderr) == (0, ""), "a missing glyph is a warning"
