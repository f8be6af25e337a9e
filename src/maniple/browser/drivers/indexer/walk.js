// From the tree to rows in reading order: texts, controls, frames and gaps. Without recursion: a page may be
// nested deeper than a stack.
const MOST_NODES = 40_000;
const MOST_MILLISECONDS = 400;
const MOST_CONTROLS = 1_500;
const MOST_TEXT = 30_000;
const MOST_FRAMES = 30;
const TEXT_PIECE = 300;
const LONG_LIST = 12;
const HIDDEN_TAGS = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "OPTION", "DATALIST"]);
const CLOSED_TAGS = new Set(["SELECT", "TEXTAREA", "CANVAS", "VIDEO", "AUDIO", "IFRAME", "FRAME", "OBJECT", "EMBED"]);
const REACTIVE = "a[href],button,input,select,textarea,summary,canvas,iframe,[onclick],[role],[tabindex],[contenteditable]";

class Walk {
  constructor(view, keep) {
    this.view = view;
    this.keep = keep;
    this.rows = [];
    this.frames = [];
    this.line = 0;
    this.lists = 0;
    this.controls = 0;
    this.characters = 0;
    this.visited = 0;
    this.unlisted = 0;
    this.deadline = performance.now() + MOST_MILLISECONDS;
  }

  run() {
    const top = { clip: this.view, list: 0, item: 0, quiet: false, hidden: false };
    const stack = (this.view.layer ? [...this.view.layer] : [document.body ?? document.documentElement]).map((root) => this.visit([root], top));
    stack.reverse();
    while (stack.length && !this.isTired()) {
      const level = stack.at(-1);
      if (level.at >= level.nodes.length) {
        this.closeGap(level);
        if (level.block) this.line++;
        stack.pop();
        continue;
      }
      const inner = this.meet(level.nodes[level.at++], level);
      if (inner) stack.push(inner);
    }
    this.isCut = stack.length > 0;
  }

  isTired() {
    this.visited++;
    return this.visited > MOST_NODES || (this.visited % 64 === 0 && performance.now() > this.deadline);
  }

  visit(nodes, context, block = false) {
    return { nodes, at: 0, context, block, list: 0, gap: 0, items: 0 };
  }

  meet(node, level) {
    if (node.nodeType === Node.TEXT_NODE) return this.addText(node, level.context);
    if (node.nodeType !== Node.ELEMENT_NODE || HIDDEN_TAGS.has(node.tagName)) return null;
    level.items++;
    const style = getComputedStyle(node);
    if (style.display === "none") return this.addHiddenFile(node, level.context);
    const box = node.getBoundingClientRect();
    if (style.display !== "contents" && isFar(node, box, this.view)) {
      level.gap++;
      return null;
    }
    this.closeGap(level);
    return this.enter(node, style, box, { ...level.context, item: level.list ? level.items : level.context.item, list: level.list || level.context.list });
  }

  closeGap(level) {
    if (level.gap && level.list) this.rows.push({ kind: "gap", line: ++this.line, list: level.list, count: level.gap });
    level.gap = 0;
  }

  enter(element, style, box, context) {
    const block = !/^(inline|contents|ruby)/.test(style.display) && style.display !== "table-cell";
    if (block) this.line++;
    const inner = { ...context, hidden: context.hidden || style.opacity === "0", seen: overlaps(box, this.view) };
    if (style.overflow !== "visible" && style.position !== "fixed") inner.clip = meet(box, context.clip);
    if (style.position === "fixed") inner.clip = this.view;
    if (element.inert) return null;
    this.offer(element, style, box, context, inner);
    if (CLOSED_TAGS.has(element.tagName)) return null;
    if (element.localName === "img" && element.alt && !context.quiet) this.say(`(image: ${element.alt.slice(0, 100)})`, inner);
    const level = this.visit(childrenOf(element), inner, block);
    if (element.childElementCount >= LONG_LIST) level.list = ++this.lists;
    return level;
  }

  offer(element, style, box, context, inner) {
    if (/^I?FRAME$/.test(element.tagName)) return this.addFrame(element, box, context);
    if (element.tagName === "LABEL" && element.control) return this.offerLabel(element, context, inner);
    const kind = kindOf(element, style);
    if (!kind || style.visibility !== "visible" || !this.isShown(element, style, context)) return;
    const leaf = kind === "control" || this.isLeaf(element);
    if (!leaf && this.isBackground(box)) return;
    const listed = this.addControl(element, element, context, leaf);
    inner.quiet ||= listed && leaf;
  }

  isShown(element, style, context) {
    const box = boxOf(element);
    if (box.width < SMALLEST || box.height < SMALLEST) return false;
    if (!context.hidden && style.opacity !== "0") return true;
    // A picture of a choice often lies under the choice itself, which is made transparent.
    return element.tagName === "INPUT" && CHOICES.test(element.type) && ![...(element.labels ?? [])].some((label) => label.checkVisibility());
  }

  // One row for all of it, or a row for it and others for what is in it?
  isLeaf(element) {
    if (element.querySelector(REACTIVE) || textOf(element, MAX_NAME + 40).length > MAX_NAME) return false;
    return ![...element.querySelectorAll("*")].slice(0, 60).some(isListening);
  }

  isBackground(box) {
    return box.width * box.height > 0.5 * innerWidth * innerHeight;
  }

  offerLabel(label, context, inner) {
    const { control } = label;
    const box = control.getBoundingClientRect();
    const style = getComputedStyle(control);
    const visible = box.width >= SMALLEST && box.height >= SMALLEST && style.opacity !== "0" && control.checkVisibility({ visibilityProperty: true });
    inner.quiet = true;
    if (!visible && control.type !== "hidden" && !context.hidden) this.addControl(control.type === "file" ? control : label, control, context, true, label);
  }

  addHiddenFile(element, context) {
    const isHiddenFile = element.tagName === "INPUT" && element.type === "file" && !element.labels?.length;
    if (isHiddenFile && !context.hidden) this.addControl(element, element, context, true, parentElementOf(element));
    return null;
  }

  // `element` is what is acted on, `subject` what it says, `shown` what of it is in the window.
  addControl(element, subject, context, leaf, shown = element) {
    const disabled = isDisabled(subject);
    const reached = isOnTop(shown, this.view);
    if (reached === false && !disabled && !this.isClipped(shown, context)) return false;
    if (reached !== true && !this.isReachable(shown, context)) return false;
    if (this.controls >= MOST_CONTROLS) {
      this.unlisted++;
      return false;
    }
    this.controls++;
    const role = roleOf(subject);
    const name = leaf ? nameOf(subject) : tidy(subject.getAttribute("aria-label"));
    const details = detailsOf(subject);
    if (leaf && (!name || name.startsWith("("))) details.push(...lookOf(subject));
    this.rows.push({
      kind: "control", line: this.line, list: context.list, item: context.item, seen: reached === true, id: this.keep({ element, subject, leaf }, role, name),
      role, name, details, box: reached === true ? roundBox(meet(boxOf(shown), this.view)) : null,
    });
    return true;
  }

  // Out of sight because a part of the page that scrolls shows another stretch of itself.
  isClipped(element, { clip }) {
    return !overlaps(boxOf(element), clip);
  }

  isReachable(element, { clip }) {
    const box = boxOf(element);
    if (overlaps(box, clip)) return true;
    for (let parent = parentElementOf(element); parent !== document.documentElement; parent = parentElementOf(parent)) {
      const style = getComputedStyle(parent);
      if (style.position === "fixed") return /auto|scroll/.test(style.overflow);
      if (style.overflow !== "visible" && !overlaps(box, parent.getBoundingClientRect())) return /auto|scroll/.test(style.overflow);
    }
    const { left, top } = { left: box.right + scrollX, top: box.bottom + scrollY };
    return left > 0 && top > 0;
  }

  addFrame(element, box, context) {
    const inner = { left: box.left + element.clientLeft, top: box.top + element.clientTop };
    const part = meet(box, context.clip);
    const seen = part.right - part.left >= 10 && part.bottom - part.top >= 10;
    if (context.hidden || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || this.frames.length >= MOST_FRAMES || !seen) return;
    const mask = maskOf(element, part, this.view);
    if (!mask.includes("0")) return;
    const clip = [part.left - inner.left, part.top - inner.top, part.right - inner.left, part.bottom - inner.top];
    this.frames.push(element);
    this.rows.push({
      kind: "frame", line: ++this.line, list: context.list, item: context.item, seen, name: tidy(element.title || element.name, 60),
      clip: clip.map(Math.round), mask: mask.includes("1") ? mask : "", origin: [Math.round(inner.left), Math.round(inner.top)],
    });
    this.line++;
  }

  addText(node, context) {
    if (!context.quiet && !context.hidden) {
      const words = dataOf(node, TEXT_PIECE * 2);
      if (/\S/.test(words)) this.say(words, context, node.length > words.length);
      else if (this.rows.at(-1)?.kind === "text") this.rows.at(-1).text += " ";
    }
    return null;
  }

  say(words, context, cut = false) {
    if (this.characters >= MOST_TEXT) return;
    const text = words.replace(/\s+/g, " ").slice(0, TEXT_PIECE) + (cut || words.length > TEXT_PIECE ? "…" : "");
    this.characters += text.length;
    const last = this.rows.at(-1);
    if (last?.kind === "text" && last.line === this.line) last.text += text;
    else this.rows.push({ kind: "text", line: this.line, list: context.list, item: context.item, seen: context.seen, text });
  }
}

const roundBox = (box) => [box.left, box.top, box.right - box.left, box.bottom - box.top].map(Math.round);

// What has no words is told by its colour and its shape.
const lookOf = (element) => {
  const style = getComputedStyle(element);
  if (element instanceof SVGElement) return style.fill === "none" ? [] : [`fill=${style.fill.replaceAll(" ", "")}`];
  const color = style.backgroundColor;
  return /^rgba\(.*, 0\)$/.test(color) ? [] : [`color=${color.replaceAll(" ", "")}`];
};
