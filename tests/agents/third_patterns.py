"""Twenty ways to be stuck and twenty that only look like it, of tools of others.

They differ from the earlier sets in what those tools say: in words of their own, in camelCase, in another
language, in JSON, or nothing but that it was done.
"""

import json

from tests.agents.patterns import Answer, alone, did, times

MANY = 25
WORDS = ("ada", "bela", "cyd", "dov", "eda", "fay", "gil", "hal", "ida", "jon", "kim", "lea", "mia", "ned")
ARCHIVED = (
    '{"status": "success", "message": "The message was archived and removed from the inbox of the user."}'
)
LINKS = "Links: " + " ".join(f"<https://old.test/page-{n}>" for n in range(20))


def asked(result: str, tool: str = "find_user", argument: str = "name") -> list[Answer]:
    return alone(*(did(tool, result, **{argument: f"user {n}"}) for n in range(MANY)))


STUCK: dict[str, list[Answer]] = {
    "nobody of that name": asked("Not found"),
    "no data": asked("No data found.", "weather__history", "town"),
    "no records": asked("No records found", "crm__search", "filter"),
    "no rows": asked("0 rows", "sql__query", "query"),
    "an empty list inside of JSON": asked('{"results": []}', "web__search", "q"),
    "an empty list and a time": alone(
        *(
            did("web__search", json.dumps({"results": [], "response_time": n / 7}), q=f"mill {n}")
            for n in range(MANY)
        )
    ),
    "nothing, in Chinese": asked("未找到结果", "search_notes", "text"),
    "nothing, in German": asked("Keine Treffer", "suche", "wort"),
    "elements that are not there": alone(
        *(did("click_element", f"Element with index {n} does not exist.", index=n) for n in range(MANY))
    ),
    "clicks that do nothing": alone(
        *(did("browserClick", "The page did not change.", ref=f"e{n}") for n in range(MANY))
    ),
    "attempts that are counted": alone(
        *(did("fetch", f"attempt {n} failed", url="https://a.test") for n in range(MANY))
    ),
    "a limit that counts down": alone(
        *(
            did("api__get", json.dumps({"error": "rate limited", "retry_after": 60 - n}), path="/x")
            for n in range(MANY)
        )
    ),
    "a refusal that took its time": alone(
        *(did("api__get", json.dumps({"ok": False, "durationMs": n * 13}), path="/x") for n in range(MANY))
    ),
    "commands that are not there": alone(
        *(
            did("bash_tool", f"bash: tool{n}: command not found\n[exit code 127]", cmd=f"tool{n} --help")
            for n in range(MANY)
        )
    ),
    "programs that cannot connect": alone(
        *(did("python_repl_tool", "Error: could not connect", code=f"connect({n})") for n in range(MANY))
    ),
    "issues that cannot be made": alone(
        *(did("jira__createIssue", "Permission denied", summary=f"part {n}") for n in range(MANY))
    ),
    "notes with the same text": asked("See the handbook.", "notes__look", "topic"),
    "addresses that were guessed": alone(
        *(did("fetch", "HTTP 404", True, url=f"https://a.test/{n}.pdf") for n in range(MANY))
    ),
    "a call of which only the letters differ": alone(
        *(did("getWeather", "12 degrees", city=("Oslo", "OSLO", " oslo ")[n % 3]) for n in range(MANY))
    ),
    "a menu opened and closed": times(
        MANY, did("pressKey", "Menu open", key="m"), did("pressKey", "Menu shut", key="m")
    ),
}

PROGRESS: dict[str, list[Answer]] = {
    "mails archived": alone(*(did("mail__archive_message", ARCHIVED, id=n) for n in range(20))),
    "issues made, in camelCase": alone(
        *(did("jira__createIssue", '{"ok": true}', summary=word) for word in WORDS)
    ),
    "comments": alone(
        *(did("addComment", "The comment is there for all who follow it. " * 2, issue=n) for n in range(20))
    ),
    "tasks ticked off": alone(*(did("todo__complete_task", ARCHIVED, id=n) for n in range(20))),
    "next, next, next": times(20, did("browser_click", "Clicked element with index 7", index=7)),
    "keys pressed": times(20, did("press_key", "ok", key="PageDown")),
    "links of a page checked": [
        [did("crawl_tool", LINKS, url="https://old.test/")],
        *alone(
            *(
                did("crawl_tool", "crawl_tool failed: HTTP 404", True, url=f"https://old.test/page-{n}")
                for n in range(20)
            )
        ),
    ],
    "numbers that are prime or not": alone(*(did("check", "false", n=n) for n in range(20))),
    "counts, many of them alike": alone(*(did("count", "0", word=word) for word in WORDS)),
    "rows inserted": alone(*(did("sql__query", "1 row affected", query=f"INSERT {n}") for n in range(20))),
    "users invited": alone(*(did("team__invite", "Invited.", user=word) for word in WORDS)),
    "pages approved": alone(*(did("approvePage", "approved", page=n) for n in range(20))),
    "photos rotated": alone(*(did("photos__rotate", "Rotated by 90 degrees.", id=n) for n in range(20))),
    "files checked, all sound": alone(*(did("lint", "No errors.", path=f"{word}.py") for word in WORDS)),
    "a download that gets on": alone(
        *(did("download", f"{n} of 40 parts missing", id="d") for n in range(40, 20, -1))
    ),
    "errors at other lines": alone(
        *(did("make", f"a.c:{n}: unknown name\n[exit code 2]", target="all") for n in range(20))
    ),
    "no more than a page each": alone(
        *(did("list_items", json.dumps({"error": None, "items": [n]}), after="") for n in range(20))
    ),
    "people who are in, or not": alone(
        *(did("is_in", ("in the office", "not in")[n % 3 == 0], name=word) for n, word in enumerate(WORDS))
    ),
    "pictures of each page": [
        one
        for n in range(12)
        for one in alone(did("web__next", "Clicked: #next"), did("web__shot", f"[image: s-{n:08x}.png]"))
    ],
    "folders moved": alone(*(did("fs__moveFile", "Moved.", source=word, target="old") for word in WORDS)),
}
