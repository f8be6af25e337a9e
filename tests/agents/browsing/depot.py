"""A depot on loopback: a login, a table over three pages of one address, a download and a form."""

from collections.abc import Mapping

from tests.crawler.web import Reply

_ROWS = [
    *(("A-100", "Bolts M6", 120), ("A-101", "Bolts M8", 40), ("A-102", "Nuts M6", 310)),
    *(("B-200", "Rope 8 mm", 14), ("B-201", "Rope 12 mm", 3), ("B-202", "Hooks", 77)),
    *(("C-300", "Gloves L", 9), ("C-301", "Gloves XL", 0), ("C-302", "Masks", 260)),
]
LOW = [number for number, _, stock in _ROWS if stock < 10]
"""The articles to order: those of which there are fewer than 10."""
USER, PIN = "ada", "4711"
_TABLE = """<h1>Stock</h1>
<table><thead><tr><th>Article</th><th>Name</th><th>Stock</th></tr></thead><tbody></tbody></table>
<p><button id=back>Previous</button> <span id=at></span> <button id=next>Next page</button></p>
<p><a href="/suppliers.csv" download>Suppliers</a> <a href="/order">New order</a></p>
<script>
const rows = %s; let page = 0;
function show() {
  document.querySelector('tbody').innerHTML = rows.slice(3 * page, 3 * page + 3).map(
    (row) => '<tr>' + row.map((cell) => `<td>${cell}</td>`).join('') + '</tr>').join('');
  at.textContent = `Page ${page + 1} of 3`; back.disabled = page === 0; next.disabled = page === 2;
}
next.onclick = () => { page += 1; show(); };
back.onclick = () => { page -= 1; show(); };
show();
</script>"""
_LOGIN = """<h1>Depot</h1>
<form onsubmit="event.preventDefault();
  location = user.value === '%s' && pin.value === '%s' ? '/stock' : '/?wrong'">
<label>User <input id=user></label> <label>PIN <input id=pin type=password></label> <button>Log in</button>
</form>"""
_ORDER = """<h1>New order</h1><form action="/ordered">
<label>Supplier <input name=supplier required></label>
<label>Articles <textarea name=articles rows=4 required></textarea></label>
<label>Urgency <select name=urgency><option>normal</option><option>urgent</option></select></label>
<label><input type=checkbox name=checked required> I have checked the stock</label>
<button>Send the order</button></form>"""
_SUPPLIERS = "supplier,articles\nNorth Ropes,B-\nHandwear Ltd,C-\nBolt Bros,A-\n"


def _page(body: str) -> Reply:
    return Reply(f"<!doctype html><title>Depot</title>{body}")


DEPOT: Mapping[str, Reply] = {
    "/": _page(_LOGIN % (USER, PIN)),
    "/?wrong": _page("<p>The PIN is wrong.</p>" + _LOGIN % (USER, PIN)),
    "/stock": _page(_TABLE % [list(row) for row in _ROWS]),
    "/suppliers.csv": Reply(_SUPPLIERS, "text/csv"),
    "/order": _page(_ORDER),
    "/ordered": _page("<h1>Thank you</h1><p>Your order 8842 was sent.</p>"),
}
TASK = (
    f"Log in to the depot at {{url}} as {USER} with the PIN {PIN}. Find all articles of which there are "
    "fewer than 10. Download the list of suppliers, and send one urgent order for those of the supplier "
    "who has most of them (the list names the first letters of a supplier's articles). Tell me the "
    "articles and the order's number."
)
