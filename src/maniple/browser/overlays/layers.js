// Where the page is covered, by what, and what stands on it.

const TEXT_LIMIT = 4000;
const WALK_LIMIT = 2500;
const LOOK_LIMIT = 6000;
const CONTROL_LIMIT = 60;

const parentOf = (node) => node.assignedSlot ?? node.parentElement ?? node.getRootNode().host ?? null;

const holds = (root, element) => {
  for (let node = element; node; node = parentOf(node)) if (node === root) return true;
  return false;
};

const hitAt = (x, y) => {
  let element = document.elementFromPoint(x, y);
  while (element?.shadowRoot) {
    const inner = element.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === element || !element.shadowRoot.contains(inner)) break;
    element = inner;
  }
  return element;
};

// Near the edges, too: that is where bars and boxes in the corners are.
const samplePoints = () => {
  const [width, height] = [innerWidth, innerHeight];
  const across = [12, 70, 0.25 * width, 0.5 * width, 0.75 * width, width - 70, width - 12];
  const down = [12, 40, 0.25 * height, 0.5 * height, 0.75 * height, height - 70, height - 34, height - 10];
  return down.flatMap((y) => across.map((x) => [x, y]));
};

// An element without a box, such as a <slot>, is as visible as what it is in.
const isVisible = (element) => {
  if (element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return true;
  const { display, visibility } = getComputedStyle(element);
  const around = display === "contents" && visibility === "visible" ? parentOf(element) : null;
  return around !== null && isVisible(around);
};

// The words in an element as it is drawn: `innerText` leaves out what a slot shows.
const slottedText = (element) =>
  [...(element.shadowRoot ?? element).querySelectorAll("slot")].slice(0, 20)
    .flatMap((slot) => slot.assignedNodes({ flatten: true })).map((node) => node.textContent.slice(0, 200)).join(" ");

const isShown = (element) => {
  if (!element.isConnected || !isVisible(element)) return false;
  const box = element.getBoundingClientRect();
  return (
    box.width > 0 &&
    box.height > 0 &&
    box.right > 0 &&
    box.bottom > 0 &&
    box.left < innerWidth &&
    box.top < innerHeight
  );
};

const isDialog = (element) =>
  element.matches("dialog[open], [role=dialog], [role=alertdialog], [aria-modal=true], :popover-open");

const share = (box) =>
  (Math.max(0, Math.min(box.right, innerWidth) - Math.max(box.left, 0)) *
    Math.max(0, Math.min(box.bottom, innerHeight) - Math.max(box.top, 0))) /
  (innerWidth * innerHeight);

// How an element comes to lie over the page: "fixed", "sticky", "dialog", "raised"; null when it does not.
const layering = (element) => {
  if (element === document.documentElement || element === document.body) return null;
  const style = getComputedStyle(element);
  if (element.matches(":modal, :popover-open") || style.position === "fixed") return "fixed";
  if (isDialog(element)) return "dialog";
  if (style.position === "sticky") return "sticky";
  return style.position === "absolute" && Number(style.zIndex) >= 10 ? "raised" : null;
};

// Whether one sees through it to what it lies over.
const dims = (element) => {
  const style = getComputedStyle(element);
  if (element instanceof SVGGeometryElement) return style.opacity < 0.98 && style.opacity > 0.05;
  const alpha = /^rgba\(.*, ([\d.]+)\)$|\/ ([\d.]+)\)$/.exec(style.backgroundColor);
  const opacity = (alpha ? Number(alpha[1] ?? alpha[2]) : 1) * Number(style.opacity);
  return (opacity > 0.05 && opacity < 0.98) || (style.backdropFilter ?? "none") !== "none";
};

// Map of each layer that can be hit to its hits among `points`, and how many of these it dims.
const findLayers = (points) => {
  const known = new Map();
  const layers = new Map();
  for (const point of points) {
    let dimmed = false;
    for (let element = hitAt(...point); element; element = parentOf(element)) {
      if (!known.has(element)) known.set(element, { how: layering(element), dims: dims(element) });
      dimmed ||= known.get(element).dims;
      const { how } = known.get(element);
      if (!how) continue;
      const layer = layers.get(element) ?? { root: element, how, hits: [], dimmed: 0 };
      layer.hits.push(point);
      layer.dimmed += dimmed ? 1 : 0;
      layers.set(element, layer);
    }
  }
  return layers;
};

// What a person can read, use and fill in on a layer, through open shadow roots; `budget.nodes` is left for all.
const readLayer = (root, budget) => {
  const found = { text: "", controls: [], fields: [], frames: [], links: 0, rich: false, isCut: false };
  let left = Math.min(WALK_LIMIT, budget.nodes);
  const visit = (node) => {
    found.isCut ||= left <= 0 || found.text.length >= TEXT_LIMIT;
    if (found.isCut) return;
    left--;
    budget.nodes--;
    if (node.nodeType === Node.TEXT_NODE) {
      if (node.nodeValue.trim() && isVisible(node.parentElement ?? root))
        found.text += node.nodeValue.slice(0, TEXT_LIMIT) + " ";
      return;
    }
    if (node.nodeType !== Node.ELEMENT_NODE || /^(?:SCRIPT|STYLE|NOSCRIPT|TEMPLATE)$/.test(node.tagName)) return;
    if (getComputedStyle(node).display === "none") return;
    note(node, found);
    for (const child of node.shadowRoot?.childNodes ?? []) visit(child);
    for (const child of node.tagName === "SLOT" ? node.assignedNodes() : []) visit(child);
    if (!node.shadowRoot && node.tagName !== "SELECT") for (const child of node.childNodes) visit(child);
  };
  visit(root);
  found.text = found.text.replace(/\s+/g, " ").trim();
  return found;
};

const NO_FIELDS = "[type=hidden], [type=button], [type=submit], [type=reset], [type=image]";
const FIELDS = `input:not(${NO_FIELDS}), select, textarea, [contenteditable=true]`;

const note = (element, found) => {
  if (/^(?:IMG|PICTURE|VIDEO|CANVAS|TABLE|UL|OL|DL)$/.test(element.tagName)) found.rich = true;
  if (element.tagName === "IFRAME") found.frames.push(element);
  else if (isVisible(element) && element.matches(FIELDS)) {
    found.fields.push(element.matches("input") ? element.type : element.tagName.toLowerCase());
  } else if (isControl(element) && found.controls.length < CONTROL_LIMIT) {
    if (leadsAway(element)) found.links++;
    else if (isShown(element))
      found.controls.push({
        element,
        label: labelOf(element),
        spoken: oneLine(element.getAttribute("aria-label")),
      });
  }
};

const leadsAway = (element) => {
  const target = element.tagName === "A" ? element.getAttribute("href") : null;
  return (
    !!target && !/^(?:#|javascript:|$)/i.test(target) && element.href.split("#")[0] !== location.href.split("#")[0]
  );
};

const CLOSE_MARK =
  /(?:^|[-_\s])(?:close|dismiss|hide)|(?:close|dismiss)(?:$|[-_\s])|(?:Close|Dismiss)(?:$|[-_\sA-Z])/;

const isMarkedClose = (element) => {
  const data = [...element.attributes].filter(({ name }) => name.startsWith("data-"));
  const marks = [element.id, element.getAttribute("class"), ...data.flatMap(({ name, value }) => [name, value])];
  return CLOSE_MARK.test(marks.join(" ").slice(0, 500));
};

const BUTTONS = "button, input[type=button], input[type=submit], input[type=image]";
const CONTROLS = `${BUTTONS}, a, [role=button], [role=link], [onclick]`;

const isControl = (element) => {
  if (element.matches(CONTROLS)) return true;
  if (parentOf(element)?.closest(CONTROLS)) return false;
  if (!isMarkedClose(element)) {
    const points = (one) => getComputedStyle(one).cursor === "pointer";
    if (!points(element) || points(parentOf(element) ?? element)) return false;
  }
  const box = element.getBoundingClientRect();
  return box.width <= 300 && box.height <= 80 && !element.querySelector(CONTROLS);
};

const oneLine = (said) => (typeof said === "string" ? said : "").replace(/\s+/g, " ").trim().slice(0, 80);

const labelOf = (element) => {
  const picture = element.querySelector("img[alt]");
  const said = [element.innerText, slottedText(element), element.value, element.title, picture?.alt, element.getAttribute("aria-label")];
  return said.map(oneLine).find(Boolean) ?? "";
};
