// What a person would read of an element. Every length is bounded: a page may hold words of a megabyte.
const MAX_NAME = 120;
const MAX_NODES = 400;
const WORDLESS = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "SELECT", "TEXTAREA", "HEAD", "OBJECT", "DATALIST", "title", "desc", "defs", "metadata"]);

const tidy = (words, limit = MAX_NAME) => {
  const short = String(words ?? "").slice(0, limit * 4).replace(/\s+/g, " ").trim();
  return short.length > limit ? `${short.slice(0, limit - 1)}…` : short;
};

// The visible words in an element, pictures by their alternative text, without what `skipped` is true for.
const textOf = (element, limit = MAX_NAME, skipped = () => false) => {
  const parts = [];
  const todo = [element];
  let length = 0;
  for (let visited = 0; todo.length && visited < MAX_NODES && length <= limit; visited++) {
    const node = todo.pop();
    if (isText(node)) {
      const words = node.substringData(0, limit * 4);
      parts.push(words);
      length += words.trim().length;
    } else if (node === element || (isReadable(node) && !skipped(node))) {
      if (tagOf(node) === "IMG" && node.alt) parts.push(` ${node.alt.slice(0, limit)} `);
      const spaced = node !== element && !/^inline/.test(getComputedStyle(node).display);
      const children = isSilent(node) ? [...childrenOf(node)].filter(isElement) : childrenOf(node);
      if (spaced) parts.push(" ");
      for (let at = Math.min(children.length, MAX_NODES) - 1; at >= 0; at--) todo.push(children[at]);
    }
  }
  return tidy(parts.join(""), limit);
};

// What has no box counts as not visible, whatever is drawn of its children.
const isReadable = (node) => isElement(node) && !WORDLESS.has(tagOf(node)) && (isVisible(node, { visibilityProperty: true }) || isBoxless(node));
// Its children may be visible all the same.
const isSilent = (node) => isBoxless(node) && getComputedStyle(node).visibility !== "visible";

// Others may be hidden and name all the same.
const textOfOther = (other) => (other ? textOf(other) || tidy(other.textContent?.slice(0, 1000)) : "");

const labelledBy = (element) => {
  const root = element.getRootNode();
  const byId = (id) => (root instanceof ShadowRoot ? root.getElementById(id) : getElementById(id));
  const ids = (element.getAttribute("aria-labelledby") ?? "").slice(0, 500).split(/\s+/).filter(Boolean).slice(0, 5);
  return tidy(ids.map((id) => textOfOther(byId(id))).join(" "));
};

const labelsOf = (element) => [...(element.labels ?? [])].slice(0, 3);

const BUTTONS = /^(submit|button|reset)$/;
const FIELDS = /^(INPUT|SELECT|TEXTAREA)$/;

const nameOf = (element) => {
  const named = labelledBy(element) || tidy(element.getAttribute("aria-label")) || tidy(labelsOf(element).map(textOfOther).join(" "));
  if (named) return named;
  if (FIELDS.test(tagOf(element))) return nameOfField(element);
  return (element.isContentEditable ? "" : textOf(element)) || titleOf(element) || iconOf(element);
};

const nameOfField = (field) => {
  if (BUTTONS.test(field.type)) return tidy(field.value) || titleOf(field) || field.type;
  if (field.type === "image") return titleOf(field) || "image";
  return titleOf(field) || (field.placeholder ? "" : tidy(field.name || field.id, 40));
};

const titleOf = (element) => {
  const of = (selector, attribute) => findInside(element, selector)?.getAttribute(attribute)?.slice(0, 500);
  return tidy(
    element.getAttribute("title") || element.getAttribute("alt") || of("[alt]:not([alt=''])", "alt") ||
      findInside(element, "title")?.textContent.slice(0, 500) || of("[title]", "title") || of("[aria-label]", "aria-label"),
  );
};

// Not those that come with the pointer or the focus: the element stays what it is.
const PASSING = /hover|active|focus|press|state/i;
const lastingClasses = (element) => {
  const classes = element.getAttribute("class");
  return classes === null ? null : classes.slice(0, 200).split(/\s+/).filter((one) => !PASSING.test(one)).join(" ");
};

// An icon without any words: what its class or its picture is called is all that there is to read.
const iconOf = (element) => {
  const icon = findInside(element, "svg, i, use, img, [class*=icon]") ?? element;
  const source = icon.querySelector("use") ?? icon;
  const file = (source.getAttribute("href") ?? source.getAttribute("xlink:href") ?? source.getAttribute("src") ?? "").slice(-80);
  const hint = /[#/]([\w-]+)(?:\.\w+)?$/.exec(file)?.[1] ?? lastingClasses(icon) ?? lastingClasses(element) ?? element.id;
  return hint ? tidy(`(${String(hint).slice(0, 200).trim()})`, 50) : "";
};
