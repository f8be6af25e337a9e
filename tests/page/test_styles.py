"""The styles keep to one scale of type and one of spacing."""

import re

import pytest

from tests.serving import ROOT

SHEETS = sorted((ROOT / "web/src").rglob("*.css"))
_SPACED = re.compile(
    r"(?<![\w-])(?:(?:row-|column-)?gap|(?:margin|padding)(?:-[a-z]+)*|font-size): *([^;}]+)"
)
_OFF_THE_SCALE = re.compile(r"(?<![\w.-])-?[\d.]+rem\b")


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda path: path.name)
def test_margins_gaps_and_sizes_are_steps_of_the_scale(sheet):
    found = [
        f"{number}: {declaration[0]}"
        for number, line in enumerate(sheet.read_text().splitlines(), 1)
        for declaration in _SPACED.finditer(line)
        if _OFF_THE_SCALE.search(declaration[1])
    ]
    assert found == []


def test_the_scales_are_used_and_each_step_is_larger_than_the_last():
    text = "\n".join(sheet.read_text() for sheet in SHEETS)
    for scale in ("type", "space"):
        steps = re.findall(rf"--({scale}-\w+): ([\d.]+)rem;", text)
        sizes = [float(size) for _, size in steps]
        assert len(sizes) >= 5
        assert sizes == sorted(set(sizes))
        assert [name for name, _ in steps if f"var(--{name})" not in text] == []
