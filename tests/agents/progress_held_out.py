"""Thirty ways to get on that only look stuck, written without a look at the detector's rules."""

import json

from tests.agents.patterns import Answer, alone, did
from tests.agents.stuck_held_out import FIELDS, HITS, trace

TOWNS = (
    "London",
    "Berlin",
    "Athens",
    "Moscow",
    "Dubai",
    "Karachi",
    "Dhaka",
    "Bangkok",
    "Hanoi",
    "Tokyo",
    "Sydney",
)
ERRORS = (
    "NameError: name 'np' is not defined",
    "ModuleNotFoundError: No module named 'numpy'",
    "FileNotFoundError: [Errno 2] No such file or directory: 'prices.csv'",
    "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xe9 in position 12",
    "KeyError: 'close'",
    "ValueError: could not convert string to float: '1.234,50'",
    "TypeError: unsupported operand type(s) for -: 'str' and 'float'",
    "ZeroDivisionError: division by zero",
)

PROGRESS: dict[str, list[Answer]] = {
    "clicks Next forty times": alone(
        *(
            did(
                "browser_click",
                f"URL https://a.test/list?page={n}\nItem {n}1, Item {n}2, Item {n}3\n[e7] Next",
                ref="e7",
            )
            for n in range(1, 41)
        )
    ),
    "clicks Next on a page that keeps its address": alone(
        *(
            did("browser_click", f"URL https://a.test/list\n{a} {b} in store\n[e7] Next", ref="e7")
            for a in ("red", "blue", "green", "black", "white")
            for b in ("shirts", "shoes", "hats", "coats")
        )
    ),
    "polls a build that tells how far it is": alone(
        *(did("bash_tool", f"build 42: running, {n} %\n", cmd="ci status 42") for n in range(0, 100, 5)),
        did("bash_tool", "build 42: passed\n", cmd="ci status 42"),
    ),
    "polls a build that says only that it runs": alone(
        *(did("bash_tool", "build 42: in progress\n", cmd="sleep 30; ci status 42") for _ in range(8)),
        did("bash_tool", "build 42: passed\n", cmd="sleep 30; ci status 42"),
    ),
    "watches a log grow": alone(
        *(
            did(
                "bash_tool",
                "".join(f"epoch {k}: loss {1 / (k + 1):.3f}\n" for k in range(n)),
                cmd="sleep 5; cat train.log",
            )
            for n in range(1, 16)
        )
    ),
    "types into ten fields": alone(
        *(did("browser_type", "Typed.", ref=f"e{n}", text=field) for n, field in enumerate(FIELDS))
    ),
    "ticks twelve boxes": alone(*(did("browser_click", "Clicked.", ref=f"e{n}") for n in range(12))),
    "tries again after another error each time": alone(
        *(
            did("python_repl_tool", trace(error, n + 1), code=f"step_{n}(prices)")
            for n, error in enumerate(ERRORS)
        ),
        did("python_repl_tool", "mean 17.2\n", code="analyse(prices)"),
    ),
    "runs the same program and mends one error after the other": alone(
        *(did("bash_tool", trace(error, n + 1), cmd="python a.py") for n, error in enumerate(ERRORS)),
        did("bash_tool", "mean 17.2\n", cmd="python a.py"),
    ),
    "mends and tests, with fewer failures each time": alone(
        *(
            step
            for n in range(9, -1, -1)
            for step in (
                did(
                    "str_replace_editor",
                    "Replaced 1 place in a.py.",
                    command="str_replace",
                    old=f"bug{n}",
                    new=f"fix{n}",
                ),
                did("bash_tool", f"{n} failed, {20 - n} passed in 1.{n}s", cmd="pytest -q"),
            )
        )
    ),
    "narrows a number down": alone(
        *(
            did("python_repl_tool", f"f({x}) = {x * x - 2}\n", code=f"print(f({x}))")
            for x in (1, 2, 1.5, 1.25, 1.375, 1.4375)
        )
    ),
    "reads a long file part by part": alone(
        *(
            did(
                "str_replace_editor",
                f"{n}\tvalue_{n} = {n * 37 % 101}",
                command="view",
                path="a.py",
                view_range=[n, n + 49],
            )
            for n in range(1, 1000, 50)
        )
    ),
    "searches for ten things": alone(
        *(
            did("tavily_search", json.dumps([{"title": f, "url": f"https://{f}.test/"}]), query=f"law on {f}")
            for f in FIELDS
        )
    ),
    "finds one new page a search": alone(
        *(
            did(
                "tavily_search",
                json.dumps([*HITS, {"title": f, "url": f"https://{f}.test/"}]),
                query=f"fusion and {f}",
            )
            for f in FIELDS
        )
    ),
    "reads pages of one site, framed alike": alone(
        *(
            did(
                "crawl_tool",
                f"Home | About | Contact\n\nThe {f} is a field of the form.\n\n© A Test",
                url=f"https://a.test/{f}",
            )
            for f in FIELDS
        )
    ),
    "writes ten files": alone(
        *(
            did("str_replace_editor", "File created.", command="create", path=f"{f}.md", file_text=f"# {f}")
            for f in FIELDS
        )
    ),
    "deletes files without a word": alone(*(did("bash_tool", "", cmd=f"rm {f}.tmp") for f in FIELDS)),
    "makes folders, moves files and commits without a word": alone(
        *(
            step
            for f in FIELDS[:5]
            for step in (
                did("bash_tool", "", cmd=f"mkdir {f}"),
                did("bash_tool", "", cmd=f"mv {f}.md {f}/"),
                did("bash_tool", "", cmd=f"git add {f} && git commit -q -m 'Move {f}'"),
            )
        )
    ),
    "reads and turns the page": alone(
        *(
            step
            for n in range(1, 13)
            for step in (
                did("browser_extract", f"{n}. {FIELDS[n % 10]} {n * 13}", what="rows"),
                did("browser_click", "Clicked.", ref="next"),
            )
        )
    ),
    "looks at the file after each change": alone(
        *(
            step
            for n, f in enumerate(FIELDS)
            for step in (
                did(
                    "str_replace_editor",
                    "Inserted 1 line.",
                    command="insert",
                    path="form.html",
                    line=n,
                    text=f,
                ),
                did("str_replace_editor", "\n".join(FIELDS[: n + 1]), command="view", path="form.html"),
            )
        )
    ),
    "asks for the time in eleven towns": alone(
        *(
            did(
                "time__get_current_time",
                json.dumps({"timezone": town, "datetime": f"2026-11-22T{n + 8:02d}:15"}),
                timezone=town,
            )
            for n, town in enumerate(TOWNS)
        )
    ),
    "scrolls through a long page": alone(
        *(
            did(
                "browser_scroll",
                f"{(15 - n) * 800} pixels below.\nParagraph {n} is about {FIELDS[n % 10]}.",
                pixels=800,
            )
            for n in range(15)
        )
    ),
    "waits a little after each click": alone(
        *(
            step
            for n, f in enumerate(FIELDS)
            for step in (
                did("browser_click", "Clicked.", ref=f"e{n}"),
                did("browser_wait", "Waited 2 seconds.", seconds=2),
                did("browser_extract", f"The {f} is shown.", what="panel"),
            )
        )
    ),
    "asks a person ten questions who says yes to each": alone(
        *(did("ask_human", "yes", question=f"Shall the {f} be on the form?") for f in FIELDS)
    ),
    "tries each page a second time where it must": alone(
        *(
            step
            for f in FIELDS
            for step in (
                did("crawl_tool", "Error: 503 Service Unavailable", True, url=f"https://a.test/{f}"),
                did("crawl_tool", f"The {f} must be filled.", url=f"https://a.test/{f}"),
            )
        )
    ),
    "asks for twelve articles, none of them in store": alone(
        *(did("shop__in_stock", "no", sku=f"A-{n}") for n in range(12))
    ),
    "asks the same twice at once and goes on": [
        [did("crawl_tool", f"The {f} is optional.", url=f"https://a.test/{f}")] * 2 for f in FIELDS
    ],
    "comes back to the first page between others": alone(
        *(
            step
            for f in FIELDS
            for step in (
                did("crawl_tool", "Contents: all fields of the form.", url="https://a.test/"),
                did("crawl_tool", f"The {f} has {len(f)} letters.", url=f"https://a.test/{f}"),
            )
        )
    ),
    "counts by month, some months alike": alone(
        *(
            did(
                "sql__query",
                f"count\n{3 if n % 2 else 5}",
                query=f"select count(*) from sales where month={n}",
            )
            for n in range(1, 13)
        )
    ),
    "installs ten packages": alone(
        *(did("bash_tool", f"Successfully installed {f}-1.0\n", cmd=f"pip install {f}") for f in FIELDS)
    ),
}
