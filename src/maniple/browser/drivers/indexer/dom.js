// Reading the tree. In any world a form answers with its fields where these have the name of what it is asked
// for, and a document with its pictures: what must not fail is asked of the prototypes.
const MAX_INSIDE = 120;
const uncurried = Function.prototype.bind.bind(Function.prototype.call);
const property = (prototype, name) => uncurried(Object.getOwnPropertyDescriptor(prototype, name).get);

const typeOf = property(Node.prototype, "nodeType");
const parentNodeOf = property(Node.prototype, "parentNode");
const childNodesOf = property(Node.prototype, "childNodes");
const tagOf = property(Element.prototype, "tagName");
const shadowOf = property(Element.prototype, "shadowRoot");
const slotOf = property(Element.prototype, "assignedSlot");
const childCountOf = property(Element.prototype, "childElementCount");
const innerWidthOf = property(Element.prototype, "scrollWidth");
const innerHeightOf = property(Element.prototype, "scrollHeight");
const isInert = property(HTMLElement.prototype, "inert");
const rectOf = uncurried(Element.prototype.getBoundingClientRect);
const isVisible = uncurried(Element.prototype.checkVisibility);
const matches = uncurried(Element.prototype.matches);
const tell = uncurried(EventTarget.prototype.dispatchEvent);
const inDocument = (name) => uncurried(Document.prototype[name]).bind(null, document);

const elementFromPoint = inDocument("elementFromPoint");
const createElement = inDocument("createElement");
const querySelectorAll = inDocument("querySelectorAll");
const getElementById = inDocument("getElementById");
const rootElement = () => property(Document.prototype, "documentElement")(document);
const bodyElement = () => property(Document.prototype, "body")(document) ?? rootElement();

const isElement = (node) => typeOf(node) === Node.ELEMENT_NODE;
const isText = (node) => typeOf(node) === Node.TEXT_NODE;

// As the page is drawn: what is in a shadow root stands for its host's children, but for those given a slot.
const childrenOf = (element) => {
  const shadow = shadowOf(element);
  if (shadow) return childNodesOf(shadow);
  const assigned = tagOf(element) === "SLOT" ? element.assignedNodes() : [];
  return assigned.length ? assigned : childNodesOf(element);
};

const parentOf = (node) => {
  if (node instanceof ShadowRoot) return node.host;
  const slot = isElement(node) ? slotOf(node) : isText(node) ? node.assignedSlot : null;
  return slot ?? parentNodeOf(node);
};

const parentElementOf = (element) => {
  let parent = parentOf(element);
  while (parent && !isElement(parent)) parent = parentOf(parent);
  return parent ?? rootElement();
};

// What is drawn inside an element, outermost first, at most `limit` nodes.
const insideOf = (element, limit = MAX_INSIDE) => {
  const found = [...childrenOf(element)].slice(0, limit);
  for (let at = 0; at < found.length && found.length < limit; at++) {
    if (isElement(found[at])) found.push(...[...childrenOf(found[at])].slice(0, limit - found.length));
  }
  return found;
};
const elementsIn = (element, limit) => insideOf(element, limit).filter(isElement);
const findInside = (element, selector) =>
  element.querySelector(selector) ?? elementsIn(element).find((inner) => matches(inner, selector)) ?? null;

// `display: contents`, as of every <slot>: its children are drawn, it has no box of its own.
const isBoxless = (element) => getComputedStyle(element).display === "contents";

const isWithin = (node, element) => {
  for (let at = node, steps = 0; at && steps < 500; at = parentOf(at), steps++) if (at === element) return true;
  return false;
};
