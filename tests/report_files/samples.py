"""Reports to make files of."""

import io

from PIL import Image

from maniple.evidence.record import Source
from maniple.reading.pictures import identify_picture
from maniple.report_files import Report
from maniple.report_files.document import lay_out_report
from maniple.report_files.html_page import render_html_page
from maniple.run_files.pictures import Figure

READ_AT = 1_795_305_600.0  # 2026-11-22, 00:00 UTC
SOURCES = [
    Source(1, "https://tea.example/history?a=1", "The history of tea", "page", READ_AT, "0" * 64),
    Source(2, "https://prices.example/", "Prices <b>of</b> tea", "result", READ_AT, "0" * 64),
    Source(3, "https://stat.example/茶", "茶叶统计", "page", READ_AT, "0" * 64),
]
TEA = """# Tea in 2025

Tea is the *most consumed* drink after water [1]. Exports grew by **4.2 %** [1, 3], "the best" [unverified].

## Prices

From $5 to $7 a pack: $p_0 e^{rt}$, with `teactl --version`, ~~never~~ more.

| Origin | Price | Notes |
|:--|--:|:-:|
| Assam | 2.91 | **malty** [1] |
| 龙井 | 120.00 | see [the auction](https://auction.example/d) |

### By channel

3. Supermarkets
   - own brands
     - black

   And more of it.
4. Online

> Somebody said so [unverified].

```python
def grow(p0):
    return p0 * 2
```

## Outlook

It goes on.

## Sources

- [1] The history of tea: <https://tea.example/history?a=1>
- [3] 茶叶统计: <https://stat.example/茶>
"""
TEA_IN_CHINESE = """# 茶叶简报

茶是仅次于水的饮品[1]。出口增长**4.2%**【3】，“最好的还在后头” [unverified]。

## 价格

上涨。

## 产地

云南。

## 展望

继续增长。
"""
EVIL = """# Report <script>alert(1)</script>

![pixel](https://evil.test/a.png) !![twice](https://evil.test/b.png) [![in a link](https://evil.test/c.png)](x)
<img src=https://evil.test/d.png onerror=alert(1)> <iframe src="https://evil.test/e"></iframe>
[click](javascript:alert(1)) [data](data:text/html,<script>1</script>) <javascript:alert(1)> [file](file:///etc/passwd)
![ref][r] \\` <img src=https://evil.test/f.png> ` | ` | <style>@import "https://evil.test/g"</style> | ` |

[r]: https://evil.test/h.png "t\\" onmouseover=alert(1)"

<div style="background:url(https://evil.test/i.png)" onclick="x()">x</div>

| a | b |
|:-:|---|
| [ok](https://ok.test/?a=1&b=2) | `code <b> stays` |

$\\text{<script>alert(1)</script>} \\href{javascript:alert(1)}{x} \\style{background:url(https://evil.test/j)}{y}$

```html
<b>![stays](as it is)</b>
```
"""


def report(markdown: str, title: str = "What about tea?") -> Report:
    """A report of a run that has read `SOURCES`."""
    return Report(title, markdown, SOURCES, READ_AT)


def page(markdown: str, title: str = "What about tea?") -> str:
    """Its page."""
    return render_html_page(lay_out_report(report(markdown, title)))


GERMAN = """# Tee

## Preis

Der Tee ist nicht teuer: Er kostet mit der Kanne drei Euro [1].

## Herkunft

Die Blätter sind aus dem Süden [2].

## Ergebnis

Für den Preis ist das ein guter Tee.
"""
"""Without a list of sources."""


def drawn_figure(width: int, height: int) -> Figure:
    """Return a red picture of this size in pixels."""
    content = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(content, "PNG")
    info = identify_picture(content.getvalue())
    assert info is not None
    return Figure("drawn.png", content.getvalue(), info)
