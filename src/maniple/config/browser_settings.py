"""The browser: which Chromium, what it may reach, and how an agent works in it."""

from typing import Literal

from pydantic import Field

from maniple.config.section import Section
from maniple.config.values import OptionalSecret, OptionalText, UserPath

BrowserMode = Literal["navigate", "execute", "scrape", "research", "auto"]
BrowserStrategy = Literal["react", "react_plus", "cot", "tot"]


class BrowsingSettings(Section):
    """How an agent works in the browser."""

    mode: BrowserMode = "auto"
    """What is planned, seen and offered: `navigate`, `execute`, `scrape`, `research`, or all of it."""
    strategy: BrowserStrategy = "react"
    max_iterations: int = Field(default=50, gt=0)
    max_seconds: float = Field(default=1_800, gt=0)
    max_failures: int = Field(default=3, gt=0)
    """Actions that fail one after another, before the plan is adapted or the work ends."""
    max_adaptations: int = Field(default=2, ge=0)
    """How often a plan is adapted after a phase failed."""
    vision: Literal["auto", "always", "never"] = "auto"
    """Show screenshots: `auto` when the model sees and the mode wants it."""
    shown_turns: int = Field(default=3, ge=0)
    """For so many turns after a call of the browser an agent with other tools is shown its state, too."""
    recording: Literal["watched", "always", "never"] = "watched"
    """Make a GIF of the steps: `watched` when somebody follows the run."""


class BrowserSettings(Section):
    """The browser that the team works in."""

    enabled: bool = True
    backend: Literal["local", "cdp", "sandbox", "browser-use"] = "local"
    executable: UserPath | None = None
    headless: bool = True
    cdp_url: OptionalText = None
    """The address of a running Chromium's DevTools, for `cdp`."""
    sandbox_url: OptionalText = None
    """The address of the browser's API inside a sandbox, for `sandbox`."""
    sandbox_token: OptionalSecret = None
    proxy_server: OptionalText = None
    proxy_username: OptionalText = None
    proxy_password: OptionalSecret = None
    allow_private: tuple[str, ...] | None = None
    """Networks in CIDR form that may be opened although they are private; default: `fetch.allow_private`."""
    timeout_seconds: float = Field(default=30, gt=0)
    """Of loading a page."""
    action_seconds: float = Field(default=2, gt=0)
    """Of a click or an input until the element takes it."""
    max_wait_seconds: float = Field(default=60, gt=0)
    """The longest wait that a model may ask for."""
    viewport_width: int = Field(default=1280, ge=200, le=4096)
    viewport_height: int = Field(default=800, ge=200, le=4096)
    state_tokens: int = Field(default=4_000, ge=500)
    """About how long the elements of a page, as a model is shown them, may be."""
    dialogs: Literal["dismiss", "accept"] = "dismiss"
    """What is answered to `confirm` and to a page that does not want to be left; the model is told."""
    obstacles: bool = True
    """Clear away banners and windows that cover a page."""
    keep_storage: bool = False
    """Keep a thread's cookies and local storage over restarts."""
    process_per_thread: bool = False
    """A Chromium for each thread instead of one for all."""
    max_contexts: int = Field(default=32, gt=0)
    """Threads with an open browser at once; the one unused for longest makes way."""
    idle_seconds: float = Field(default=600, gt=0)
    """After so long without use a thread's tabs are closed."""
    max_download_bytes: int = Field(default=50_000_000, gt=0)
    browsing: BrowsingSettings = BrowsingSettings()
