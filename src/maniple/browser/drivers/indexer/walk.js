// From the tree to rows in reading order: texts, controls, frames and gaps. Without recursion: a page may be
// nested deeper than a stack.
const MAX_WALKED_NODES = 40_000;
const MAX_MILLISECONDS = 1_500;
const MAX_TEXT = 30_000;
const TEXT_PIECE = 300;
const LONG_LIST = 12;
const LOWEST_PART = 40;
const SKIPPED = new Set(["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE", "HEAD", "OPTION", "DATALIST", "title", "desc", "defs", "metadata"]);
const CLOSED = new Set(["SELECT", "TEXTAREA", "CANVAS", "VIDEO", "AUDIO", "IFRAME", "FRAME", "OBJECT", "EMBED"]);

class Walk {
  constructor(view, remember) {
    this.view = view;
    this.rows = [];
    this.offers = new Offers(view, remember, (kind, context, more) => this.add(kind, context, more));
    this.line = 0;
    this.lists = 0;
    this.characters = 0;
    this.visited = 0;
    this.deadline = performance.now() + MAX_MILLISECONDS;
  }

  run() {
    const context = { clip: this.view, list: 0, item: 0, name: "", quiet: false, hidden: false, seen: true };
    const stack = [levelOf([...(this.view.layer ?? [bodyElement()])].filter(Boolean), context, true)];
    while (stack.length && !this.isTired()) {
      const level = stack.at(-1);
      if (level.at < level.nodes.length) {
        const inner = this.meet(level.nodes[level.at++], level);
        if (inner) stack.push(inner);
      } else {
        this.closeGap(level);
        if (level.part) this.reportPart(level);
        if (level.isBlock) this.line++;
        stack.pop();
      }
    }
    this.isCut = stack.length > 0 || this.offers.lacksFrames;
    return this;
  }

  isTired() {
    this.visited++;
    return this.visited > MAX_WALKED_NODES || (this.visited % 64 === 0 && performance.now() > this.deadline);
  }

  meet(node, level) {
    if (isText(node)) return this.addText(node, level.context);
    if (!isElement(node) || SKIPPED.has(tagOf(node))) return null;
    level.items++;
    const style = getComputedStyle(node);
    const context = level.list ? { ...level.context, list: level.list, item: level.items } : level.context;
    if (style.display === "none") return this.offers.hiddenFile(node, context);
    const box = rectOf(node);
    if (style.display !== "contents" && isFar(node, box, this.view)) {
      level.gap++;
      return null;
    }
    this.closeGap(level);
    return node instanceof HTMLElement && isInert(node) ? null : this.enter(node, style, box, context);
  }

  // What was passed over of a long list, for being far away.
  closeGap(level) {
    if (level.gap && level.list) {
      this.line++;
      this.add("gap", { ...level.context, list: level.list, seen: false }, { count: level.gap });
      this.line++;
    }
    level.gap = 0;
  }

  // How far a part of the page can be scrolled; the page itself is reported apart.
  reportPart({ part, context }) {
    const above = Math.round(part.scrollTop);
    const below = Math.round(innerHeightOf(part) - part.clientHeight - above);
    this.line++;
    this.say(`(this part scrolls: ${above} pixels above, ${below} below)`, context);
    this.line++;
  }

  enter(element, style, box, context) {
    const isBlock = !/^(inline|contents|ruby|table-cell)/.test(style.display);
    if (isBlock) this.line++;
    if (style.display === "table-cell") this.separate(context);
    const inner = { ...context, hidden: context.hidden || style.opacity === "0", silent: style.visibility !== "visible" };
    if (style.display !== "contents") inner.seen = overlaps(box, this.view);
    if (style.display === "contents") inner.clip = context.clip;
    else if (style.position === "fixed") inner.clip = this.view;
    else if (style.overflow !== "visible") inner.clip = meet(box, context.clip);
    Object.assign(inner, this.offers.offer(element, style, box, context));
    const tag = tagOf(element);
    if (CLOSED.has(tag)) {
      if (FRAMES.test(tag)) this.line++;
      return null;
    }
    if (tag === "IMG" && element.alt) this.say(` (image: ${element.alt.slice(0, 100)}) `, inner);
    const level = levelOf(childrenOf(element), inner, isBlock);
    if (childCountOf(element) >= LONG_LIST) level.list = ++this.lists;
    if (inner.seen && isScrolling(element, style)) level.part = element;
    return level;
  }

  separate(context) {
    const last = this.rows.at(-1);
    if (last?.line === this.line && !context.quiet) this.say(" | ", context);
  }

  addText(node, context) {
    const words = node.substringData(0, TEXT_PIECE * 2);
    if (/\S/.test(words)) this.say(words, context);
    else if (this.rows.at(-1)?.kind === "text") this.rows.at(-1).text += " ";
    return null;
  }

  say(words, context) {
    if (context.quiet || context.hidden || context.silent || this.characters >= MAX_TEXT) return;
    const text = words.length > TEXT_PIECE ? `${words.slice(0, TEXT_PIECE)}…` : words;
    this.characters += text.length;
    const last = this.rows.at(-1);
    if (last?.kind === "text" && last.line === this.line) last.text += text;
    else this.add("text", context, { text });
  }

  add(kind, { list, item, seen, far }, more) {
    this.rows.push({ kind, line: this.line, list, item, seen, far, ...more });
  }
}

const isScrolling = (element, style) =>
  /auto|scroll/.test(style.overflowY) && element !== rootElement() && element !== bodyElement() &&
  element.clientHeight >= LOWEST_PART && innerHeightOf(element) > element.clientHeight + 1;

const levelOf = (nodes, context, isBlock) => ({ nodes, at: 0, context, isBlock, list: 0, gap: 0, items: 0, part: null });
