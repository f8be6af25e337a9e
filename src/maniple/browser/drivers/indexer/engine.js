// What Playwright calls: a selector engine, which alone of what it offers runs in a world that the page cannot
// reach. An answer is the text of an element that is in no document.
const memory = { document: crypto.getRandomValues(new Uint32Array(2)).join("-"), nonce: "", records: new Map(), ids: new WeakMap(), next: 0, frames: [], why: "" };

const idOf = (element) => {
  if (!memory.ids.has(element)) memory.ids.set(element, memory.next++);
  return memory.ids.get(element);
};

const printOf = (subject, role, name) =>
  JSON.stringify([subject.tagName, subject.type, role, name, subject.getAttribute("href")?.slice(0, 2000), subject.getAttribute("name")?.slice(0, 200)]);

const looking = (question) => {
  memory.nonce = question.nonce;
  memory.records = new Map();
  const keep = (record, role, name) => {
    const id = idOf(record.element);
    memory.records.set(id, { ...record, parent: parentOf(record.element), print: printOf(record.subject, role, name) });
    return id;
  };
  const walk = new Walk(viewOf(question), keep);
  walk.run();
  memory.frames = walk.frames;
  const page = document.scrollingElement ?? document.documentElement;
  return {
    document: memory.document, rows: walk.rows, unlisted: walk.unlisted, cut: walk.isCut,
    above: Math.round(page.scrollTop), below: Math.max(0, Math.round(page.scrollHeight - page.scrollTop - innerHeight)), width: innerWidth, height: innerHeight,
  };
};

const giving = ({ nonce, id }) => {
  memory.why = "";
  const record = nonce === memory.nonce ? memory.records.get(id) : undefined;
  if (!record) memory.why = "page";
  else if (!record.element.isConnected) memory.why = "gone";
  else if (parentOf(record.element) !== record.parent) memory.why = "moved";
  else if (!isSame(record)) memory.why = "changed";
  return memory.why ? [] : [record.element];
};

const isSame = ({ subject, leaf, print }) => {
  const name = leaf ? nameOf(subject) : tidy(subject.getAttribute("aria-label"));
  return printOf(subject, roleOf(subject), name) === print;
};

const saying = (value) => {
  const sheet = document.createElement("output");
  sheet.textContent = JSON.stringify(value);
  return [sheet];
};

const asked = (root, selector) => {
  const question = JSON.parse(decodeURIComponent(selector));
  if (question.ask === "look") return saying(looking(question));
  if (question.ask === "frames") return memory.frames;
  if (question.ask === "give") return giving(question);
  return saying(memory.why);
};

return { query: (root, selector) => asked(root, selector)[0] ?? null, queryAll: asked };
