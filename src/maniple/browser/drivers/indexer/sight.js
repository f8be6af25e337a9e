// What of a frame a person can see and reach: `view` is the window's part that the frame is seen through.
const SMALLEST = 2;
const GRID = 6;

const viewOf = ({ clip, mask, margin }) => {
  const [left, top, right, bottom] = clip ?? [0, 0, innerWidth, innerHeight];
  const view = { left, top, right, bottom, mask: mask ?? "", margin, pinned: new Set(), layer: null, hits: new Set() };
  look(view);
  return view;
};

// One look through a grid of points finds what is pinned over the page, and what must be walked wherever its
// parents are.
const look = (view) => {
  let points = 0;
  let pinned = 0;
  for (let column = 0; column < GRID; column++) {
    for (let row = 0; row < GRID; row++) {
      const x = view.left + ((column + 0.5) / GRID) * (view.right - view.left);
      const y = view.top + ((row + 0.5) / GRID) * (view.bottom - view.top);
      const hit = elementAt(x, y);
      if (!hit) continue;
      points++;
      const root = pinnedRootOf(hit, view.hits);
      if (root) view.pinned.add(root);
      if (root) pinned++;
    }
  }
  view.layer = modalOf() ?? (pinned >= 0.9 * points && points ? view.pinned : null);
};

const modalOf = () => {
  const modals = [...document.querySelectorAll("dialog:modal")];
  const shown = modals.filter((dialog) => dialog.contains(elementAt(innerWidth / 2, innerHeight / 2)));
  const top = shown.at(-1) ?? modals.at(-1);
  return top ? new Set([top]) : null;
};

const elementAt = (x, y) => {
  let hit = document.elementFromPoint(x, y);
  for (let depth = 0; hit?.shadowRoot && depth < 50; depth++) {
    const inner = hit.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
};

// The outermost fixed element that `hit` is in; all that is passed on the way is noted.
const pinnedRootOf = (hit, passed) => {
  let root = null;
  for (let node = hit; node; node = parentOf(node)) {
    if (node.nodeType !== Node.ELEMENT_NODE) continue;
    passed.add(node);
    if (getComputedStyle(node).position === "fixed") root = node;
  }
  return root;
};

const isWithin = (node, element) => {
  for (let at = node, steps = 0; at && steps < 500; at = parentOf(at), steps++) if (at === element) return true;
  return false;
};

const boxOf = (element) => {
  let box = element.getBoundingClientRect();
  let child = element;
  for (let depth = 0; depth < 3 && (box.width < SMALLEST || box.height < SMALLEST); depth++) {
    child = child.firstElementChild;
    if (!child) break;
    box = child.getBoundingClientRect();
  }
  return box;
};

const overlaps = (box, { left, top, right, bottom }, margin = 0) =>
  box.bottom > top - margin && box.top < bottom + margin && box.right > left - margin && box.left < right + margin;

const meet = (box, view) => ({
  left: Math.max(box.left, view.left), top: Math.max(box.top, view.top),
  right: Math.min(box.right, view.right), bottom: Math.min(box.bottom, view.bottom),
});

// Whether what is outside the window cannot be come near by scrolling: `extent` counts what overflows the box.
const isFar = (element, box, view) => {
  if (view.hits.has(element)) return false;
  const extent = {
    left: box.left, top: box.top,
    right: box.left + Math.max(box.width, element.scrollWidth || 0), bottom: box.top + Math.max(box.height, element.scrollHeight || 0),
  };
  const empty = extent.right - extent.left < 1 || extent.bottom - extent.top < 1;
  return !empty && !overlaps(extent, view, view.margin);
};

const isMasked = (x, y, view) => {
  if (!view.mask) return false;
  const column = Math.min(GRID - 1, Math.floor(((x - view.left) / (view.right - view.left)) * GRID));
  const row = Math.min(GRID - 1, Math.floor(((y - view.top) / (view.bottom - view.top)) * GRID));
  return view.mask[row * GRID + column] === "1";
};

const POINTS = [[0.5, 0.5], [0.15, 0.2], [0.85, 0.8], [0.15, 0.8], [0.85, 0.2]];

// true: a click would meet it; false: something else is over it; null: no point of it is in the window.
const isOnTop = (element, view) => {
  let inside = false;
  for (const box of boxesOf(element)) {
    const part = meet(box, view);
    if (part.right - part.left < 1 || part.bottom - part.top < 1) continue;
    for (const [across, down] of POINTS) {
      const x = part.left + across * (part.right - part.left);
      const y = part.top + down * (part.bottom - part.top);
      inside = true;
      if (!isMasked(x, y, view) && meets(element, elementAt(x, y))) return true;
    }
  }
  return inside ? false : null;
};

const boxesOf = (element) => {
  const boxes = [...element.getClientRects()].slice(0, 3).filter((box) => box.width >= 1 && box.height >= 1);
  return boxes.length ? boxes : [boxOf(element)];
};

const meets = (element, hit) => {
  if (!hit) return false;
  if (isWithin(hit, element)) return true;
  if (element.tagName === "AREA") return hit.useMap?.slice(1) === element.parentElement?.name;
  return [...(element.labels ?? [])].some((label) => isWithin(hit, label));
};

// For a frame inside this one: which cells of a grid over it are covered here, row by row.
const maskOf = (frame, part, view) => {
  let mask = "";
  for (let row = 0; row < GRID; row++) {
    for (let column = 0; column < GRID; column++) {
      const x = part.left + ((column + 0.5) / GRID) * (part.right - part.left);
      const y = part.top + ((row + 0.5) / GRID) * (part.bottom - part.top);
      mask += isMasked(x, y, view) || elementAt(x, y) !== frame ? "1" : "0";
    }
  }
  return mask;
};
