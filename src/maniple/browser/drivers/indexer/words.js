// What a person would read of an element. Every length is bounded: a page may hold words of a megabyte.
const MAX_NAME = 120;
const MAX_NODES = 400;

const tidy = (words, limit = MAX_NAME) => {
  const short = String(words ?? "").slice(0, limit * 4).replace(/\s+/g, " ").trim();
  return short.length > limit ? `${short.slice(0, limit - 1)}…` : short;
};

const dataOf = (text, limit) => text.substringData(0, limit);

const WORDLESS = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SELECT", "TEXTAREA", "HEAD", "OBJECT", "DATALIST"]);

const childrenOf = (node) => {
  if (node.shadowRoot) return node.shadowRoot.childNodes;
  if (node.localName === "slot") {
    const assigned = node.assignedNodes();
    if (assigned.length) return assigned;
  }
  return node.childNodes;
};

const parentOf = (node) => node.assignedSlot ?? node.parentNode ?? node.host ?? null;

// The visible text inside `element`, pictures by their alternative text, at most `limit` characters.
const textOf = (element, limit = MAX_NAME) => {
  const parts = [];
  const todo = [element];
  let length = 0;
  for (let visited = 0; todo.length && visited < MAX_NODES && length <= limit; visited++) {
    const node = todo.pop();
    if (node.nodeType === Node.TEXT_NODE) {
      const words = dataOf(node, limit * 4);
      parts.push(words);
      length += words.trim().length;
    } else if (node === element || isReadable(node)) {
      if (node.localName === "img" && node.alt) parts.push(` ${node.alt.slice(0, limit)} `);
      const children = childrenOf(node);
      for (let at = Math.min(children.length, MAX_NODES) - 1; at >= 0; at--) todo.push(children[at]);
    }
  }
  return tidy(parts.join(" "), limit);
};

const isReadable = (node) =>
  node.nodeType === Node.ELEMENT_NODE && !WORDLESS.has(node.tagName) && (node.checkVisibility?.({ visibilityProperty: true }) ?? true);

const namedBy = (element, attribute) => {
  const root = element.getRootNode();
  const ids = (element.getAttribute(attribute) ?? "").slice(0, 500).split(/\s+/).filter(Boolean).slice(0, 5);
  return tidy(ids.map((id) => textOfAny(root.getElementById?.(id))).join(" "));
};

// A label may be hidden and still name.
const textOfAny = (element) => (element ? textOf(element) || tidy(element.textContent?.slice(0, 1000)) : "");

const labelsOf = (element) => tidy([...(element.labels ?? [])].slice(0, 3).map((label) => textOf(label)).join(" "));

const BUTTONS = /^(submit|button|reset)$/;
const FIELDS = /^(INPUT|SELECT|TEXTAREA)$/;

const nameOf = (element) => {
  const named = namedBy(element, "aria-labelledby") || tidy(element.getAttribute("aria-label")) || labelsOf(element);
  if (named) return named;
  if (FIELDS.test(element.tagName)) return nameOfField(element);
  return (element.isContentEditable ? "" : textOf(element)) || titleOf(element) || iconOf(element);
};

const nameOfField = (field) => {
  if (BUTTONS.test(field.type)) return tidy(field.value) || titleOf(field) || field.type;
  if (field.type === "image") return tidy(field.alt) || titleOf(field) || "image";
  return titleOf(field) || (field.placeholder ? "" : tidy(field.name || field.id, 40));
};

const titleOf = (element) =>
  tidy(element.getAttribute("title") || element.getAttribute("alt") || element.querySelector("[alt]:not([alt=''])")?.getAttribute("alt") ||
    element.querySelector("svg title")?.textContent?.slice(0, 500) || element.querySelector("[title]")?.getAttribute("title") ||
    element.querySelector("[aria-label]")?.getAttribute("aria-label"));

// An icon without any words: what its class or its picture calls it is all that a reader has.
const iconOf = (element) => {
  const icon = element.querySelector("svg, i, use, img, [class*=icon]") ?? element;
  const link = icon.querySelector?.("use") ?? icon;
  const file = (link.getAttribute("href") ?? link.getAttribute("xlink:href") ?? icon.getAttribute("src") ?? "").slice(-80);
  const hint = /[#/]([\w-]+)(?:\.\w+)?$/.exec(file)?.[1] ?? icon.getAttribute("class") ?? element.getAttribute("class") ?? element.id;
  return hint ? tidy(`(${String(hint).slice(0, 200).trim()})`, 50) : "";
};
