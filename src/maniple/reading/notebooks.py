"""The readers of Jupyter notebooks and of RTF."""

import json
from collections.abc import Iterator
from typing import Any

from maniple.reading import MAX_CHARACTERS, MarkdownDocument, UnreadableDocument, truncation_note
from maniple.text import fix_surrogates

_OUTPUT_CHARACTERS = 4_000
"""Of one output; the text after them is left out, which is said."""
_FENCE = "```"


def read_notebook(text: str, url: str) -> MarkdownDocument:
    """Return the cells of a notebook: its texts, its code in fences, and the outputs.

    Raises:
        UnreadableDocument: it is no notebook.
    """
    try:
        notebook = json.loads(text)
        cells = notebook.get("cells")
        if cells is None:  # before version 4
            cells = [cell for sheet in notebook["worksheets"] for cell in sheet["cells"]]
        language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language") or "python")
        blocks = [block for number, cell in enumerate(cells, 1) for block in _cell(cell, number, language)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableDocument("is a damaged notebook") from error
    markdown = fix_surrogates("\n\n".join(blocks))
    note = truncation_note(MAX_CHARACTERS) if len(markdown) > MAX_CHARACTERS else ""
    return MarkdownDocument("", markdown[:MAX_CHARACTERS], note=note)


def _cell(cell: dict[str, Any], number: int, language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input", ""))).strip()
    if cell.get("cell_type") != "code":
        if source:
            yield source
        return
    if source:
        yield f"[cell {number}]\n\n{_fenced(source, language)}"
    for output in cell.get("outputs", []):
        if text := _output(output).strip():
            cut = f"\n[{len(text) - _OUTPUT_CHARACTERS:,} more characters]"
            shown = text if len(text) <= _OUTPUT_CHARACTERS else text[:_OUTPUT_CHARACTERS] + cut
            yield f"Output of cell {number}:\n\n{_fenced(shown, 'text')}"


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", output)
    if "ename" in output:
        return f"{output['ename']}: {output.get('evalue', '')}"
    if text := _joined(data.get("text/plain", output.get("text", ""))):
        return text
    kinds = [kind for kind in data if kind.startswith(("image/", "text/html", "application/"))]
    return f"[an output that is not read: {kinds[0]}]" if kinds else ""


def _joined(text: Any) -> str:
    return "".join(map(str, text)) if isinstance(text, list) else str(text)


def _fenced(text: str, language: str) -> str:
    fence = _FENCE
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"


def read_rtf(body: bytes, url: str) -> MarkdownDocument:
    """Return the text of an RTF document; its tables have their cells between pipes.

    Raises:
        UnreadableDocument: it is damaged.
    """
    from striprtf.striprtf import rtf_to_text

    try:
        text = rtf_to_text(body.decode("latin-1"), errors="replace")
    except (ValueError, LookupError, TypeError, IndexError) as error:
        raise UnreadableDocument("is a damaged RTF document") from error
    text = fix_surrogates(text).replace("\0", "").strip()
    note = truncation_note(MAX_CHARACTERS) if len(text) > MAX_CHARACTERS else ""
    return MarkdownDocument("", text[:MAX_CHARACTERS], headed=False, note=note)
