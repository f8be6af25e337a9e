// What of a frame a person can see and reach. A view is the part of the window that shows the frame.
const SMALLEST = 2;
const GRID = 6;
const POINTS = [[0.5, 0.5], [0.15, 0.2], [0.85, 0.8], [0.15, 0.8], [0.85, 0.2]];

// `layer` is what covers the whole view, if anything does: nothing else can be used before it is gone.
const viewOf = ({ clip, mask, margin }) => {
  const [left, top, right, bottom] = clip ?? [0, 0, innerWidth, innerHeight];
  const view = { left, top, right, bottom, mask: mask ?? "", margin };
  const pinned = [];
  view.hits = new Set();
  const hits = gridOver(view).map(([x, y]) => elementAt(x, y)).filter(Boolean);
  for (const hit of hits) {
    const root = pinnedRootOf(hit, view.hits);
    if (root) pinned.push(root);
  }
  view.layer = modalOf(hits) ?? (pinned.length && pinned.length >= 0.9 * hits.length ? new Set(pinned) : null);
  return view;
};

const gridOver = ({ left, top, right, bottom }) => {
  const points = [];
  for (let row = 0; row < GRID; row++) {
    for (let column = 0; column < GRID; column++) {
      points.push([left + ((column + 0.5) / GRID) * (right - left), top + ((row + 0.5) / GRID) * (bottom - top)]);
    }
  }
  return points;
};

const modalOf = (hits) => {
  const modals = [...querySelectorAll("dialog:modal")];
  const top = modals.findLast((dialog) => hits.some((hit) => isWithin(hit, dialog))) ?? modals.at(-1);
  return top ? new Set([top]) : null;
};

const elementAt = (x, y) => {
  let hit = elementFromPoint(x, y);
  for (let shadow = hit && shadowOf(hit); shadow; shadow = shadowOf(hit)) {
    const inner = shadow.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
};

// The outermost fixed element that `hit` is in; all that is passed on the way is noted.
const pinnedRootOf = (hit, passed) => {
  let root = null;
  for (let node = hit; node; node = parentOf(node)) {
    if (!isElement(node)) continue;
    passed.add(node);
    if (getComputedStyle(node).position === "fixed") root = node;
  }
  return root;
};

// An element without a size of its own has that of what floats or stands in it, one without a box that of the
// first of its children, or of its words.
const boxOf = (element, depth = 3) => {
  const box = rectOf(element);
  if (depth === 0 || !isSmall(box)) return box;
  const children = [...childrenOf(element)].slice(0, MAX_INSIDE);
  const drawn = isBoxless(element) ? children : children.filter(isElement).slice(0, 1);
  const boxes = drawn.map((child) => (isElement(child) ? boxOf(child, depth - 1) : isText(child) ? boxOfText(child) : box));
  return boxes.find((inner) => !isSmall(inner)) ?? boxes[0] ?? box;
};

const rangeOf = (text) => {
  const range = new Range();
  range.selectNodeContents(text);
  return range;
};
const boxOfText = (text) => rangeOf(text).getBoundingClientRect();

const isSmall = (box) => box.width < SMALLEST || box.height < SMALLEST;

const overlaps = (box, { left, top, right, bottom }, margin = 0) =>
  box.bottom > top - margin && box.top < bottom + margin && box.right > left - margin && box.left < right + margin;

const sticksOut = (box, { left, top, right, bottom }) =>
  box.left < left - 1 || box.top < top - 1 || box.right > right + 1 || box.bottom > bottom + 1;

const meet = (box, view) => ({
  left: Math.max(box.left, view.left),
  top: Math.max(box.top, view.top),
  right: Math.min(box.right, view.right),
  bottom: Math.min(box.bottom, view.bottom),
});

// Whether nothing of an element can be near the view, not even what overflows it.
const isFar = (element, box, view) => {
  if (view.hits.has(element)) return false;
  const { left, top } = box;
  const extent = { left, top, right: left + Math.max(box.width, innerWidthOf(element)), bottom: top + Math.max(box.height, innerHeightOf(element)) };
  const isEmpty = extent.right - left < 1 || extent.bottom - top < 1;
  return !isEmpty && !overlaps(extent, view, view.margin);
};

const isMasked = (x, y, view) => {
  if (!view.mask) return false;
  const cell = (at, from, to) => Math.min(GRID - 1, Math.floor(((at - from) / (to - from)) * GRID));
  return view.mask[cell(y, view.top, view.bottom) * GRID + cell(x, view.left, view.right)] === "1";
};

// true: a click would meet it; false: something else is over it; null: no point of it is in the view.
const isOnTop = (element, view) => {
  let isInside = false;
  for (const box of boxesOf(element)) {
    const part = meet(box, view);
    if (part.right - part.left < 1 || part.bottom - part.top < 1) continue;
    isInside = true;
    for (const [across, down] of POINTS) {
      const x = part.left + across * (part.right - part.left);
      const y = part.top + down * (part.bottom - part.top);
      if (!isMasked(x, y, view) && isMetAt(element, x, y)) return true;
    }
  }
  return isInside ? false : null;
};

const boxesOf = (element) => {
  const boxes = [...element.getClientRects()].slice(0, 3).filter((box) => !isSmall(box));
  return boxes.length ? boxes : [boxOf(element)];
};

const isMetAt = (element, x, y) => {
  const hit = elementAt(x, y);
  return hit !== null && [element, ...labelsOf(element)].some((one) => isWithin(hit, one) || showsSlotted(one, hit, x, y));
};

// Words in a slot are children of the host: over them the hit is the host, which is around what shows them.
const showsSlotted = (element, hit, x, y) => {
  if (!shadowOf(hit) || hit === element || !isWithin(element, hit)) return false;
  const slotted = insideOf(element).filter((node) => isText(node) && parentNodeOf(node) === hit);
  return slotted.some((text) => [...rangeOf(text).getClientRects()].some((box) => holds(box, x, y)));
};
const holds = (box, x, y) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom;

// For a frame inside this one: which cells of the grid over its part of the view something else covers.
const maskOf = (frame, part, view) => {
  const isCovered = ([x, y]) => isMasked(x, y, view) || elementAt(x, y) !== frame;
  return gridOver(part).map((point) => (isCovered(point) ? "1" : "0")).join("");
};
