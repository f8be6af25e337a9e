"""Editors and what else is edited: a text of several lines is in the editor's own document afterwards."""

import json
import re

import pytest

from maniple.errors import BrowserError
from tests.browser.driving import Driver
from tests.browser.widgets.bundles import PACKAGES, widget_pages
from tests.crawler.web import Reply, Site
from tests.sizes import rest_is_slow

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]
needs_packages = pytest.mark.skipif(
    not PACKAGES.is_dir(), reason="the packages are not here: bash setup.sh dev"
)

# Each sets `held`, a function that returns the lines of the editor's own document.
PLAIN = {
    "textarea": "<textarea aria-label=Text>old</textarea>"
    "<script>held = () => document.querySelector('textarea').value</script>",
    "contenteditable": "<div contenteditable aria-label=Text>old <b>text</b></div><script>"
    "held = () => document.querySelector('div').innerText</script>",
    "contenteditable of plain text": "<style>div { white-space: pre-wrap }</style>"
    "<div contenteditable=plaintext-only aria-label=Text>old</div><script>"
    "held = () => document.querySelector('div').innerText.replace(/\\n$/, '')</script>",
    "contenteditable that renders again": "<div contenteditable aria-label=Text>old</div><script>"
    "const box = document.querySelector('div'); held = () => box.innerText;"
    "box.oninput = () => { box.dataset.seen = box.innerText }</script>",
    "body of a frame": '<iframe id=f srcdoc="<body contenteditable aria-label=Text>old</body>"></iframe>'
    "<script>held = () => f.contentDocument.body.innerText</script>",
    "design mode": "<iframe id=f></iframe><script>f.contentDocument.designMode = 'on';"
    "f.contentDocument.body.innerHTML = 'old';"
    "f.contentDocument.body.ariaLabel = 'Text'; held = () => f.contentDocument.body.innerText</script>",
}
NPM = {
    "prosemirror": """
        import {EditorState} from "prosemirror-state"; import {EditorView} from "prosemirror-view";
        import {schema} from "prosemirror-schema-basic"; import {keymap} from "prosemirror-keymap";
        import {baseKeymap} from "prosemirror-commands";
        const doc = schema.node("doc", null, [schema.node("paragraph", null, schema.text("old"))]);
        const view = new EditorView(box, {state: EditorState.create({doc, plugins: [keymap(baseKeymap)]})});
        view.dom.setAttribute("aria-label", "Text");
        globalThis.held = () => view.state.doc.textBetween(0, view.state.doc.content.size, "\\n", "\\n");""",
    "lexical": """
        import {createEditor, $getRoot, $createParagraphNode, $createTextNode} from "lexical";
        import {registerRichText} from "@lexical/rich-text";
        const editor = createEditor({namespace: "test", onError: error => { throw error }});
        const root = box.appendChild(document.createElement("div")); root.contentEditable = "true";
        root.setAttribute("aria-label", "Text"); root.setAttribute("role", "textbox");
        editor.setRootElement(root); registerRichText(editor);
        editor.update(() => $getRoot().append($createParagraphNode().append($createTextNode("old"))));
        globalThis.held = () => editor.getEditorState().read(() => 
            $getRoot().getChildren().map(one => one.getTextContent()).join("\\n"));""",
    "quill": """
        import Quill from "quill";
        const quill = new Quill(box); quill.setText("old"); quill.root.setAttribute("aria-label", "Text");
        globalThis.held = () => quill.getText().replace(/\\n$/, "");""",
    "codemirror": """
        import {basicSetup, EditorView} from "codemirror";
        const view = new EditorView({doc: "old", extensions: [basicSetup, EditorView.contentAttributes.of(
            {"aria-label": "Text"})], parent: box});
        globalThis.held = () => view.state.doc.toString();""",
}
TEXTS = {
    "one line": "Dear Anna",
    "letter": "Best,\nAnna",
    "paragraphs": "Dear Bob,\n\nthank you for all of it.\n\nBest,\nAnna",
    "code": "def f(a):\n    if a:\n        return {'b': [a]}\n    return \"<x> & y\"",
    "list": "- one\n- two\n1. three\n# four",
    "long": "\n".join(f"line {n}" for n in range(200)),
    "nothing": "",
}


async def _write(driver: Driver, site: Site, text: str) -> str:
    """The text of the result, or of the error."""
    await driver.act("go_to_url", url=site.url)
    await driver.act("wait", seconds=0.2)
    try:
        return (await driver.on("input_text", "Text", text=text)).text
    except BrowserError as error:
        return str(error)


async def _held(driver: Driver) -> str:
    """The text of the editor's own document."""
    await driver.on("click_element", "Show")
    found = re.search("held: (.*)", (await driver.page.read()).text)
    assert found
    return str(json.loads(found[1])).rstrip("\n")


SHOW = """<button style=position:fixed;right:0;top:0;z-index:999 onclick="out.textContent = 'held: ' +
JSON.stringify(held().replaceAll('\\u00a0', ' '))">Show</button><pre id=out></pre>"""


@pytest.mark.parametrize("text", rest_is_slow(TEXTS, 4))
@pytest.mark.parametrize("editor", PLAIN)
async def test_an_editable_element_holds_what_is_written(
    editor: str, text: str, driver: Driver, site: Site
) -> None:
    site.pages["/"] = Reply(f"<!doctype html><title>Editor</title>{SHOW}{PLAIN[editor]}")
    assert (await _write(driver, site, TEXTS[text])).startswith("Input '")
    assert await _held(driver) == TEXTS[text]


@needs_packages
@pytest.mark.parametrize("editor", rest_is_slow(NPM, 2))
async def test_an_editor_holds_what_is_written(editor: str, driver: Driver, site: Site) -> None:
    site.pages.update(await widget_pages(NPM[editor], f"{SHOW}<div id=box></div>"))
    for text in TEXTS.values():
        assert (await _write(driver, site, text)).startswith("Input '"), text
        assert await _held(driver) == text
