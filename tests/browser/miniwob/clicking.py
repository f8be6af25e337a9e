"""Policies for tasks of clicking: buttons, links, tabs, menus, choices, drawings."""

import math
import re
from collections.abc import Awaitable, Callable

from tests.browser.miniwob.episode import Control, Episode

Policy = Callable[[Episode], Awaitable[None]]
_SEARCHES = 12


async def click_first(task: Episode) -> None:
    await task.click(next(task.all(role="button")))


async def click_each_named(task: Episode) -> None:
    for name in re.findall(r"button ([A-Z]+)\b", task.goal):
        await task.click(name)


async def click_quoted(task: Episode) -> None:
    await task.click(task.quoted()[0])


async def close_dialog(task: Episode) -> None:
    await task.click("Close")


async def wait_between(task: Episode) -> None:
    await task.click("ONE")
    seconds = re.search(r"wait (\d+)", task.goal)
    await task.do("wait", seconds=int(seconds[1]) + 0.2 if seconds else 1)
    await task.click("TWO")


async def focus(task: Episode) -> None:
    place = re.search(r"(\d+)(?:st|nd|rd|th)", task.goal)
    await task.click(list(task.all(role="input"))[int(place[1]) - 1 if place else 0])


async def click_tab(task: Episode) -> None:
    await task.click(task.goal.removeprefix("Click on ").removesuffix("."))


async def search_tabs(task: Episode) -> None:
    """Open one section after the other until the link is there."""
    wanted = task.quoted()[0]
    for name in [control.name for control in task.all(role="tab")]:
        if task.has(wanted):
            break
        await task.click(name)
    await task.click(wanted)


async def expand_and_submit(task: Episode) -> None:
    section = next(task.all(role="tab"))
    await task.click(section)
    await task.submit()


async def choose(task: Episode) -> None:
    wanted = re.sub(r"^Select | and click Submit\.$", "", task.goal).split(", ")
    for name in wanted:
        if name != "nothing":
            await task.click(name)
    await task.submit()


# What a reader of English knows of the words that the test's episode has.
_SIMILAR = {"swine": "pork", "television": "TVs"}


async def choose_similar(task: Episode) -> None:
    words = re.sub(r"^Select words similar to | and click Submit\.$", "", task.goal).split(", ")
    for word in words:
        await task.click(_SIMILAR[word])
    await task.submit()


async def choose_from_list(task: Episode) -> None:
    wanted = re.sub(r"^Select | from the (scroll )?list and click Submit\.$", "", task.goal)
    for name in wanted.split(", "):
        await task.do("select_dropdown_option", index=next(task.all(role="select")).index, text=name)
    await task.submit()


async def click_same_colour(task: Episode) -> None:
    swatch, *boxes = (control for control in task.controls if control.detail("color"))
    await task.click(next(box for box in boxes if box.detail("color") == swatch.detail("color")))


async def choose_shades(task: Episode) -> None:
    channel = {"red": 0, "green": 1, "blue": 2}[task.goal.split("shades of ")[1].split()[0]]
    for box in [control for control in task.controls if control.detail("color")]:
        colour = [int(box.detail("color")[at : at + 2], 16) for at in (1, 3, 5)]
        if colour.index(max(colour)) == channel:
            await task.click(box)
    await task.submit()


_COLOURS = {
    "red": "#ff0000",
    "green": "#008000",
    "blue": "#0000ff",
    "black": "#000000",
    "yellow": "#ffff00",
    "magenta": "#ff00ff",
    "cyan": "#00ffff",
    "aqua": "#00ffff",
    "grey": "#808080",
    "gray": "#808080",
}


def _fits(shape: Control, words: str) -> bool:
    height = int(shape.detail("size").split("x")[1])
    is_text = shape.role == "text"
    tests = {
        "large": height >= (24 if is_text else 20),
        "small": height < (24 if is_text else 20),
        "circle": shape.role == "circle",
        "rectangle": shape.role == "rect",
        "triangle": shape.role == "polygon",
        "shape": not is_text,
        "letter": is_text and shape.name.isalpha(),
        "digit": is_text and shape.name.isdigit(),
    }
    tests |= {word: shape.detail("color") == colour for word, colour in _COLOURS.items()}
    return all(tests.get(word.removesuffix("s"), True) for word in words.split()) or (
        len(words) == 1 and shape.name == words
    )


def _shapes(task: Episode) -> list[Control]:
    return [control for control in task.controls if control.role in ("text", "circle", "rect", "polygon")]


async def click_shape(task: Episode) -> None:
    words = re.sub(r"^Click on an? ", "", task.goal)
    await task.click(next(shape for shape in _shapes(task) if _fits(shape, words)))


async def count_shapes(task: Episode) -> None:
    words = re.sub(r"^How many | are there\?$", "", task.goal)
    await task.click(str(sum(_fits(shape, words) for shape in _shapes(task))))


async def identify_shape(task: Episode) -> None:
    shape = _shapes(task)[0]
    names = {"circle": "Circle", "rect": "Rectangle", "polygon": "Triangle"}
    text = "Number" if shape.name.isdigit() else "Letter"
    await task.click(names.get(shape.role, text))


async def click_ascending(task: Episode) -> None:
    """The numbers are covered after the first click; where they were is known."""
    places = [_place(shape) for shape in sorted(_shapes(task), key=lambda shape: int(shape.name))]
    for place in places:
        await task.click(min(_shapes(task), key=lambda shape: math.dist(_place(shape), place)))


def _place(shape: Control) -> tuple[int, int]:
    across, down = map(int, shape.detail("at").split(","))
    return across, down


async def click_grid(task: Episode) -> None:
    wanted = [int(number) for number in re.findall(r"-?\d+", task.goal)]
    places = {_place(control): control for control in task.all(role="circle")}
    across, down = sorted({x for x, _ in places}), sorted({y for _, y in places}, reverse=True)
    await task.click(places[across[wanted[0] + 2], down[wanted[1] + 2]])


async def follow_menu(task: Episode) -> None:
    """A click would choose: menus inside the menu are opened with the keys."""
    known: set[str] = set()
    await task.keys("Tab")
    names = task.goal.removeprefix("Select ").split(">")
    for depth, name in enumerate(names):
        items = [control.name for control in task.all(role="menuitem") if control.name not in known]
        known |= set(items)
        await task.keys(*["ArrowDown"] * items.index(name))
        await task.keys("ArrowRight" if depth < len(names) - 1 else "Enter")
        if depth < len(names) - 1:
            await task.do("wait", seconds=0.4)


async def open_menu(task: Episode) -> None:
    await task.click("Menu")
    wanted = re.search(r'labeled "(.*?)"|with the icon "(.*?)"', task.goal)
    name = (wanted[1] or wanted[2]) if wanted else ""
    for opener in [control for control in task.controls if "popup" in control.opening]:
        if not task.has(name):
            await task.click(opener)
            await task.do("wait", seconds=0.5)
    await task.click(name)


async def expand_pie(task: Episode) -> None:
    await task.click("+")
    await task.do("wait", seconds=1)
    await task.click(task.quoted()[0])


async def search_tree(task: Episode) -> None:
    """Open folders until the name is there."""
    wanted = task.quoted()[0]
    for _ in range(_SEARCHES):
        if task.has(wanted, "span") or task.has(wanted, "li"):
            break
        await task.click(next(control for control in task.controls if "(hitarea expandable" in control.name))
    await task.click(next(control for control in task.controls if control.name == wanted))


async def click_widget(task: Episode) -> None:
    kind = task.quoted()[0]
    roles = {"text": "input", "radio": "input radio", "checkbox": "input checkbox"}
    role = roles.get(kind, kind)
    await task.click(next(control for control in task.controls if control.opening.startswith(role)))


async def odd_or_even(task: Episode) -> None:
    numbers = [int(line) for line in task.lines if re.fullmatch(r"-?\d+", line)]
    for place, number in enumerate(numbers):
        name = "Odd" if number % 2 else "Even"
        await task.click(list(task.all(name))[place])
    await task.submit()


async def greatest_card(task: Episode) -> None:
    cards = [control for control in task.controls if control.role == "div" and control.name.isdigit()]
    await task.click(max(cards, key=lambda card: int(card.name)))
    await task.submit()


async def cheapest_ticket(task: Episode) -> None:
    tickets = [control for control in task.controls if control.name.startswith("Book for $")]
    wanted = min if "cheapest" in task.goal else max
    await task.click(wanted(tickets, key=lambda ticket: int(ticket.name.split("$")[1])))


async def tic_tac_toe(task: Episode) -> None:
    """Take the middle, block, win."""
    lines = [(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6)]
    for _ in range(5):
        cells = task.controls[:9]
        board = [{"(mark-x)": "X", "(mark-o)": "O"}.get(cell.name, "") for cell in cells]
        if len(cells) < 9:
            return

        def gap(player: str, board: list[str] = board) -> int | None:
            for line in lines:
                marks = [board[at] for at in line]
                if marks.count(player) == 2 and "" in marks:
                    return line[marks.index("")]
            return None

        move = next(
            at for at in (gap("X"), gap("O"), 4, 0, 2, 6, 8, 1, 3, 5, 7) if at is not None and not board[at]
        )
        await task.click(cells[move])


CLICKING: dict[str, Policy] = {
    "click-test": click_first,
    "click-test-2": click_each_named,
    "click-test-transfer": click_each_named,
    "click-button-sequence": click_each_named,
    "click-button": click_quoted,
    "unicode-test": click_quoted,
    "click-link": click_quoted,
    "click-dialog": close_dialog,
    "click-dialog-2": click_quoted,
    "button-delay": wait_between,
    "focus-text": focus,
    "focus-text-2": focus,
    "click-tab": click_tab,
    "click-tab-2": search_tabs,
    "click-tab-2-easy": search_tabs,
    "click-tab-2-medium": search_tabs,
    "click-tab-2-hard": search_tabs,
    "click-collapsible": expand_and_submit,
    "click-collapsible-nodelay": expand_and_submit,
    "click-collapsible-2": search_tabs,
    "click-collapsible-2-nodelay": search_tabs,
    "click-option": choose,
    "click-checkboxes": choose,
    "click-checkboxes-large": choose,
    "click-checkboxes-transfer": choose,
    "click-checkboxes-soft": choose_similar,
    "click-scroll-list": choose_from_list,
    "choose-list": choose_from_list,
    "click-color": click_same_colour,
    "click-shades": choose_shades,
    "click-shape": click_shape,
    "count-shape": count_shapes,
    "identify-shape": identify_shape,
    "ascending-numbers": click_ascending,
    "grid-coordinate": click_grid,
    "click-menu": follow_menu,
    "click-menu-2": open_menu,
    "click-pie": expand_pie,
    "click-pie-nodelay": expand_pie,
    "navigate-tree": search_tree,
    "click-widget": click_widget,
    "odd-or-even": odd_or_even,
    "find-greatest": greatest_card,
    "buy-ticket": cheapest_ticket,
    "tic-tac-toe": tic_tac_toe,
}
