"""Reports as LibreOffice shows them, on a machine that has it."""

import io
import shutil
import subprocess
import unicodedata
from pathlib import Path

import pypdf
import pytest

from maniple.report_files.document import lay_out_report
from maniple.report_files.slides import render_pptx
from maniple.report_files.word import render_docx
from tests.report_files.samples import TEA, TEA_IN_CHINESE, report

_OFFICE = shutil.which("soffice")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(_OFFICE is None, reason="LibreOffice is not installed (libreoffice-writer-nogui)"),
]
_COLUMNS = range(16)
_WIDE = f"""# Wide

Before it[^a].

| {" | ".join(f"internationalization-{one}" for one in _COLUMNS)} |
|{"---|" * len(_COLUMNS)}
| {" | ".join(f"interfinionalization-{one}" for one in _COLUMNS)} |

- [x] finished

After it.

[^a]: What the note says.
"""
_RENDER = {"docx": render_docx, "pptx": render_pptx}


def shown(markdown: str, kind: str, folder: Path) -> str:
    """The text of the report's pages after LibreOffice has laid it out, without blanks."""
    file = folder / f"report.{kind}"
    file.write_bytes(_RENDER[kind](lay_out_report(report(markdown))))
    profile = f"-env:UserInstallation={(folder / 'profile').as_uri()}"
    command = [str(_OFFICE), profile, "--headless", "--convert-to", "pdf", "--outdir", str(folder), str(file)]
    subprocess.run(command, check=True, timeout=240, capture_output=True)
    pages = pypdf.PdfReader(io.BytesIO((folder / "report.pdf").read_bytes())).pages
    text = unicodedata.normalize("NFKC", "".join(page.extract_text() for page in pages))
    return "".join(text.split())


@pytest.mark.parametrize("kind", _RENDER)
def test_every_cell_of_a_wide_table_is_shown(kind: str, tmp_path: Path):
    text = shown(_WIDE, kind, tmp_path)
    for at in _COLUMNS:
        assert f"internationalization-{at}" in text
        assert f"interfinionalization-{at}" in text
    assert text.index("Beforeit") < text.index("internationalization-0") < text.index("Afterit.")
    assert "Whatthenotesays." in text
    assert "[x]" not in text


@pytest.mark.parametrize("kind", _RENDER)
@pytest.mark.parametrize(
    ("markdown", "words"),
    [
        (TEA, ["Teain2025", "Assam2.91", "龙井120.00", "supermarkets", "defgrow(p0):", "thehistoryoftea"]),
        (TEA_IN_CHINESE, ["茶叶简报", "茶是仅次于水的饮品[1]", "继续增长。"]),
    ],
    ids=["english", "chinese"],
)
def test_a_report_is_shown_as_it_reads(kind: str, markdown: str, words: list[str], tmp_path: Path):
    text = shown(markdown, kind, tmp_path).casefold()
    assert [one for one in words if one.casefold() not in text] == []
    assert "**" not in text
    assert "|--" not in text
