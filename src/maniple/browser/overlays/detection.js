// What is asked of a document; it is set up once in each and remembers what it was shown to have over it.

const OWN_MILLISECONDS = 3000;
const GONE_MILLISECONDS = 900;
const TRIES = 2;
const LAYER_LIMIT = 24;

const found = new Map();
const tries = new WeakMap();
let known = new WeakSet();
let standing = new WeakSet();
const own = new WeakSet();
let acted = -Infinity;
let actedSinceLook = false;
let counter = 0;

// What comes up after an action of ours is what the action asked for. Taken down before the page hears of it.
const remember = (event) => {
  if (!event.isTrusted || (event.type === "keydown" && !["Enter", " "].includes(event.key))) return;
  standing = new WeakSet(findLayers(samplePoints()).keys());
  acted = performance.now();
  actedSinceLook = true;
};
addEventListener("pointerdown", remember, true);
addEventListener("keydown", remember, true);
// A click into a frame is not heard of here.
addEventListener("blur", remember);

const settleOwnership = (layers) => {
  const justActed = actedSinceLook || performance.now() - acted < OWN_MILLISECONDS;
  for (const root of layers.keys()) {
    if (!known.has(root) && justActed && !standing.has(root)) own.add(root);
    known.add(root);
  }
  actedSinceLook = false;
};

const isBackdrop = (layer, points) =>
  layer.dimmed > points * 0.3 &&
  layer.how !== "sticky" &&
  !(layer.root.innerText ?? "").trim() &&
  !layer.root.querySelector("canvas, video, img, svg, iframe");

// A point of what it dims, and of nothing that can be used.
const outside = (root) => {
  const isBlank = (hit) => dims(hit) && !hit.childElementCount && !(hit.textContent ?? "").trim();
  const isOutside = ([x, y]) => {
    const hit = hitAt(x, y);
    return hit && (hit === root || isBlank(hit));
  };
  return samplePoints().find(isOutside) ?? null;
};

const tellOf = (layer, verdict, exempt) => {
  const id = ++counter;
  found.set(id, { root: layer.root, controls: verdict.controls, frames: verdict.frames });
  const spared = !exempt && (own.has(layer.root) || (tries.get(layer.root) ?? 0) >= TRIES);
  return {
    id,
    kind: verdict.kind ?? "",
    confidence: spared ? 0 : verdict.confidence,
    text: verdict.text.slice(0, 600),
    modal: verdict.modal,
    controls: verdict.controls.map(({ role, label }) => ({ role, label })),
    frames: spared ? 0 : verdict.frames.filter(isShown).length,
    share: share(layer.root.getBoundingClientRect()),
    outside: verdict.modal ? outside(layer.root) : null,
  };
};

// The frames that are the page's own, and may have something over what they show.
const tellFrames = (points, layers) => {
  const hits = new Set(points.map(([x, y]) => hitAt(x, y)).filter((element) => element?.tagName === "IFRAME"));
  const frames = [...hits].filter((element) => ![...layers.keys()].some((root) => holds(root, element)));
  const id = ++counter;
  found.set(id, { root: document.documentElement, controls: [], frames });
  return {
    id,
    kind: "",
    confidence: 0,
    text: "",
    modal: false,
    controls: [],
    frames: frames.length,
    share: 0,
    outside: null,
  };
};

// The likeliest first, what may be the page as a whole last: reading is bounded.
const inOrder = (layers) =>
  [...layers.values()].sort((a, b) => isDialog(b.root) - isDialog(a.root) || a.hits.length - b.hits.length);

// `at` is where a click did not come through; `whole` says that a frame lies over the page as a whole.
const look = ({ at, whole }) => {
  found.clear();
  const points = [...samplePoints(), ...(at ? [at] : [])];
  const layers = findLayers(points);
  settleOwnership(layers);
  const frames = tellFrames(points, layers);
  if (whole !== null && document.body)
    layers.set(document.body, {
      root: document.body,
      how: "fixed",
      hits: points,
      dimmed: 0,
      share: whole,
      isWhole: true,
    });
  const dimmed = [...layers.values()].some((layer) => isBackdrop(layer, points.length));
  const told = [];
  const budget = { nodes: LOOK_LIMIT };
  for (const layer of inOrder(layers).slice(0, LAYER_LIMIT)) {
    const verdict = judge(layer, { dimmed: dimmed && layer.how !== "sticky", points: points.length, budget });
    const exempt = !!at && layer.hits.includes(at);
    if (verdict) told.push(tellOf(layer, verdict, exempt));
  }
  told.sort((a, b) => b.confidence - a.confidence);
  return { document: performance.timeOrigin, overlays: [frames, ...told.slice(0, 12)] };
};

const isGone = (root) => {
  if (!isShown(root)) return true;
  return !samplePoints().some(([x, y]) => holds(root, hitAt(x, y)));
};

const gone = async ({ id }) => {
  const root = found.get(id)?.root;
  if (!root) return true;
  // What cleared it away was no action that asked for what stands beneath.
  [acted, actedSinceLook] = [-Infinity, false];
  const end = performance.now() + GONE_MILLISECONDS;
  while (!isGone(root)) {
    if (performance.now() > end) return false;
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  return true;
};

// The control, if it is still on the overlay with the same text.
const control = ({ id, place }) => {
  const overlay = found.get(id);
  const chosen = overlay?.controls[place];
  return chosen &&
    isShown(chosen.element) &&
    holds(overlay.root, chosen.element) &&
    labelOf(chosen.element) === chosen.label
    ? chosen.element
    : null;
};

const press = ({ id, place }) => {
  const element = control({ id, place });
  element?.click();
  return !!element;
};

const giveUp = ({ id }) => {
  const failed = found.get(id)?.root;
  const parts = [...found.values()].filter(({ root }) => failed && (holds(root, failed) || holds(failed, root)));
  for (const { root } of parts) tries.set(root, (tries.get(root) ?? 0) + 1);
};

const frame = ({ id, place }) => found.get(id)?.frames.filter(isShown)[place] ?? null;

return { look, gone, control, press, giveUp, frame };
