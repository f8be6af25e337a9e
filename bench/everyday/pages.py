"""A search engine on loopback in the place of the web: SearXNG's JSON API over a few encyclopaedic texts."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

PAGES = {
    "Paris": "Paris is the capital and largest city of France, on the river Seine.",
    "France": "France is a country in western Europe. Its capital is Paris.",
    "Lyon": "Lyon is the third-largest city of France, known for its cuisine and its silk.",
    "Romeo and Juliet": "Romeo and Juliet is a tragedy by William Shakespeare, of about 1595.",
    "West Side Story": "West Side Story is a musical of 1957, inspired by Romeo and Juliet.",
    "Continent": "A continent is a large landmass. Seven are usually counted: Asia, Africa, "
    "North America, South America, Antarctica, Europe and Australia.",
    "Continental drift": "Continental drift is the theory that continents have moved.",
    "Mona Lisa": "The Mona Lisa is a portrait painting by Leonardo da Vinci, shown in the Louvre.",
    "Louvre": "The Louvre is a museum in Paris. It shows the Mona Lisa and the Venus de Milo.",
    "Gold": "Gold is a chemical element. Its chemical symbol is Au, from Latin aurum.",
    "Silver": "Silver is a chemical element with the symbol Ag. Its number is 47.",
    "Spider": "Spiders are arthropods with eight legs. They are the largest order of arachnids.",
    "Insect": "Insects are arthropods with six legs and three body parts.",
    "Library": "A library (German: Bibliothek, French: bibliothèque) is a collection of books.",
    "Spanish language": "In Spanish water is agua, fire is fuego, earth is tierra and air is aire.",
    "French language": "French phrases: merci (thank you), merci beaucoup (thank you very much).",
    "German language": "German greetings: Guten Morgen (good morning), Wie geht es Ihnen? (how are you?).",
    "Apollo 11": "Apollo 11 landed on the Moon on Sunday, 20 July 1969.",
    "Leap year": "A leap year has 366 days. Centuries are leap years only if 400 divides them.",
    "Palindrome": "A palindrome reads the same backwards, such as racecar, level and noon.",
    "Prime number": "A prime number has exactly two divisors. The first are 2, 3, 5, 7 and 11.",
    "Day": "A day has 24 hours of 3,600 seconds.",
}
_WORD = re.compile(r"\w{3,}")


class _Search(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query).get("q", [""])[0]
        body = json.dumps({"results": list(_find(query))}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def _find(query: str) -> Iterator[dict[str, str]]:
    asked = {word.casefold() for word in _WORD.findall(query)}
    scores = {
        title: len(asked & {word.casefold() for word in _WORD.findall(f"{title} {text}")})
        for title, text in PAGES.items()
    }
    for title in sorted(scores, key=lambda title: -scores[title])[:5]:
        if scores[title]:
            name = title.replace(" ", "_")
            yield {"title": title, "url": f"https://en.example.org/wiki/{name}", "content": PAGES[title]}


@contextmanager
def serving_search() -> Iterator[str]:
    """Serve the search and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Search)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
