// What can be chosen in a dropdown: of a <select>, an <input list>, or what ARIA calls a listbox, combobox or menu.
// Asked for a `place`: that option. Else, with the words `text` ("" for all) and a `name`, of which either may be what
// a person wrote: {kind, open, editable, multiple, total, count, options, named, kept}. `options` are the first that hold
// the text, `count` how many there are, `named` the one of that name or value, `kept` the places of those selected.
(element, { place, text, name }) => {
  const MOST = 500_000;
  const SHOWN = 100;
  const LONGEST = 200;
  const OPTIONS = "[role=option],[role=menuitem],[role=menuitemradio],[role=menuitemcheckbox],[role=treeitem]";
  const LISTS = "[role=listbox],[role=menu],[role=tree],[role=grid]";

  const clean = text => (text ?? "").slice(0, 4 * LONGEST).replace(/\s+/g, " ").trim().slice(0, LONGEST);
  const visible = found => {
    const box = found.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(found).visibility !== "hidden";
  };
  const named = (holder, name) => (holder.getAttribute(name) ?? "").split(/\s+/).filter(Boolean).slice(0, 10);

  // In the tree of the element first, then in those around it: what opens is often put at the end of the page.
  const roots = () => {
    const found = [];
    for (let root = element.getRootNode(); root; root = root.host?.getRootNode()) found.push(root);
    return found;
  };
  const controlled = () => {
    const holders = [element, ...element.querySelectorAll("[aria-controls],[aria-owns]")].slice(0, 10);
    const ids = holders.flatMap(holder => [...named(holder, "aria-controls"), ...named(holder, "aria-owns")]);
    return ids.flatMap(id => roots().map(root => root.getElementById?.(id)).filter(Boolean));
  };
  // As it is drawn, with what a slot shows and what stands in open shadow roots.
  const childrenOf = node => {
    if (node.shadowRoot) return node.shadowRoot.childNodes;
    const assigned = node.localName === "slot" ? node.assignedNodes() : [];
    return assigned.length ? assigned : node.childNodes;
  };
  const inOrder = (node, most) => {
    const found = [];
    const todo = Array.from(childrenOf(node)).slice(0, most).reverse();
    while (todo.length && found.length < most) {
      const next = todo.pop();
      found.push(next);
      if (next.nodeType === Node.ELEMENT_NODE) todo.push(...Array.from(childrenOf(next)).slice(0, most).reverse());
    }
    return found;
  };
  const drawnText = option =>
    inOrder(option, 100).filter(node => node.nodeType === Node.TEXT_NODE).map(node => node.data.slice(0, LONGEST)).join(" ");
  const within = list => {
    const own = Array.from(list.querySelectorAll(OPTIONS)).filter(visible);
    return own.length ? own : inOrder(list, 20_000).filter(node => node.nodeType === Node.ELEMENT_NODE && node.matches(OPTIONS)).filter(visible);
  };
  const choices = () => {
    if (element.localName === "select") return Array.from(element.options);
    if (element.list?.options) return Array.from(element.list.options);
    if (element.matches(LISTS)) return within(element);
    for (const list of controlled()) if (within(list).length) return within(list);
    if (within(element).length) return within(element);
    for (const root of roots()) {
      const lists = Array.from(root.querySelectorAll(LISTS)).filter(list => visible(list) && within(list).length);
      if (lists.length) return within(lists.at(-1));
      const loose = within(root);
      if (loose.length) return loose;
    }
    return [];
  };

  const kind = () => {
    if (element.localName === "select") return "select";
    if (element.list?.options) return "datalist";
    const role = element.getAttribute("role") ?? "";
    if (["listbox", "menu", "tree"].includes(role)) return "list";
    const inner = element.matches("[role=combobox],[aria-haspopup]") ? element : element.querySelector("[role=combobox],[aria-haspopup]");
    return inner && inner.getAttribute("aria-haspopup") !== "dialog" ? "combobox" : "none";
  };

  const found = choices();
  if (place !== null) return found[place];
  const described = (option, index) => ({
    text: clean(option.label) || clean(option.innerText) || clean(option.textContent) || clean(drawnText(option)) || clean(String(option.value ?? "")),
    value: clean(option.value !== undefined && option.value !== 0 ? String(option.value) : option.getAttribute("data-value") ?? ""),
    index,
    disabled: option.disabled === true || option.getAttribute("aria-disabled") === "true",
  });
  const all = found.slice(0, MOST).map(described);
  const small = words => clean(words).toLowerCase();
  const holding = text ? all.filter(one => small(one.text).includes(small(text)) || small(one.value).includes(small(text))) : all;
  const same = (one, made) => made(one.text) === made(name) || made(one.value) === made(name);
  return {
    kind: kind(),
    open: element.getAttribute("aria-expanded") === "true",
    editable: element.localName === "input" && !element.readOnly,
    multiple: element.multiple === true,
    total: found.length,
    count: text ? holding.length : found.length,
    options: holding.slice(0, SHOWN),
    named: name === null ? null : all.find(one => same(one, clean)) ?? all.find(one => same(one, small)) ?? null,
    kept: element.multiple === true ? Array.from(element.selectedOptions ?? [], one => one.index).slice(0, MOST) : [],
  };
}
