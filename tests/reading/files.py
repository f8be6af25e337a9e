"""Small documents of other kinds than HTML."""

import io
import zipfile

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_TYPES = "http://schemas.openxmlformats.org/package/2006/content-types"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


DRAWN = "% drawn\n"
"""What the content of a page begins with that is more than a line of text; its font is `/F`."""


def drawn(*pieces: tuple[float, float, float, str]) -> str:
    """The content of a page for `pdf`: texts with their left, their base and the size of their font."""
    return DRAWN + "".join(f"BT /F {size} Tf {x} {y} Td ({text}) Tj ET\n" for x, y, size, text in pieces)


def form_pdf(values: dict[str, str]) -> bytes:
    """A PDF with a form whose text fields are filled with these values."""
    from pypdf import PdfReader, PdfWriter
    from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, TextStringObject

    writer = PdfWriter(PdfReader(io.BytesIO(pdf("Application"))))
    fields = ArrayObject()
    for name, value in values.items():
        box = ArrayObject(map(FloatObject, (20, 20, 200, 40)))
        field = DictionaryObject({NameObject("/Type"): NameObject("/Annot"), NameObject("/Rect"): box})
        field[NameObject("/Subtype")] = NameObject("/Widget")
        field[NameObject("/FT")] = NameObject("/Tx")
        field[NameObject("/T")] = TextStringObject(name)
        field[NameObject("/V")] = TextStringObject(value)
        fields.append(writer._add_object(field))
    writer.pages[0][NameObject("/Annots")] = fields
    form = DictionaryObject({NameObject("/Fields"): fields})
    writer.root_object[NameObject("/AcroForm")] = writer._add_object(form)
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def pdf(*texts: str, password: str = "") -> bytes:
    """A PDF with a page of one line for each of `texts`; a page for "" shows nothing."""
    from pypdf import PdfWriter
    from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

    writer = PdfWriter()
    font = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica"}
    fonts = DictionaryObject({NameObject(key): NameObject(value) for key, value in font.items()})
    for text in texts:
        page = writer.add_blank_page(300, 300)
        content = DecodedStreamObject()
        drawn = (
            text.removeprefix(DRAWN) if text.startswith(DRAWN) else f"BT /F 12 Tf 20 200 Td ({text}) Tj ET"
        )
        content.set_data(drawn.encode("latin-1") if text else b"")
        page[NameObject("/Contents")] = writer._add_object(content)
        named = DictionaryObject({NameObject("/F"): fonts})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): named})
    writer.add_metadata({"/Title": "On bridges"})
    if password:
        writer.encrypt(password, algorithm="RC4-128")
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def docx(body: str, more: dict[str, bytes] | None = None) -> bytes:
    """A Word document of the paragraphs `body` (WordprocessingML)."""
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{_TYPES}">'
        f'<Override PartName="/word/document.xml" ContentType="{main}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_RELATIONS}"><Relationship Id="r1"'
        f' Type="{_OFFICE}/officeDocument" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body>{body}</w:body></w:document>',
        "word/styles.xml": f'<w:styles xmlns:w="{_WORD}"><w:style w:type="paragraph" w:styleId="Heading1">'
        '<w:name w:val="heading 1"/></w:style></w:styles>',
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**members, **(more or {})}.items():
            archive.writestr(name, content)
    return stream.getvalue()


def paragraph(text: str, style: str = "") -> str:
    """A paragraph for `docx`."""
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{look}<w:r><w:t>{text}</w:t></w:r></w:p>"


def scan(*texts: str, size: tuple[int, int] = (850, 1100)) -> bytes:
    """A PDF whose pages are pictures of lines of text, without a text layer."""
    from PIL import Image, ImageDraw

    pages = [Image.new("RGB", size, "white") for _ in texts]
    for page, text in zip(pages, texts, strict=True):
        ImageDraw.Draw(page).text((60, 80), text, fill="black")
    stream = io.BytesIO()
    pages[0].save(stream, "PDF", save_all=True, append_images=pages[1:])
    return stream.getvalue()


def joined_pdf(*bodies: bytes) -> bytes:
    """One PDF of the pages of others."""
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter()
    for body in bodies:
        writer.append(PdfReader(io.BytesIO(body)))
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


def workbook(sheets: dict[str, list[list[object]]], merged: dict[str, str] | None = None) -> bytes:
    """An XLSX workbook; `merged` are ranges of the first sheet with their values."""
    from xlsxwriter import Workbook

    stream = io.BytesIO()
    book = Workbook(stream, {"in_memory": True, "default_date_format": "yyyy-mm-dd"})
    pages = {name: book.add_worksheet(name) for name in sheets}
    for name, rows in sheets.items():
        for number, row in enumerate(rows):
            pages[name].write_row(number, 0, row)
    for place, value in (merged or {}).items():
        pages[next(iter(sheets))].merge_range(place, value)
    for name, page in pages.items():
        if name.startswith("hidden"):
            page.hide()
    book.close()
    return stream.getvalue()


def archive(members: dict[str, bytes | str]) -> bytes:
    """A ZIP archive."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            # Programs identify some formats by this part, which is never packed.
            target.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def presentation() -> bytes:
    """A presentation of two slides and a hidden one: a list, a merged table, a chart and notes."""
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    deck = Presentation()
    first = deck.slides.add_slide(deck.slide_layouts[1])
    first.shapes.title.text = "Tolls"
    frame = first.placeholders[1].text_frame
    frame.text = "Lorries pay"
    line = frame.add_paragraph()
    line.text, line.level = "nine crowns", 1
    first.notes_slide.notes_text_frame.text = "Say it slowly."
    second = deck.slides.add_slide(deck.slide_layouts[6])
    size = (Inches(1), Inches(1), Inches(4), Inches(2))
    table = second.shapes.add_table(2, 2, *size).table
    table.cell(0, 0).text = "Year | sum"
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(1, 0).text, table.cell(1, 1).text = "2026", "7"
    data = CategoryChartData()
    data.categories = ["May", "June"]
    data.add_series("Lorries", (120.5, 99))
    second.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *size, data)
    hidden = deck.slides.add_slide(deck.slide_layouts[5])
    hidden.shapes.title.text = "Secret"
    hidden.element.set("show", "0")
    stream = io.BytesIO()
    deck.save(stream)
    return stream.getvalue()
