"""The pages of the contract suite."""

from tests.crawler.web import Reply

FORM = """<!doctype html><title>A form</title><h1>Order</h1>
<form onsubmit="return false">
<input type=text name=who placeholder="Your name"
  onkeydown="if (event.key === 'Enter') document.title = 'entered'">
<input type=password name=secret placeholder="Secret">
<select name=size><option value=s>Small</option><option value=l>Large</option></select>
<button type=button id=go onclick="document.title = 'clicked'; document.getElementById('out').textContent =
  [...document.querySelectorAll('input, select')].map(one => one.value).join('|')">Send it</button>
<button type=button onclick="this.previousElementSibling.textContent = 'Delete everything'">Change</button>
</form><p id=out></p><a href="/next">The next page</a>
<div style="height: 4000px"></div><p>Far below</p>"""
NEXT = "<!doctype html><title>Next</title><p>You went on.</p><a href='/form'>Back to the form</a>"
PAGES = {"/form": Reply(FORM), "/next": Reply(NEXT)}
