"""TeX in reports."""

import re

import pytest

from tests.report_files.samples import page


def body(markdown: str) -> str:
    found = re.search(r"<main>\n(.*?)\n*</main>", page(markdown), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("tex", ["$x^2$", r"\(x^2\)", "$$x^2$$", r"\[x^2\]"])
def test_tex_is_set_as_mathml(tex: str):
    display = "block" if tex[:2] in ("$$", r"\[") else "inline"
    assert f'<math display="{display}"><mrow><msup><mi>x</mi><mn>2</mn></msup></mrow></math>' in body(
        f"So it is:\n{tex}."
    )


@pytest.mark.parametrize(
    "tex", [r"\begin{align*}x^2\end{align*}", "\\begin{equation}\nx^2\n\\end{equation}", r"$\$x^2$"]
)
def test_environments_and_formulas_with_dollars_are_set_as_mathml(tex: str):
    text = body(f"So it is:\n{tex}\nas we see.")
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in text
    assert "as we see." in text
    assert "begin" not in text


@pytest.mark.parametrize("text", [r"See \[PDF\] Tea.", r"\[PDF\] Tea.", r"\[1\] Tea.", r"\[1\]"])
def test_brackets_with_a_backslash_beside_text_or_around_a_number_are_brackets(text: str):
    found = body(text)
    assert "<math" not in found
    assert text.replace("\\", "") in re.sub("<[^>]*>", "", found)


@pytest.mark.parametrize(
    "prose", ["from $5 to $7 a pack", "a $ b $ c", "US$5 and US$6", r"\$x\$", "$$", "`$x$`"]
)
def test_dollars_in_prose_are_dollars(prose: str):
    assert "<math" not in body(prose)


def test_marks_of_markdown_within_tex_are_tex():
    text = body(r"$a_1 * b_2 * c_{[3]}$ and *this*")
    assert text.count("<em>") == 1
    assert text.count("<msub>") == 3


@pytest.mark.parametrize(
    "tex",
    [
        r"\text{<script>alert(1)</script>}",
        r"<img src=x onerror=alert(1)>",
        r"\href{javascript:alert(1)}{x}",
        r"\style{background:url(https://evil.test)}{x}",
        r"\class{citation}{x}",
        r"\color{url(https://evil.test)}{x}",
        r"\text{&#60;script&#62;}",
        r"\unicode{x3c}script>",
    ],
)
def test_hostile_tex_is_inert(tex: str):
    text = body(f"${tex}$")
    assert not re.search(r"<(script|img|a)\b|href=|style=|class=|mathcolor=|onerror=[^a]", text), text


@pytest.mark.parametrize("length", ["1e9em", "99999px", "100%"])
def test_a_formula_is_not_larger_than_paper(length: str):
    assert length not in body(rf"$a \hspace{{{length}}} b \genfrac(){{{length}}}0ab$")


@pytest.mark.parametrize(
    "tex", [r"\frac{a", r"\begin{matrix}a", "x^x^x", "{" * 900, r"\left( a", "&&", r"\\"]
)
def test_tex_that_cannot_be_read_stays_as_it_is(tex: str):
    assert f"<code>{tex.replace('&', '&amp;')}</code>" in body(f"${tex}$") or "<math" in body(f"${tex}$")


def test_tex_that_grows_by_its_own_names_is_not_set():
    doubling = "".join(
        rf"\newcommand{{\{a}}}{{\{b}\{b}}}" for a, b in zip("abcdefghij", "bcdefghijk", strict=True)
    )
    assert "<math" not in body(rf"${doubling} \a$")


def test_of_very_many_formulas_the_last_stay_tex():
    text = body("\n\n".join(["$" + "x+" * 400 + "x$"] * 80))
    assert 0 < text.count("<math") < 80
    assert text.count("<math") + text.count("<code>") == 80
