"""Policies for tasks of writing: fields, forms, dates, sliders, sums."""

import asyncio
import re
from datetime import datetime

from maniple.errors import BrowserError
from tests.browser.miniwob.clicking import Policy
from tests.browser.miniwob.episode import Control, Episode

# A Chromium has one for all that it shows.
_CLIPBOARD = asyncio.Lock()
_MONTHS = [datetime(2016, month, 1).strftime("%B") for month in range(1, 13)]


def field(task: Episode, place: int = 0) -> Control:
    """One of the fields that take text."""
    return [control for control in task.controls if control.role in ("input", "spinbutton")][place]


async def write_quoted(task: Episode) -> None:
    await task.write(field(task), task.quoted()[0])
    await task.submit()


async def write_in_case(task: Episode) -> None:
    word = task.quoted()[0]
    await task.write(field(task), word.lower() if "lower case" in task.goal else word.upper())
    await task.submit()


async def write_twice(task: Episode) -> None:
    for place in (0, 1):
        await task.write(field(task, place), task.quoted()[0])
    await task.submit()


async def log_in(task: Episode) -> None:
    for place, words in enumerate(task.quoted()):
        try:
            await task.write(field(task, place), words)
        except BrowserError:  # a window may come up as soon as the field is touched
            await task.see()
        if task.has("Cancel"):
            await task.click("Cancel")
            await task.write(field(task, place), words)
    await task.click(list(task.all(role="button"))[-1])


async def write_date(task: Episode) -> None:
    wanted = datetime.strptime(re.findall(r"[\d/]{10}", task.goal)[0], "%m/%d/%Y")
    await task.write(field(task), wanted.strftime("%Y-%m-%d"))
    await task.submit()


async def write_time(task: Episode) -> None:
    wanted = datetime.strptime(re.findall(r"\d+:\d+ [AP]M", task.goal)[0], "%I:%M %p")
    await task.write(field(task), wanted.strftime("%H:%M"))
    await task.submit()


async def copy(task: Episode) -> None:
    place = re.search(r"(\d)(?:st|nd|rd)", task.goal)
    async with _CLIPBOARD:
        await task.click(list(task.all(role="textarea"))[int(place[1]) - 1 if place else 0])
        await task.keys("Control+A", "Control+C")
        await task.click(field(task))
        await task.keys("Control+V")
    await task.submit()


async def write_shown(task: Episode) -> None:
    await task.write(field(task), task.lines[1])
    await task.submit()


async def find_word(task: Episode) -> None:
    place = int(re.findall(r"(\d+)(?:st|nd|rd|th)", task.goal)[0])
    await task.write(field(task), re.sub(r"\W", "", task.lines[1].split()[place - 1]))
    await task.submit()


async def last_word(task: Episode) -> None:
    words = next(task.all(role="textarea")).detail("value")
    await task.write(field(task), words.split()[-1].strip("."))
    await task.submit()


def _rows(task: Episode) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition(" | ") for line in task.lines) if value}


async def read_table(task: Episode) -> None:
    key = re.sub(r"^Enter the value of | into .*$", "", task.goal)
    await task.write(field(task), _rows(task)[key])
    await task.submit()


async def read_table_twice(task: Episode) -> None:
    rows = _rows(task)
    keys = [line.rstrip(":") for line in task.lines if line.endswith(":")]
    for place, key in enumerate(keys[:2]):
        await task.write(field(task, place), rows[key])
    await task.submit()


async def solve(task: Episode) -> None:
    left, sign, right = re.findall(r"(-?\d+) ?([-+x]) ?(-?\d+) =", task.text)[0]
    sums = {"+": int(left) + int(right), "-": int(left) - int(right), "x": int(left) * int(right)}
    await task.write(field(task), str(sums[sign]))
    await task.submit()


async def solve_for_x(task: Episode) -> None:
    equation = re.sub(r"\s", "", task.lines[1])
    left, right = equation.split("=")
    solution = next(x for x in range(-200, 200) if _value(left, x) == _value(right, x))
    await task.write(field(task), str(solution))
    await task.submit()


def _value(side: str, x: int) -> int:
    terms = re.findall(r"([+-]?)(\d+|x)", side)
    return sum((-1 if sign == "-" else 1) * (x if term == "x" else int(term)) for sign, term in terms)


async def guess(task: Episode) -> None:
    low, high = 0, 9
    while low <= high and task.has("Submit", "button"):
        middle = (low + high) // 2
        await task.write(field(task), str(middle))
        await task.submit()
        if f"higher than {middle}" in task.text:
            low = middle + 1
        elif f"lower than {middle}" in task.text:
            high = middle - 1
        else:
            return


async def generate(task: Episode) -> None:
    kind, limit = re.findall(r"(greater|less|even|odd)(?: than (-?\d+))?", task.goal)[0]
    tests = {
        "greater": lambda number: number > int(limit),
        "less": lambda number: number < int(limit),
        "even": lambda number: number % 2 == 0,
        "odd": lambda number: number % 2 == 1,
    }
    for _ in range(40):
        await task.click("Generate")
        numbers = [int(line) for line in task.lines if re.fullmatch(r"-?\d+", line)]
        if numbers and tests[kind](numbers[0]):
            break
    await task.submit()


async def complete(task: Episode) -> None:
    """Write the beginning, and take from what is offered what ends as asked."""
    begins, *ends = task.quoted()
    await task.write(field(task), begins)
    await task.do("wait", seconds=0.5)
    offered = [control for control in task.controls if control.name.startswith(begins)]
    wanted = next(control for control in offered if not ends or control.name.endswith(ends[0]))
    await task.click(wanted)
    await task.submit()


async def choose_date(task: Episode) -> None:
    wanted = datetime.strptime(re.findall(r"\d+/\d+/\d{4}", task.goal)[0], "%m/%d/%Y")
    await pick_date(task, wanted)
    await task.submit()


async def pick_date(task: Episode, wanted: datetime) -> None:
    """Click through the months of a calendar that opens from its field."""
    await task.click(next(control for control in task.controls if "readonly" in control.opening))
    for _ in range(12):
        shown = next(month for month in _MONTHS if re.search(rf"^{month} \d{{4}}$", task.text, re.M))
        away = wanted.month - 1 - _MONTHS.index(shown)
        if not away:
            break
        await task.click("Next" if away > 0 else "Prev")
    await task.click(task.of(str(wanted.day), "link"))
    # It takes its time to close.
    await task.do("wait", seconds=0.5)


async def spin(task: Episode) -> None:
    wanted = int(re.findall(r"-?\d+", task.goal)[0])
    for _ in range(abs(wanted)):
        await task.click(
            next(one for one in task.controls if f"triangle-1-{'n' if wanted > 0 else 's'}" in one.name)
        )
    await task.submit()


async def slide(task: Episode) -> None:
    wanted = [int(number) for number in re.findall(r"-?\d+", task.goal)]
    handles = [control for control in task.controls if "ui-slider-handle" in control.name]
    for handle, number in zip(handles, wanted, strict=True):
        await _slide(task, handle, number)
    await task.submit()


async def _slide(task: Episode, handle: Control, wanted: int) -> None:
    await task.click(handle)
    for _ in range(60):
        shown = next(int(line) for line in task.lines[handle.line :] if re.fullmatch(r"-?\d+", line))
        if shown == wanted:
            return
        await task.keys("ArrowRight" if shown < wanted else "ArrowLeft")


async def form_with_slider(task: Episode) -> None:
    await _slide(task, next(task.all(role="span")), int(re.findall(r"Select (-?\d+)", task.goal)[0]))
    place = int(re.findall(r"(\d)(?:st|nd|rd)", task.goal)[0])
    boxes = [control for control in task.controls if control.opening.startswith("input checkbox")]
    await task.click(boxes[place - 1])
    await task.submit()


async def form_with_radios(task: Episode) -> None:
    radio, box = (int(place) for place in re.findall(r"(\d)(?:st|nd|rd)", task.goal))
    radios = [control for control in task.controls if control.opening.startswith("input radio")]
    fields = [
        control for control in task.controls if control.opening.split()[:2][-1] not in ("radio", "button")
    ]
    await task.click(radios[radio - 1])
    await task.write(
        [one for one in fields if one.role == "input"][box - 1], re.findall(r'"(-?\d+)"', task.goal)[0]
    )
    await task.submit()


async def form_with_list(task: Episode) -> None:
    wanted, button = re.findall(
        r'Choose (.+) from the dropdown, then click the button labeled "(.+)"', task.goal
    )[0]
    await task.click("▾")
    await task.click(next(one for one in task.controls if one.name == wanted))
    await task.click(button)


async def scroll_text(task: Episode) -> None:
    await task.click(next(task.all(role="textarea")))
    await task.keys("Control+End" if "bottom" in task.goal else "Control+Home")
    await task.submit()


async def sign(task: Episode) -> None:
    """The field and the buttons can be used once the agreement has been scrolled through."""
    for _ in range(6):
        if "disabled" not in task.of("Agree").opening:
            break
        await task.do("scroll_down", scroll_amount=400)
    if task.quoted():
        await task.write(field(task), task.quoted()[0])
    await task.click("Cancel" if "cancel" in task.goal.lower() else "Agree")


_COLOURS = {"red": "FF0000", "green": "008000", "blue": "0000FF", "yellow": "FFFF00", "magenta": "FF00FF"}


async def write_colour(task: Episode) -> None:
    """A picture of all colours opens, but the field takes a colour by its number, too."""
    await task.write(field(task), _COLOURS[task.goal.removeprefix("Select ").split()[0]])
    await task.keys("Enter")
    await task.submit()


async def search_movies(task: Episode) -> None:
    genre, director, year = re.findall(r"for (.+) movies directed by (.+) from year (\d+)", task.goal)[0]
    words = {"Genre": genre, "Director": director, "Director Name": director, "Year": year}
    for key, value in words.items():
        line = next((at for at, line in enumerate(task.lines) if line.split(" | ")[0] == key), None)
        if line is not None:
            await task.write(next(one for one in task.all(role="input") if one.line >= line), value)
    await task.click(next(control for control in task.controls if control.name in ("Search", "Submit")))


async def style_text(task: Episode) -> None:
    """Select the word with the keys and press the button of the style."""
    word, style = re.findall(r"give the text (.+) the style (\w+) and press", task.goal)[0]
    editor = next(task.all(role="textbox"))
    words = editor.detail("value")
    await task.click(editor)
    await task.keys("Control+Home", *["ArrowRight"] * words.index(word), *["Shift+ArrowRight"] * len(word))
    await task.click(
        next(
            control
            for control in task.controls
            if f"ql-{style.removesuffix('ed').removesuffix('d')}" in control.name
        )
    )
    await task.submit()


async def delete_file(task: Episode) -> None:
    ending = re.findall(r"extension (\.\w+)", task.goal)
    await task.click(next(control for control in task.controls if control.role == "div"))
    await task.keys("ls", "Enter")
    names = re.findall(r"[\w.-]+\.\w+|\b\w+\b", task.text.split("ls", 1)[1])
    name = next(name for name in names if (name.endswith(ending[0]) if ending else "." not in name))
    await task.keys(f"rm {name}", "Enter")


WRITING: dict[str, Policy] = {
    "enter-text": write_quoted,
    "enter-text-dynamic": write_quoted,
    "enter-text-2": write_in_case,
    "enter-password": write_twice,
    "login-user": log_in,
    "login-user-popup": log_in,
    "enter-date": write_date,
    "enter-time": write_time,
    "copy-paste": copy,
    "copy-paste-2": copy,
    "text-transform": write_shown,
    "find-word": find_word,
    "scroll-text": last_word,
    "read-table": read_table,
    "read-table-2": read_table_twice,
    "simple-arithmetic": solve,
    "simple-algebra": solve_for_x,
    "guess-number": guess,
    "generate-number": generate,
    "use-autocomplete": complete,
    "use-autocomplete-nodelay": complete,
    "choose-date": choose_date,
    "choose-date-easy": choose_date,
    "choose-date-medium": choose_date,
    "choose-date-nodelay": choose_date,
    "use-spinner": spin,
    "use-slider": slide,
    "use-slider-2": slide,
    "form-sequence": form_with_slider,
    "form-sequence-2": form_with_radios,
    "form-sequence-3": form_with_list,
    "scroll-text-2": scroll_text,
    "use-colorwheel": write_colour,
    "sign-agreement": sign,
    "multi-layouts": search_movies,
    "multi-orderings": search_movies,
    "text-editor": style_text,
    "terminal": delete_file,
}
