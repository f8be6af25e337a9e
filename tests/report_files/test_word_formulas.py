"""Formulas of Word documents, read back as TeX."""

import io
import zipfile

import pytest
from lxml import etree

from maniple.reading.omml import to_tex
from maniple.report_files.document import lay_out_report
from maniple.report_files.word import render_docx
from tests.report_files.samples import report

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"


def formulas(markdown: str, name: str = "oMath") -> list[str]:
    """Return the formulas of the Word document of a report, as TeX."""
    with zipfile.ZipFile(io.BytesIO(render_docx(lay_out_report(report(markdown))))) as file:
        body = etree.fromstring(file.read("word/document.xml"))
    return ["".join(to_tex(one).split()) for one in body.iter(f"{MATH}{name}")]


@pytest.mark.parametrize(
    ("tex", "read"),
    [
        (r"\frac{a}{b} + \sqrt[9]{5}", r"\frac{a}{b}+\sqrt[9]{5}"),
        (r"\sum_{i=1}^n x_i^2", r"\sum_{i=1}^{n}x_{i}^{2}"),
        (r"\int_0^1 f", r"\int_{0}^{1}f"),
        (r"\left(\begin{matrix}a&b\\c&d\end{matrix}\right)", r"\begin{pmatrix}a&b\\c&d\end{pmatrix}"),
        (r"\hat{x} + \vec v", r"\hat{x}+\vec{v}"),
        (r"\overline{ab}", r"\overline{ab}"),
        (r"\underbrace{a+b}_{n}", r"\underbrace{a+b}_{n}"),
        (r"\begin{cases}a & x\\ b\end{cases}", r"\begin{cases}a&x\\b&\end{cases}"),
        (r"\mathbf{A} \le \mathbb{R}", r"\mathbf{A}\le\mathbb{R}"),
        (r"e^{-x} \text{ if so}", r"e^{-x}\text{ifso}"),
    ],
)
def test_a_formula_of_a_word_document_is_office_math(tex: str, read: str):
    assert formulas(f"So ${tex}$ is.") == [read]


def test_a_formula_on_a_line_of_its_own_is_a_paragraph_of_math():
    assert formulas("So:\n\n$$x^2$$\n\nand $y$.", "oMathPara") == ["x^{2}"]


@pytest.mark.parametrize("tex", [r"\frac{a", "{" * 900, r"\newcommand{\a}{b} \a"])
def test_a_formula_that_cannot_be_read_stays_tex(tex: str):
    with zipfile.ZipFile(io.BytesIO(render_docx(lay_out_report(report(f"So ${tex}$."))))) as file:
        text = "".join(etree.fromstring(file.read("word/document.xml")).itertext())
    assert tex in text or formulas(f"So ${tex}$.")


def test_marks_of_markdown_in_a_formula_change_nothing():
    assert formulas(r"*So $a_1 * b_2$* **$c$**") == ["a_{1}*b_{2}", "c"]
