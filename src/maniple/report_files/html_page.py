"""A report as one self-contained HTML file without scripts."""

from __future__ import annotations

from functools import cache

from jinja2 import Template
from markupsafe import Markup

from maniple.report_document import BodyView, write_body
from maniple.report_files.diagrams import DIAGRAM
from maniple.report_files.document import ReportFile
from maniple.run_files.page_assets import csp_hash, load_templates, read_style

_PACKAGE = __name__.rpartition(".")[0]


def render_html_page(report: ReportFile, *, printed: bool = False) -> str:
    """Return the report as HTML; `printed` is the version for a PDF. Blocks."""
    figures = {path: figure.data_url for path, figure in report.figures.items()}
    widths = {path: one.info.width for path, one in report.figures.items() if path.startswith(DIAGRAM)}
    view = BodyView(figures, widths, is_printed=printed, is_colored=True)
    body = Markup(write_body(report.document, view))
    return _template().render(
        report=report, document=report.document, body=body, policy=policy(), style=Markup(_style())
    )


def policy() -> str:
    """Return the page's content security policy. It allows only the page's style and embedded pictures."""
    return (
        f"default-src 'none'; style-src {csp_hash(_style())}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _style() -> str:
    return read_style(_PACKAGE, "document.css")


@cache
def _template() -> Template:
    return load_templates(_PACKAGE).get_template("document.html")
