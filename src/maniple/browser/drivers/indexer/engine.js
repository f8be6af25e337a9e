// What Playwright calls: a selector engine, which alone of what it offers runs in a world that the page cannot
// reach. An answer is the text of an element that is in no document.
const memory = { document: crypto.getRandomValues(new Uint32Array(2)).join("-"), nonce: "", records: new Map(), ids: new WeakMap(), next: 0, frames: [], why: "", scrolled: 0 };

const idOf = (element) => {
  if (!memory.ids.has(element)) memory.ids.set(element, memory.next++);
  return memory.ids.get(element);
};

// What an element is to who saw it; what may change while it stays what it is (a value, a state) is no part.
const printOf = (subject, role, name) => {
  const attribute = (key) => subject.getAttribute(key)?.slice(0, 2000);
  // A field's value changes with what is written into it, a choice's is its own.
  const value = SILENT.test(subject.type ?? "") ? attribute("value") : "";
  return JSON.stringify([tagOf(subject), role, name, attribute("type"), attribute("href"), attribute("name"), value]);
};

// Among many of the same name ("Delete") one is known by the words that it stands beside.
const besideOf = (element) => {
  let parent = element;
  for (let steps = 0; steps < 8; steps++) {
    parent = parentElementOf(parent);
    const words = firstWordsIn(parent, element);
    if (words) return words;
  }
  return "";
};

const firstWordsIn = (parent, besides) => {
  const todo = [parent];
  for (let visited = 0; todo.length && visited < MAX_NODES; visited++) {
    const node = todo.pop();
    if (node === besides) continue;
    if (isText(node)) {
      const words = tidy(node.substringData(0, 400), 100);
      if (words) return words;
    } else if (node === parent || isReadable(node)) {
      todo.push(...[...childrenOf(node)].slice(0, MAX_NODES).reverse());
    }
  }
  return "";
};

// What is there now, beside what was shown, which stays valid: `far` are controls that only a scroll brought near.
const comparing = (question) => {
  const moved = scrollY - memory.scrolled;
  const view = viewOf({ ...question, margin: question.margin + Math.abs(moved) });
  const walk = new Walk(view, (control) => idOf(control.element));
  const offers = walk.offers;
  const { list } = offers;
  offers.list = (control, context, marks) => {
    const { top, bottom } = boxOf(control.shown);
    const far = bottom + moved < view.top - question.margin || top + moved > view.bottom + question.margin;
    return list.call(offers, control, far ? { ...context, far } : context, marks);
  };
  walk.run();
  memory.frames = offers.frames;
  return { document: memory.document, rows: walk.rows, unlisted: offers.unlisted, cut: walk.isCut, ...extent() };
};

const looking = (question) => {
  if (question.compares) return comparing(question);
  memory.nonce = question.nonce;
  memory.records = new Map();
  memory.scrolled = scrollY;
  const count = new Map();
  const remember = (control, role) => {
    const id = idOf(control.element);
    const print = printOf(control.subject, role, control.name);
    count.set(print, (count.get(print) ?? 0) + 1);
    memory.records.set(id, { ...control, parent: parentOf(control.element), print, beside: null });
    return id;
  };
  const walk = new Walk(viewOf(question), remember).run();
  for (const record of memory.records.values()) if (count.get(record.print) > 1) record.beside = besideOf(record.element);
  memory.frames = walk.offers.frames;
  return { document: memory.document, rows: walk.rows, unlisted: walk.offers.unlisted, cut: walk.isCut, ...extent() };
};

const lookingIfPossible = (question) => {
  try {
    return looking(question);
  } catch (error) {
    return { broken: String(error).slice(0, 300) };
  }
};

const extent = () => {
  const page = property(Document.prototype, "scrollingElement")(document) ?? rootElement();
  const [above, all] = page ? [page.scrollTop, innerHeightOf(page)] : [0, 0];
  return { above: Math.round(above), below: Math.max(0, Math.round(all - above - innerHeight)), width: innerWidth, height: innerHeight };
};

const giving = ({ nonce, id }) => {
  const record = nonce === memory.nonce ? memory.records.get(id) : undefined;
  memory.why = record ? whyNot(record) : "page";
  return memory.why ? [] : [record.element];
};

const whyNot = ({ element, subject, parent, print, naming, beside }) => {
  if (!element.isConnected) return "gone";
  if (parentOf(element) !== parent) return "moved";
  if (printOf(subject, roleOf(subject), naming(subject)) !== print) return "changed";
  return beside !== null && besideOf(element) !== beside ? "changed" : "";
};

const saying = (value) => {
  const sheet = createElement("output");
  sheet.textContent = JSON.stringify(value);
  return [sheet];
};

const asked = (root, selector) => {
  const question = JSON.parse(decodeURIComponent(selector));
  if (question.ask === "look") return saying(lookingIfPossible(question));
  if (question.ask === "frames") return memory.frames;
  if (question.ask === "give") return giving(question);
  return saying(memory.why);
};

return { query: (root, selector) => asked(root, selector)[0] ?? null, queryAll: asked };
