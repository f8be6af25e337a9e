"""Thirty ways to be stuck, written without a look at the detector's rules.

They tell how it judges what it has not seen. At first it took three of them (the comment, the anchors, the
talk to oneself) for getting on, and none of `progress_held_out` for stuck.
"""

import json

from tests.agents.patterns import Answer, alone, did, times

MANY = 24
HITS = [
    {"title": name, "url": f"https://{name}.test/fusion"} for name in ("iter", "jet", "nif", "wendelstein")
]
FIELDS = ("name", "street", "town", "zip", "country", "phone", "mail", "birthday", "company", "vat")
FUNCTIONS = ("parse", "load", "merge", "score", "rank", "cut", "write", "close")


def trace(error: str, line: int) -> str:
    place = f'File "/work/a.py", line {line}, in <module>'
    return f"Traceback (most recent call last):\n  {place}\n{error}\n[exit code 1]"


def _shuffled(turn: int) -> str:
    cut = turn % len(HITS)
    return json.dumps(HITS[cut:] + HITS[:cut])


STUCK: dict[str, list[Answer]] = {
    "asks for the same weather": times(MANY, did("weather__get", "12 degrees, rain", city="Oslo")),
    "runs the tests that fail as before, in other seconds": alone(
        *(
            did("bash_tool", f"E  assert 3 == 4\n1 failed in 0.{40 + n}s", cmd="pytest -q")
            for n in range(MANY)
        )
    ),
    "crawls a page that is gone": times(
        MANY, did("crawl_tool", "Error: 404 Not Found", True, url="https://a.test/x")
    ),
    "clicks two buttons in turn": times(
        MANY,
        did("browser_click", "Clicked. The page did not change.", ref="e3"),
        did("browser_click", "Clicked. The page did not change.", ref="e9"),
    ),
    "edits to and fro": times(
        MANY,
        did("str_replace_editor", "Replaced 1 place in a.py.", command="str_replace", old="x", new="y"),
        did("str_replace_editor", "Replaced 1 place in a.py.", command="str_replace", old="y", new="x"),
    ),
    "looks at a file and fails to change it": times(
        MANY,
        did("str_replace_editor", "1\tdef a():\n2\t    return 1", command="view", path="a.py"),
        did(
            "str_replace_editor",
            "Error: the old text is not in a.py",
            True,
            command="str_replace",
            old="def b()",
        ),
    ),
    "searches for the same in other letters": alone(
        *(
            did("tavily_search", json.dumps(HITS), query=words)
            for words in ["fusion power", "Fusion Power", "  fusion   power ", "FUSION POWER"] * 6
        )
    ),
    "puts the same words in another order": alone(
        *(
            did("tavily_search", json.dumps(HITS), query=words)
            for words in ["fusion power 2026", "2026 fusion power", "power fusion 2026", "power 2026 fusion"]
            * 6
        )
    ),
    "finds nothing whatever it asks for": alone(
        *(
            did("tavily_search", "No results.", query=f"annual report of the mill, edition {n}")
            for n in range(MANY)
        )
    ),
    "guesses addresses": alone(
        *(
            did(
                "crawl_tool",
                f"Error: https://a.test/report{n}.pdf answered 404 Not Found",
                True,
                url=f"https://a.test/report{n}.pdf",
            )
            for n in range(MANY)
        )
    ),
    "moves the same mistake through the file": alone(
        *(
            did(
                "python_repl_tool",
                trace("NameError: name 'df' is not defined", n),
                code="\n" * n + "df.head()",
            )
            for n in range(1, MANY + 1)
        )
    ),
    "changes a comment and counts again": alone(
        *(did("python_repl_tool", "42\n", code=f"print(total)  # try {n}") for n in range(MANY))
    ),
    "installs what is not there and imports it": times(
        MANY,
        did(
            "bash_tool",
            "ERROR: No matching distribution found for tabulax\n[exit code 1]",
            cmd="pip install tabulax",
        ),
        did(
            "python_repl_tool",
            trace("ModuleNotFoundError: No module named 'tabulax'", 1),
            code="import tabulax",
        ),
    ),
    "submits a form that stays as it is, at another second": alone(
        *(
            did("browser_click", f"12:04:{n:02d} URL https://a.test/form\n[e1] Name\n[e2] Send", ref="e2")
            for n in range(MANY)
        )
    ),
    "scrolls at the end of the page": times(
        MANY, did("browser_scroll", "Scrolled. 0 pixels below.\nImprint, Contact, Privacy", pixels=800)
    ),
    "goes round three pages": times(
        MANY,
        did("crawl_tool", "Prices: see the list.", url="https://a.test/prices"),
        did("crawl_tool", "List: see the catalogue.", url="https://a.test/list"),
        did("crawl_tool", "Catalogue: see the prices.", url="https://a.test/catalogue"),
    ),
    "asks a server that is gone": times(
        MANY, did("git__status", "Error: the MCP server git is not connected", True, repo="/work")
    ),
    "never fits the schema": alone(
        *(
            did(
                "calendar__add",
                "Error: start: Field required. The schema: {start: str, end: str}",
                True,
                begin=f"{n:02d}:00",
            )
            for n in range(MANY)
        )
    ),
    "lists a folder": times(MANY, did("bash_tool", "a.py\nb.py\nREADME.md\n", cmd="ls -1")),
    "prints a file and counts its lines": times(
        MANY,
        did("bash_tool", "alpha\nbeta\n", cmd="cat names.txt"),
        did("bash_tool", "2 names.txt\n", cmd="wc -l names.txt"),
    ),
    "runs into the same time limit": times(
        MANY, did("python_repl_tool", "Error: stopped after 30 seconds", True, code="train(model)")
    ),
    "greps for what is not there": alone(
        *(did("bash_tool", "[exit code 1]", cmd=f"grep -rn {name} src") for name in FUNCTIONS * 3)
    ),
    "asks again for what a person refused": times(
        MANY, did("bash_tool", "Error: the person did not allow this call.", True, cmd="rm -rf build")
    ),
    "reads one page under other anchors": alone(
        *(
            did("crawl_tool", "# Rates\nThe rate is 4 %.", url=f"https://a.test/rates#part-{n}")
            for n in range(MANY)
        )
    ),
    "talks to itself in the shell": alone(
        *(
            did("bash_tool", f"thinking about step {n}\n", cmd=f"echo thinking about step {n}")
            for n in range(MANY)
        )
    ),
    "gets an error with another number each time": alone(
        *(
            did("shop__order", f"Error 500: internal error (request id {n * 7919:08x})", True, sku="A-17")
            for n in range(1, MANY + 1)
        )
    ),
    "gets the same hits in another order": alone(
        *(did("tavily_search", _shuffled(n), query=f"fusion reactors list {n}") for n in range(MANY))
    ),
    "does the same two things at once": [
        [
            did("tavily_search", json.dumps(HITS), query="fusion"),
            did("crawl_tool", "Fusion is hot.", url="https://iter.test/"),
        ]
    ]
    * MANY,
    "gets on and then is stuck": [
        *alone(
            *(
                did("crawl_tool", f"Chapter {n}: about {name}s.", url=f"https://a.test/{n}")
                for n, name in enumerate(FIELDS)
            )
        ),
        *times(MANY, did("crawl_tool", "Error: 503 Service Unavailable", True, url="https://a.test/11")),
    ],
    "looks for a file in the same place": times(
        MANY,
        did("bash_tool", "in  out\n", cmd="ls /work"),
        did(
            "bash_tool",
            "cat: /work/data.csv: No such file or directory\n[exit code 1]",
            cmd="cat /work/data.csv",
        ),
    ),
}
