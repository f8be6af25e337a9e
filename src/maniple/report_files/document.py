"""A report with what its files need besides its text, laid out once for all formats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from maniple.evidence.record import Source
from maniple.report_document.layout import ReportDocument, lay_out
from maniple.run_files.pictures import Figure


@dataclass(frozen=True, slots=True)
class Report:
    """The report of a run. `ended_at` is Unix time in seconds; `is_partial` is set if the budget ran out.

    By workspace path, `figures` are the pictures that the report shows, `files` the files that it links to,
    and `made` those that the run made. `left_out` names those that are too large or too many.
    """

    title: str
    markdown: str
    sources: Sequence[Source] = ()
    ended_at: float | None = None
    is_partial: bool = False
    figures: Mapping[str, Figure] = field(default_factory=dict[str, Figure])
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    made: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    left_out: Sequence[str] = ()
    diagrams: Mapping[str, Figure] = field(default_factory=dict[str, Figure])
    """The diagrams that a browser has drawn, by their Mermaid source."""


@dataclass(frozen=True, slots=True)
class ReportFile:
    """A laid-out report, with its figures and the day of its run."""

    document: ReportDocument
    ended_at: float | None
    is_partial: bool
    figures: Mapping[str, Figure]

    @property
    def date(self) -> str:
        """The day on which the run ended, in the document's language; "" if it is not known."""
        return self.document.texts.date(self.ended_at)


def lay_out_report(report: Report) -> ReportFile:
    """Return a report as a document. Blocks for up to some seconds."""
    drawn = {source: figure.path for source, figure in report.diagrams.items()}
    document = lay_out(report.title, report.markdown, report.sources, report.figures, drawn)
    figures = {**report.figures, **{one.path: one for one in report.diagrams.values()}}
    return ReportFile(document, report.ended_at, report.is_partial, figures)
