// What `text_entry.py` asks of an editable element: "kind", "read" its lines as they are drawn, "copy" them as the editor
// itself copies them, "select" all, or "paste" a text ("html": as paragraphs, too). Events are made here, so that nothing
// passes through the clipboard, which all pages share.
(element, {ask, text, html}) => {
  const LONGEST = 200_000;
  const isBlock = one => !/^(inline|contents|ruby|none)/.test(getComputedStyle(one).display);
  const isBreakOnly = one => one.childNodes.length === 1 && one.firstChild.nodeName === "BR";

  // Each block is a line of its own, each <br> ends one, but for the last of a block, which only gives it a height.
  const lines = () => {
    const found = [""];
    let isOpen = false;
    const write = words => { found[found.length - 1] += words; isOpen = true; };
    const end = () => { if (isOpen) { found.push(""); isOpen = false; } };
    const visit = node => {
      if (found.length > LONGEST) return;
      if (node.nodeType === Node.TEXT_NODE) return node.data && write(node.data);
      if (node.nodeType !== Node.ELEMENT_NODE || node.contentEditable === "false") return;
      if (node.nodeName === "BR") {
        const isFiller = !node.nextSibling && node.parentNode !== element;
        isOpen = true;
        if (!isFiller) end();
        return;
      }
      const block = node !== element && isBlock(node);
      if (block) end();
      for (const child of (node.shadowRoot ?? node).childNodes) visit(child);
      if (block) {
        isOpen ||= !node.firstChild;
        end();
      }
    };
    visit(element);
    if (!isOpen && found.length > 1) found.pop();
    return found.join("\n").slice(0, LONGEST);
  };

  const select = () => {
    element.focus();
    const range = element.ownerDocument.createRange();
    range.selectNodeContents(element);
    const selection = element.ownerDocument.getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
  };

  const dispatch = (type, data) => {
    const event = new ClipboardEvent(type, {clipboardData: data, bubbles: true, cancelable: true, composed: true});
    element.dispatchEvent(event);
    return event.defaultPrevented;
  };

  const paste = () => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    const escaped = line => line.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
    if (html) data.setData("text/html", text.split("\n").map(line => `<p>${escaped(line) || "<br>"}</p>`).join(""));
    return dispatch("paste", data);
  };

  const copy = () => {
    const data = new DataTransfer();
    return dispatch("copy", data) ? data.getData("text/plain").slice(0, LONGEST) : null;
  };

  if (ask === "read") return "value" in element ? String(element.value).slice(0, LONGEST) : lines();
  if (ask === "connected") return element.isConnected;
  if (ask === "select") return select();
  return ask === "paste" ? paste() : copy();
}
