"""The reader of PowerPoint presentations: each slide is a section with its tables, charts and notes."""

import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.reading.containers import open_archive
from maniple.reading.grids import format_table, iterate_span
from maniple.reading.omml import to_tex
from maniple.reading.xml_parts import Element, local_attribute, local_name
from maniple.text import counted, shorten

_MAX_SLIDES = 1_000
_MAX_SHAPES = 2_000
"""Of one slide."""
_MAX_DEPTH = 20
_MAX_CELLS = 20_000
_NAMED_SLIDES = 20
_TITLE_CHARACTERS = 200
_DESCRIPTION_CHARACTERS = 300


@dataclass(slots=True)
class _Deck:
    """What is counted while the slides are read."""

    hidden: list[int] = field(default_factory=list[int])
    pictures: int = 0
    diagrams: int = 0

    @property
    def notes(self) -> list[str]:
        """What is left out."""
        notes = list[str]()
        if self.hidden:
            named = ", ".join(map(str, self.hidden[:_NAMED_SLIDES]))
            more = f" and {len(self.hidden) - _NAMED_SLIDES} more" if len(self.hidden) > _NAMED_SLIDES else ""
            notes.append(f"Hidden slides are not read: {named}{more}.")
        if self.pictures:
            notes.append(f"{counted(self.pictures, 'picture')} in it cannot be seen here.")
        if self.diagrams:
            notes.append(f"{counted(self.diagrams, 'diagram or object')} in it cannot be read.")
        return notes


def read_pptx(body: bytes, url: str) -> MarkdownDocument:
    """Return a presentation as Markdown, each slide under a heading with its number.

    Raises:
        UnreadableDocument: it is damaged, or too large when it is unpacked.
    """
    import pptx

    open_archive(body, "a presentation").close()
    deck = _Deck()
    try:
        presentation = pptx.Presentation(io.BytesIO(body))
        title = presentation.core_properties.title or ""
        sections, notes = _read_slides(list(presentation.slides), deck)
    except (MemoryError, RecursionError, UnreadableDocument):
        raise
    except Exception as error:  # of a damaged one, the library raises various errors
        raise UnreadableDocument("is a damaged presentation") from error
    return MarkdownDocument(title.strip(), "\n\n".join(sections), note=" ".join([*notes, *deck.notes]))


def _read_slides(slides: Sequence[Any], deck: _Deck) -> tuple[list[str], list[str]]:
    sections, characters = list[str](), 0
    for number, slide in enumerate(slides, 1):
        if characters > MAX_CHARACTERS or number > _MAX_SLIDES:
            return sections, [f"Only the first {number - 1:,} of {len(slides):,} slides were read."]
        if slide.element.get("show") in ("0", "false"):
            deck.hidden.append(number)
            continue
        section = _read_slide(slide, number, deck)
        if len(section) > MAX_CHARACTERS:
            sections.append(section[:MAX_CHARACTERS])
            return sections, [f"Slide {number}: {truncation_note(MAX_CHARACTERS)}"]
        sections.append(section)
        characters += len(section)
    return sections, []


def _read_slide(slide: Any, number: int, deck: _Deck) -> str:
    title = slide.shapes.title
    name = shorten(_frame_text(title), _TITLE_CHARACTERS) if title is not None else ""
    parts = [f"## Slide {number}{f': {name}' if name else ''}"]
    for shape in islice(_flatten(slide.shapes, _MAX_DEPTH), _MAX_SHAPES):
        if title is None or shape.shape_id != title.shape_id:
            parts.append(_read_shape(shape, deck))
    if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
        notes = _text_of_body(slide.notes_slide.notes_text_frame._txBody)
        parts.append(f"Notes of slide {number}: {notes}" if notes else "")
    return "\n\n".join(filter(None, parts))


def _flatten(shapes: Iterable[Any], depth: int) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            if depth > 0:
                yield from _flatten(shape.shapes, depth - 1)
        else:
            yield shape


def _read_shape(shape: Any, deck: _Deck) -> str:
    if getattr(shape, "has_table", False):
        return _read_table(shape.table)
    if getattr(shape, "has_chart", False):
        return _read_chart(shape.chart)
    if shape.has_text_frame:
        return _frame_text(shape)
    name = local_name(shape.element)
    if name == "pic":
        deck.pictures += 1
        described = (local_attribute(one, "descr") for one in shape.element.iter())
        text = shorten(next(filter(None, described), ""), _DESCRIPTION_CHARACTERS)
        return f"[picture: {text}]" if text else "[picture]"
    deck.diagrams += name == "graphicFrame"
    return ""


def _frame_text(shape: Any) -> str:
    return _text_of_body(shape.text_frame._txBody)


def _text_of_body(body: Element) -> str:
    """Return the paragraphs of a text; those of deeper levels are items of lists."""
    lines = list[str]()
    for paragraph in body:
        if local_name(paragraph) != "p":
            continue
        if text := "".join(_runs(paragraph)).strip():
            level = next((local_attribute(one, "lvl") for one in paragraph if local_name(one) == "pPr"), "")
            indent = int(level) if level.isdecimal() and len(level) == 1 else 0
            lines.append(f"{'  ' * (indent - 1)}- {text}" if indent else text)
    return "\n".join(lines)


def _runs(paragraph: Element) -> Iterator[str]:
    for child in paragraph:
        match local_name(child):
            case "r" | "fld":
                yield "".join("".join(one.itertext()) for one in child if local_name(one) == "t")
            case "br":
                yield "\n"
            case "m" | "AlternateContent":
                equations = [one for one in child.iter() if local_name(one) == "oMath"]
                yield " ".join(f"${to_tex(one)}$" for one in equations)


def _read_table(table: Any) -> str:
    rows = len(table.rows)
    columns = len(table.columns)
    if rows * columns > _MAX_CELLS:
        rows = max(1, _MAX_CELLS // columns)
    cells = [[_text_of_body(table.cell(row, at)._tc.txBody) for at in range(columns)] for row in range(rows)]
    for row in range(rows):
        for column in range(columns):
            cell = table.cell(row, column)
            if cell.is_merge_origin:
                end = (min(row + cell.span_height, rows) - 1, min(column + cell.span_width, columns) - 1)
                for below, right in iterate_span(row, column, *end):
                    cells[below][right] = cells[row][column]
    cut = "" if rows == len(table.rows) else f"\n\n[only the first {rows:,} of {len(table.rows):,} rows]"
    return format_table(cells) + cut


def _read_chart(chart: Any) -> str:
    """Return the values of a chart as a table."""
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    parts = [f"[chart{f': {title}' if title else ''}]"]
    for plot in chart.plots:
        series = list(plot.series)
        names = [str(one) for one in plot.categories]
        rows = [["", *(str(one.name) for one in series)]]
        most = max([len(names), *(len(one.values) for one in series)], default=0)
        for at in range(min(most, _MAX_CELLS // max(len(series), 1))):
            values = [_value(one.values, at) for one in series]
            rows.append([names[at] if at < len(names) else str(at + 1), *values])
        parts.append(format_table(rows))
    return "\n\n".join(parts)


def _value(values: Sequence[Any], at: int) -> str:
    value = values[at] if at < len(values) else None
    return "" if value is None else format(value, ".15g") if isinstance(value, float) else str(value)
