"""A browser without Chromium: a shop of three pages, which does what the actions say and remembers it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from maniple.agents.browsing import BrowsingResources
from maniple.agents.offers import Offer, merge_offers
from maniple.browser import (
    ACTIONS,
    Action,
    ActionResult,
    BrowserState,
    Element,
    FoundPage,
    PageServices,
    ScrollInfo,
    Tab,
)
from maniple.browser.actions import parse_action
from maniple.capabilities.browsing import browsing_offer
from maniple.config import BrowsingSettings, TeamSettings
from maniple.errors import BrowserError
from maniple.tools.browser import browser_tool, browser_use_tool
from maniple.tools.interaction import terminate_tool
from maniple.tools.thread_browser import ThreadBrowser
from tests.openai_server import OpenAIServer, call, reply
from tests.team import Scripted, plan, scripted_team, step

HOME = "https://shop.test/"
PAGES: dict[str, tuple[str, ...]] = {
    "about:blank": (),
    HOME: ("link Basket", "input text Search", "input password PIN", "button Buy"),
    f"{HOME}basket": ("button Pay", "link Back", "text 2 apples, 3.50 EUR"),
}
BOXES = {"link Basket": (0.1, 0.2, 0.3, 0.25)}
"""The positions of some elements in the window."""
PICTURE = b"\xff\xd8\xff\xe0 picture"


@tool
async def look_around() -> str:
    """Look around."""
    return "nothing"


@dataclass
class ShopPage:
    """A thread's tab."""

    shop: "Shop"
    url: str = "about:blank"
    done: list[dict[str, Any]] = field(default_factory=list)
    looks: int = 0
    shown: str = ""
    services: PageServices = field(default_factory=PageServices)

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        if self.shop.hangs_at == "look":
            await asyncio.Event().wait()
        if self.shop.is_blind:
            raise BrowserError("The browser has ended; the next action starts a new one.")
        self.looks += 1
        self.shown = self.url
        names = PAGES.get(self.url, ())
        elements = tuple(
            Element(at, name.rpartition(" ")[0], name.rpartition(" ")[2], box=BOXES.get(name))
            for at, name in enumerate(names)
        )
        listed = "\n".join(f"[{one.index}]<{one.role}>{one.name}" for one in elements) + self.shop.words
        return BrowserState(
            snapshot_id=str(self.looks),
            url=self.url,
            title=self.url.rpartition("/")[2] or "Shop",
            tabs=(Tab(1, "Shop", self.url, is_current=True),),
            interactive_elements=listed,
            elements=elements,
            scroll_info=ScrollInfo(0, 0),
            viewport_height=800,
            screenshot=self.shop.picture if screenshot else None,
        )

    async def has_changed(self) -> bool:
        return self.url != self.shown

    async def act(self, given: Mapping[str, Any] | Action) -> ActionResult:
        action = parse_action(given)
        self.done.append(action.model_dump(exclude_defaults=True))
        if action.action == self.shop.hangs_at:
            self.shop.stuck.set()
            await asyncio.Event().wait()
        match action.action:
            case "go_to_url":
                self.url = action.url or ""
                return ActionResult(f"Navigated to {action.url}")
            case "click_element":
                return self._clicked(action.index or 0)
            case "extract_content" if self.services.extract:
                found = await self.services.extract(action.goal or "", "# Page\n\nApples cost 3.50 EUR.")
                return ActionResult(f"Extracted from page:\n{found}\n", changed=False)
            case "wait":
                return ActionResult(f"Waited for {action.seconds:g} seconds", changed=False)
            case _:
                return ActionResult(f"{action.action} done")

    def _clicked(self, index: int) -> ActionResult:
        names = PAGES.get(self.shown, ())
        if index >= len(names):
            raise BrowserError(f"Element with index {index} not found")
        if names[index] == "link Basket":
            self.url = f"{HOME}basket"
        return ActionResult(f"Clicked element at index {index}")

    async def aclose(self) -> None: ...


@dataclass
class Shop:
    """The browser."""

    hangs_at: str = ""
    """The action that never ends."""
    is_blind: bool = False
    """Whether looking fails."""
    words: str = ""
    """What each page says beside its controls."""
    picture: bytes = PICTURE
    actions: tuple[str, ...] = ACTIONS.names
    stuck: asyncio.Event = field(default_factory=asyncio.Event)
    pages: dict[str, ShopPage] = field(default_factory=dict)

    async def page(self, thread: str, services: PageServices | None = None) -> ShopPage:
        page = self.pages.setdefault(thread, ShopPage(self))
        page.services = services or PageServices()
        return page

    @property
    def only(self) -> ShopPage:
        (page,) = self.pages.values()
        return page


def use(action: str, **given: Any) -> dict[str, Any]:
    """One reply that does one thing in the browser."""
    return call("browser_use", action=action, **given)


def done(result: str = "It costs 3.50 EUR.", status: str = "success") -> dict[str, Any]:
    return call("terminate", status=status, result=result)


def shop_script(*browser: dict[str, Any], task: str = "Find the price.", **roles: Any) -> dict[str, Any]:
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("browser", description=task), step("reporter"))))],
        "browser": list(browser),
        "reporter": [reply("# Report")],
        "other": [reply("NOTHING")],
        **roles,
    }


async def _find_nothing(query: str) -> Sequence[FoundPage]:
    return ()


@asynccontextmanager
async def shopping(
    script: dict[str, Any],
    *,
    shop: Shop | None = None,
    browsing: Mapping[str, Any] | None = None,
    checkpointer: Any = None,
    find_outage: Callable[[], Awaitable[str]] | None = None,
    **options: Any,
) -> AsyncIterator[tuple[Scripted, Shop]]:
    """A team whose browser is the shop."""
    shop = shop or Shop()
    window = ThreadBrowser(shop, PageServices(search=_find_nothing))  # type: ignore[arg-type]
    how = BrowsingResources(window, BrowsingSettings.model_validate(browsing or {}), (), find_outage)
    general = Offer({"manus": [browser_use_tool(window), look_around, terminate_tool()]})
    toolbox = merge_offers([browsing_offer(how, browser_tool(shop)), general])  # type: ignore[arg-type]
    saver = checkpointer or InMemorySaver()
    async with scripted_team(script, toolbox=toolbox, checkpointer=saver, **options) as team:
        yield team, shop


@asynccontextmanager
async def alone(script: dict[str, Any], **browsing: Any) -> AsyncIterator[tuple[Scripted, Shop]]:
    """The same team with manus, who has the browser's tool beside others."""
    settings = TeamSettings(members=("manus", "reporter"))
    async with shopping(script, browsing=browsing, settings=settings) as both:
        yield both


def views(server: OpenAIServer, role: str = "browser") -> list[Any]:
    """What of the browser each call for a role was shown: the contents of its last messages."""
    named = (f"You are the {role}", f"You are {role},")
    asked = [
        one["messages"] for one in server.requests if any(name in str(one["messages"][0]) for name in named)
    ]
    return [messages[-1]["content"] for messages in asked]


QUESTION = [HumanMessage("What do apples cost?")]
