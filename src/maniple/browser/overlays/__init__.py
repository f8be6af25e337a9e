"""Overlays: banners and windows that cover a page.

They are distinguished from the page's own elements, and cleared.
"""

from maniple.browser.overlays.clearing import (
    CONFIDENCE_THRESHOLD,
    COOLDOWN_SECONDS,
    ChooseDismissal,
    OverlayClearer,
)
from maniple.browser.overlays.detection import OverlayDocument, OverlaySurface

__all__ = [
    "CONFIDENCE_THRESHOLD",
    "COOLDOWN_SECONDS",
    "ChooseDismissal",
    "OverlayClearer",
    "OverlayDocument",
    "OverlaySurface",
]
