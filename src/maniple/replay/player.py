"""The player in a replay file: the build of `web/src/replay`, and a policy that allows no other scripts."""

import re
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path

from maniple.run_files.page_assets import csp_hash
from maniple.runs import NotFound

ASSETS = Path(__file__).parent / "assets"
NOT_BUILT = "The page has not been built. Run `make page` in the clone, then start the service again."
_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="content-security-policy" content="{policy}">
<meta http-equiv="x-dns-prefetch-control" content="off">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="maniple {version}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"><noscript>This file plays a run of a team of agents, which needs JavaScript.</noscript></div>
"""
# It occurs only in strings and regular expressions of the scripts, where `\x3c` is equivalent.
_MARKUP = re.compile("<(?=!--|/?script)", re.I)


_TITLE_CHARACTERS = 80


def title_of(question: str) -> str:
    """Return the title of the file for a question: the beginning of its first line."""
    return (question.strip().splitlines() or [""])[0][:_TITLE_CHARACTERS].strip() or "maniple"


def is_built() -> bool:
    """Return whether the page and the player, which are built together, are there."""
    return any(ASSETS.glob("*"))


@dataclass(frozen=True, slots=True)
class Player:
    """The script and the style in each replay file, and KaTeX for files with formulas."""

    script: str
    style: str
    katex: str

    @property
    def policy(self) -> str:
        """The file's content security policy. It allows only its scripts, its style and embedded pictures."""
        scripts = f"{csp_hash(self.script)} {csp_hash(self.katex)}"
        return (
            f"default-src 'none'; script-src {scripts}; style-src {csp_hash(self.style)}; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        )

    def begin(self, title: str) -> bytes:
        """Return the part of a file before its data."""
        policy = escape(self.policy)
        head = _HEAD.format(policy=policy, version=version("maniple"), title=escape(title), style=self.style)
        return head.encode()

    def end(self, *, sets_math: bool) -> bytes:
        """Return the part of a file after its data; with KaTeX if `sets_math`."""
        scripts = [self.katex, self.script] if sets_math else [self.script]
        elements = "\n".join(f"<script>{one}</script>" for one in scripts)
        return f"{elements}\n</body>\n</html>\n".encode()


@cache
def load_player() -> Player:
    """Return the player of this version. The first call blocks.

    Raises:
        NotFound: the page has not been built in this clone.
    """
    if not ASSETS.is_dir():
        raise NotFound(NOT_BUILT)
    script, style, katex = (
        (ASSETS / name).read_text(encoding="utf-8") for name in ("player.js", "player.css", "katex.js")
    )
    return Player(_MARKUP.sub(r"\\x3c", script), style, _MARKUP.sub(r"\\x3c", katex))
