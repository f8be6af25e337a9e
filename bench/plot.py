"""Line charts as SVG files."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log2
from pathlib import Path

_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 340, 250, 46, 34, 44
_COLOURS = ("#0b6e4f", "#b5473c", "#3a5ba0", "#7a6c5d")


@dataclass(frozen=True)
class Line:
    """Named points."""

    name: str
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Panel:
    """Lines that share their axes; x is logarithmic, y begins at 0."""

    title: str
    lines: Sequence[Line]


def write_svg(path: Path, panels: Sequence[Panel], x_title: str) -> None:
    """Draw the panels side by side."""
    width, height = _WIDTH * len(panels), _HEIGHT + 24
    drawn = "".join(_draw(panel, number * _WIDTH, x_title) for number, panel in enumerate(panels))
    names = [line.name for line in panels[0].lines]
    legend = "".join(
        f'<rect x="{_LEFT + 80 * at}" y="{height - 16}" width="12" height="4" fill="{_COLOURS[at]}"/>'
        f'<text x="{_LEFT + 80 * at + 17}" y="{height - 10}">{escape(name)}</text>'
        for at, name in enumerate(names)
    )
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="11" fill="#333">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{drawn}{legend}</svg>\n',
        encoding="utf-8",
    )


def _draw(panel: Panel, left: float, x_title: str) -> str:
    xs = sorted({x for line in panel.lines for x, _ in line.points})
    top = _round_up(max(y for line in panel.lines for _, y in line.points))
    x_of, y_of = _scales(xs, top, left)
    bottom = _HEIGHT - _BOTTOM
    right = left + _WIDTH - 16
    parts = [f'<text x="{left + _LEFT}" y="18" font-weight="bold">{escape(panel.title)}</text>']
    for part in range(5):
        value = top * part / 4
        y = y_of(value)
        parts.append(f'<path d="M{left + _LEFT} {y:.1f}H{right:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left + _LEFT - 5}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    parts += [f'<text x="{x_of(x):.1f}" y="{bottom + 15}" text-anchor="middle">{x:g}</text>' for x in xs]
    middle = left + (_LEFT + _WIDTH - 16) / 2
    parts.append(f'<text x="{middle}" y="{bottom + 31}" text-anchor="middle">{escape(x_title)}</text>')
    for line, colour in zip(panel.lines, _COLOURS, strict=False):
        points = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in line.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>')
    return "".join(parts)


def _scales(xs, top, left):
    first, last = log2(xs[0]), log2(xs[-1])
    span = (last - first) or 1.0
    inner_width, inner_height = _WIDTH - _LEFT - 16, _HEIGHT - _TOP - _BOTTOM

    def x_of(x: float) -> float:
        return left + _LEFT + inner_width * (log2(x) - first) / span

    def y_of(y: float) -> float:
        return _HEIGHT - _BOTTOM - inner_height * y / top

    return x_of, y_of


def _round_up(value: float) -> float:
    """Return the next number of one digit, or 1.5 or 2.5, times a power of ten."""
    scale = 1.0
    while scale * 10 <= value:
        scale *= 10
    while scale > value:
        scale /= 10
    return next(step * scale for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * scale >= value)
