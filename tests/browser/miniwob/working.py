"""Policies for tasks like those of a working day: mail, shops, search, social media."""

import re
from datetime import datetime

from tests.browser.miniwob.clicking import Policy
from tests.browser.miniwob.episode import Control, Episode
from tests.browser.miniwob.writing import field, pick_date


def _mail(task: Episode, sender: str) -> Control:
    """A mail's row in the inbox."""
    return next(one for one in task.all(role="div") if one.name.startswith(f"{sender} "))


def _icon(task: Episode, mail: Control, name: str) -> Control:
    return next(
        one for one in task.controls if one.index > mail.index and one.line >= mail.line and name in one.name
    )


async def _do_with_mail(task: Episode, kind: str, sender: str, words: str) -> None:
    for _ in range(6):
        if any(one.name.startswith(f"{sender} ") for one in task.all(role="div")):
            break
        await task.do("scroll_down", scroll_amount=60)
    mail = _mail(task, sender)
    if kind in ("trash", "star"):
        await task.click(_icon(task, mail, kind))
        return
    await task.click(mail)
    await task.click(next(one for one in task.controls if kind in one.name.lower()))
    fields = [one for one in task.controls if one.role in ("input", "textarea")]
    await task.write(fields[0] if kind == "forward" else fields[-1], words)
    await task.click(next(one for one in task.controls if "send" in one.name.lower()))


async def mail(task: Episode) -> None:
    """What is to be done stands in a sentence of a known form, or in words of any kind."""
    names = re.findall(r"\b[A-Z][a-z]+\b", task.goal)
    quoted = (task.quoted() or [""])[0]
    goal = task.goal.lower()
    known = [name for name in dict.fromkeys(names) if f"{name} " in task.text.split("\n", 1)[1]]
    sender = known[0]
    receivers = re.findall(r"\bto ([A-Z][a-z]+)", task.goal)
    if receivers and not quoted:
        receiver = receivers[-1]
        sender = next(name for name in [*known, *names] if name != receiver)
        await _do_with_mail(task, "forward", sender, receiver)
    elif quoted:
        await _do_with_mail(task, "reply", sender, quoted)
    else:
        await _do_with_mail(task, "trash" if "delet" in goal or "trash" in goal else "star", sender, "")


def _posts(task: Episode, user: str) -> list[int]:
    """The lines that begin a post of a user."""
    return [at for at, line in enumerate(task.lines[1:], 1) if f"{user} " in f"{line} "]


async def react_to_post(task: Episode) -> None:
    user, button = re.findall(r"user (@\w+), click on the \"(.*?)\" button", task.goal)[0]
    names = {"Reply": "(reply)", "Retweet": "(retweet)", "Like": "(like)"}
    line = _posts(task, user)[0]
    if button in names:
        await task.click(next(one for one in task.controls if one.line > line and one.name == names[button]))
        return
    for _ in range(2):
        # Its picture is another one under the mouse: while that is loading the first click meets nothing.
        if not task.has(button):
            await task.click(next(one for one in task.controls if one.line > line and one.name == "(more)"))
    await task.click(next(one for one in task.controls if one.name.startswith(button)))


async def react_to_posts(task: Episode) -> None:
    button, count, user = re.findall(r'"(\w+)" button on (\d+|all) posts? by (@\w+)', task.goal)[0]
    lines = _posts(task, user)
    for line in lines if count == "all" else lines[: int(count)]:
        await task.click(
            next(one for one in task.controls if one.line > line and one.name == f"({button.lower()})")
        )
    await task.submit()


async def search(task: Episode) -> None:
    place = int(re.findall(r"(\d+)(?:st|nd|rd|th)", task.goal)[0])
    await task.write(field(task), task.quoted()[0])
    await task.click("Search")
    for _ in range(4):
        results = [one for one in task.all(role="link") if not re.fullmatch(r"[\d<>]+", one.name)]
        if place <= len(results):
            break
        place -= len(results)
        await task.click(">")
    await task.click(results[place - 1])


async def find_contact(task: Episode) -> None:
    name, wanted = re.findall(r"Find (.+) in the contact book and click on their (.+)\.", task.goal)[0]
    for _ in range(15):
        if name in task.lines:
            break
        await task.click(">")
    line = next(
        line for line in range(len(task.lines)) if task.lines[line].lower().startswith(wanted.split()[0])
    )
    await task.click(next(one for one in task.controls if one.line == line))


async def order_food(task: Episode) -> None:
    items = task.goal.split(": ", 1)[1].split(", ")
    for item in items:
        line = next(at for at in range(1, len(task.lines)) if task.lines[at] == item)
        await task.click(next(one for one in task.controls if one.line > line and one.name == "+"))
    await task.click("Order!")


async def book_flight(task: Episode) -> None:
    kind, start, end, date = re.findall(
        r"Book the (\w+) one-way flight from: (.+) to: (.+) on (\d+/\d+/\d+)", task.goal
    )[0]
    for place, city in enumerate((start, end)):
        await task.write(field(task, place), city)
        await task.do("wait", seconds=0.5)
        await task.click(next(one for one in task.controls if city in one.name and one.role != "input"))
    await pick_date(task, datetime.strptime(date, "%m/%d/%Y"))
    await task.click("Search")
    flights = [one for one in task.controls if one.name.startswith("Book flight for $")]
    if kind == "cheapest":
        best = min(flights, key=lambda one: int(one.name.split("$")[1]))
    else:
        best = min(flights, key=lambda one: _minutes(task, one))
    await task.click(best)


def _minutes(task: Episode, flight: Control) -> int:
    shown = [line for line in task.lines[: flight.line] if "Duration" in line or re.search(r"\d+h", line)]
    hours, minutes = re.findall(r"(?:(\d+)h)? ?(?:(\d+)m)?$", shown[-1])[0]
    return int(hours or 0) * 60 + int(minutes or 0)


async def buy_stock(task: Episode) -> None:
    limit = float(re.findall(r"less than \$(\d+\.\d+)", task.goal)[0])
    for _ in range(60):
        price = re.findall(r"^(?:Stock price: ?)?\$([\d.]+)", task.text, re.M)
        if price and float(price[0]) < limit:
            break
        await task.do("wait", seconds=0.2)
    await task.click("Buy")


WORKING: dict[str, Policy] = {
    "email-inbox": mail,
    "email-inbox-delete": mail,
    "email-inbox-forward": mail,
    "email-inbox-forward-nl": mail,
    "email-inbox-important": mail,
    "email-inbox-noscroll": mail,
    "email-inbox-reply": mail,
    "email-inbox-star-reply": mail,
    "email-inbox-nl-turk": mail,
    "email-inbox-forward-nl-turk": mail,
    "social-media": react_to_post,
    "social-media-all": react_to_posts,
    "social-media-some": react_to_posts,
    "search-engine": search,
    "phone-book": find_contact,
    "order-food": order_food,
    "book-flight": book_flight,
    "book-flight-nodelay": book_flight,
    "stock-market": buy_stock,
}
