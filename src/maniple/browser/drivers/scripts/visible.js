// The document as HTML, without what is not seen and with what stands in open shadow roots where it is seen.
limit => {
  const VOID = new Set(["area", "br", "col", "embed", "hr", "img", "input", "source", "track", "wbr"]);
  const LEFT_OUT = new Set([
    "script", "style", "noscript", "template", "link", "iframe", "frame", "object", "canvas", "svg", "video", "audio",
  ]);
  const KEPT = ["id", "class", "lang", "title", "alt", "colspan", "rowspan", "datetime", "itemprop", "start", "open"];
  const LONGEST = 2000;
  const DEEPEST = 400;
  const parts = [];
  let left = limit;

  const put = text => { parts.push(text); left -= text.length; };
  const escaped = text => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
  const attribute = (name, value) => ` ${name}="${escaped(String(value).slice(0, LONGEST))}"`;

  const attributes = element => {
    const found = KEPT.filter(name => element.hasAttribute(name)).map(name => attribute(name, element.getAttribute(name)));
    // As properties: these are absolute.
    if (typeof element.href === "string" && element.href) found.push(attribute("href", element.href));
    if (element.localName === "img" && element.currentSrc) found.push(attribute("src", element.currentSrc));
    return found.join("");
  };

  const children = element => {
    if (element.localName === "slot") {
      const given = element.assignedNodes({flatten: true});
      if (given.length) return given;
    }
    return (element.shadowRoot ?? element).childNodes;
  };

  // Readers take a dialog for a banner; here it is what is looked at.
  const named = name => name === "dialog" ? "section" : /^[a-z][a-z0-9]*$/.test(name) ? name : "div";

  const seen = element => {
    if (element.localName === "slot" || element.localName === "option") return true;
    const style = getComputedStyle(element);
    return style.display !== "none" && (style.visibility === "visible" || element.childElementCount > 0);
  };

  const walk = (node, depth) => {
    if (left <= 0 || depth > DEEPEST) return;
    if (node.nodeType === Node.TEXT_NODE) return put(escaped(node.data.slice(0, left)));
    if (node.nodeType !== Node.ELEMENT_NODE || LEFT_OUT.has(node.localName) || !seen(node)) return;
    const name = named(node.localName);
    put(`<${name}${attributes(node)}>`);
    if (VOID.has(name)) return;
    for (const child of children(node)) walk(child, depth + 1);
    put(`</${name}>`);
  };

  put(`<html><head><title>${escaped(String(document.title).slice(0, LONGEST))}</title></head>`);
  if (document.body) walk(document.body, 0);
  put("</html>");
  return parts.join("");
}
