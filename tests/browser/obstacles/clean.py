"""Pages with nothing in the way, although they look like it: what lies over them belongs to them."""

from collections.abc import Mapping

from tests.crawler.web import Reply

_OVER = "position:fixed;inset:0;background:rgba(0,0,0,.6);z-index:100"
_BOX = "position:fixed;top:150px;left:300px;width:600px;background:#fff;padding:30px;z-index:101"
_BAR = "position:fixed;left:0;right:0;bottom:0;background:#eee;padding:20px;z-index:50"
_HEAD = "position:fixed;left:0;right:0;top:0;background:#eee;padding:15px;z-index:50"
_CORNER = "position:fixed;right:20px;bottom:20px;width:320px;background:#fff;padding:15px;z-index:60;border:1px solid"


def _window(text: str) -> str:
    return f'<div style="{_OVER}"></div><div role="dialog" aria-modal="true" style="{_BOX}">{text}</div>'


CLEAN: Mapping[str, str] = {
    "cookie recipe": """<main><h1>Chocolate chip cookies</h1><p>We use cookies as the base of this cheesecake. Learn more about
        baking on our site.</p><button>Accept the challenge</button><button>Reject</button><button>Close</button></main>""",
    "cookie recipe under a fixed bar": f"""<div style="{_BAR}">Cookie recipe of the day: the best cookies for your experience
        as a baker. <button>Accept challenge</button> <button>Dismiss</button></div><h1>Recipes</h1>""",
    "cookie recipe in a window": _window(
        """<h2>How we make our cookies</h2><p>For these cookies use all the dough. Ingredients: butter, 200 g of sugar.</p>
        <button>OK</button><button>Close</button>"""
    ),
    "cookie shop's sticky header": """<header style="position:sticky;top:0;background:#fff">Cookies and cakes on our website
        <a href="/shop">Shop</a><button>Accept</button><button>OK</button></header><h1>Our cookies</h1>""",
    "article about cookie consent": """<article><h1>Cookie banners</h1><p>This website uses cookies, says every website. Consent,
        privacy, third parties and analytics are what it is about.</p><button>Accept all</button><button>Reject all</button></article>""",
    "cookie settings as a page": """<h1>Cookie settings</h1><p>We use cookies for analytics on our website.</p>
        <label><input type="checkbox">Analytics</label><button>Accept all</button><button>Reject all</button><button>Save</button>""",
    "button to the cookie settings": f"""<h1>News</h1><button style="position:fixed;left:10px;bottom:10px">Cookie settings</button>
        <div style="{_BAR}"><a href="/privacy">Privacy</a> <a href="/cookies">Cookie policy</a> <a href="/imprint">Imprint</a></div>""",
    "accept offer form": """<form><h1>Your offer</h1><p>Special offer: 20 % off for you</p><input name="name">
        <button>Accept offer</button><button>Decline</button></form>""",
    "accept offer window": _window(
        "<h2>You have an exclusive offer</h2><p>30% off your plan.</p><button>Accept offer</button><button>Decline</button><button>×</button>"
    ),
    "job offer window": _window(
        """<h2>Job offer</h2><p>By accepting you consent to our privacy policy and the processing of your personal data.</p>
        <button>Accept</button><button>Decline</button>"""
    ),
    "product window": _window(
        """<h2>Blue shirt</h2><p>$19.99, free shipping</p><select><option>S<option>M</select>
        <button>Add to cart</button><button aria-label="Close">×</button>"""
    ),
    "product window without fields": _window(
        """<h2>Blue shirt</h2><p>Special offer: 20% off, now € 15</p><button>S</button><button>M</button>
        <button>Add to basket</button><button>Close</button>"""
    ),
    "product details to read": _window(
        "<h2>Coffee grinder</h2><p>Price: $49. In stock.</p><button>Close</button>"
    ),
    "native product dialog": """<dialog id="d"><h2>Pick a size</h2><button>S</button><button>M</button><button>Buy now</button>
        <form method="dialog"><button>Close</button></form></dialog><script>d.showModal()</script>""",
    "login dialog": _window(
        """<h2>Welcome back</h2><input type="email"><input type="password"><button>Log in</button><button>Close</button>
        <p>By continuing you accept our use of cookies and the privacy policy.</p>"""
    ),
    "login by email": _window(
        "<h2>Sign in</h2><input type='email'><button>Continue</button><button aria-label='Close'>×</button>"
    ),
    "registration dialog": _window(
        """<h2>Welcome! Sign up</h2><input name="n"><input type="email"><input type="password"><button>Create account</button>
        <label><input type="checkbox">Subscribe to our newsletter</label><button>×</button>"""
    ),
    "cart drawer": f"""<div style="position:fixed;top:0;right:0;bottom:0;width:400px;background:#fff;z-index:9" role="dialog">
        <h2>Your cart</h2><p>2 items, 30% off: $20</p><button>Remove</button><button>Checkout</button><button>Close</button></div>
        <div style="{_OVER};z-index:8"></div><h1>Shop</h1>""",
    "chat widget": f"""<h1>Help</h1><div style="{_CORNER}"><p>Welcome! How can we help?</p><input placeholder="Type a message">
        <button>Send</button><button aria-label="Close">×</button></div>""",
    "chat teaser": f"""<h1>Help</h1><div style="{_CORNER}"><p>Hi there, chat with our team</p><button class="close">×</button></div>""",
    "chat in a frame": """<h1>Help</h1><iframe srcdoc="<script>addEventListener('click',()=>top.clicks++,true)</script>
        <p>Welcome! How can we help?</p><button>Close</button><button>No thanks</button>"
        style="position:fixed;right:10px;bottom:10px;width:350px;height:500px"></iframe>""",
    "sticky header with newsletter": f"""<header style="{_HEAD}"><nav><a href="/a">A</a><a href="/b">B</a></nav>
        <button>Subscribe to our newsletter</button><button>Close</button></header><h1>News</h1>""",
    "promotion bar": f"""<div style="{_HEAD}">Free shipping: 20% off today <button aria-label="Dismiss">×</button></div><h1>Shop</h1>""",
    "toast": f"""<h1>Mail</h1><div role="status" style="{_CORNER}">Message sent <button>Dismiss</button></div>""",
    "confirmation": _window(
        "<h2>Are you sure?</h2><p>3 files will be lost.</p><button>OK</button><button>Not now</button>"
    ),
    "error to read": _window("<h2>Payment failed</h2><p>Your card was refused.</p><button>OK</button>"),
    "age gate": _window(
        "<h2>Welcome</h2><p>Are you over 18 years old?</p><button>Yes</button><button>No</button>"
    ),
    "terms window": _window(
        "<h2>Our terms</h2><p>Please agree to our terms of service and the privacy policy.</p><button>I agree</button><button>Decline</button>"
    ),
    "player": """<h1>Video</h1><div style="position:fixed;inset:0;background:#000;color:#fff">
        <video></video><button>Play</button><button aria-label="Close">×</button></div>""",
    "application in a fixed root": """<div id="app" style="position:fixed;inset:0;overflow:auto"><nav><a href="/inbox">Inbox</a></nav><main>
        <h1>Inbox</h1><p>Newsletter: welcome to our newsletter, 20% off. We use cookies on this website.</p>
        <button>Close</button><button>Accept</button><button>Reject</button></main></div>""",
    "page of a game": """<div style="position:fixed;inset:0"><canvas width="800" height="600"></canvas><button>Skip</button>
        <p>Level 3. Score 200.</p></div>""",
    "survey as the page's work": """<div style="position:absolute;inset:0;z-index:20;background:#fff"><h1>Take our survey</h1>
        <form><textarea></textarea><input type="radio"><button>Submit</button><button>Skip</button></form></div>""",
    "menu": """<div popover id="m"><p>Menu</p><button>Profile</button><button>Log in</button><button>Close</button></div>
        <script>m.showPopover()</script><h1>Home</h1>""",
    "map with a panel": f"""<div style="position:fixed;inset:0"><div style="{_CORNER}"><h2>Route</h2><p>12 km</p>
        <button>Close</button></div></div>""",
}

_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page</title>
<script>clicks = 0; for (const kind of ["click", "keydown", "cancel"]) addEventListener(kind, () => clicks++, true);</script></head>
<body>{}<p>Text</p><div style="height:1500px"></div></body></html>"""


def clean_pages() -> Mapping[str, Reply]:
    """A page for each of `CLEAN` at `/clean/N`, which counts in `clicks` what is done to it."""
    return {f"/clean/{n}": Reply(_PAGE.format(body)) for n, body in enumerate(CLEAN.values())}
