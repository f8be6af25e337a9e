// Runs in the page's own world before any script of it: remembers which elements listen for a click and which
// have a closed shadow root, and answers the indexer, which lives in a world of its own, when it asks about one.
(() => {
  const ASKED = "maniple:listens";
  const ASKED_CLOSED = "maniple:closed";
  const CLICKS = { __proto__: null, click: 1, dblclick: 1, mousedown: 1, mouseup: 1, pointerdown: 1, pointerup: 1, touchstart: 1, touchend: 1 };
  const HANDLERS = ["onclick", "ondblclick", "onmousedown", "onmouseup", "onpointerdown", "onpointerup"];
  const PROPS = ["onClick", "onDoubleClick", "onMouseDown", "onMouseUp", "onPointerDown", "onPointerUp"];
  // A framework that listens on its root for everything says nothing about the root itself.
  const DELEGATED_TYPES = 20;

  // The page may replace any of these later.
  const uncurried = Function.prototype.bind.bind(Function.prototype.call);
  const add = EventTarget.prototype.addEventListener;
  const listen = uncurried(add);
  const recordOf = uncurried(WeakMap.prototype.get);
  const keep = uncurried(WeakMap.prototype.set);
  const pathOf = uncurried(Event.prototype.composedPath);
  const sayYes = uncurried(Event.prototype.preventDefault);
  const stop = uncurried(Event.prototype.stopImmediatePropagation);
  const modeOf = uncurried(Object.getOwnPropertyDescriptor(ShadowRoot.prototype, "mode").get);
  const beginsWith = uncurried(String.prototype.startsWith);
  const own = Object.keys;
  const apply = Reflect.apply;
  const Node = Element;
  const records = new WeakMap();
  const closedHosts = new WeakMap();

  const record = (target, type) => {
    let known = recordOf(records, target);
    if (!known) keep(records, target, (known = { __proto__: null, clicks: false, count: 0, types: { __proto__: null } }));
    if (known.types[type]) return;
    known.types[type] = true;
    known.count++;
    known.clicks ||= CLICKS[type] === 1;
  };

  // React, Solid and Svelte listen at their root and keep an element's handlers on it.
  const hasProps = (element) => {
    const names = own(element);
    for (let at = 0; at < names.length; at++) {
      const name = names[at];
      if (name === "$$click" || name === "__click") return true;
      if (!beginsWith(name, "__reactProps$") && !beginsWith(name, "__reactEventHandlers$")) continue;
      for (let prop = 0; prop < PROPS.length; prop++) if (element[name]?.[PROPS[prop]]) return true;
    }
    return false;
  };

  const listens = (element) => {
    const known = recordOf(records, element);
    if (known && known.clicks && known.count <= DELEGATED_TYPES) return true;
    for (let at = 0; at < HANDLERS.length; at++) if (typeof element[HANDLERS[at]] === "function") return true;
    return hasProps(element);
  };

  const answer = (event) => {
    stop(event);
    try {
      if (listens(pathOf(event)[0])) sayYes(event);
    } catch {
      // A getter of the page's threw: nothing is known of this element.
    }
  };

  const answerClosed = (event) => {
    stop(event);
    if (recordOf(closedHosts, pathOf(event)[0])) sayYes(event);
  };

  const answerIndexer = () => {
    listen(window, ASKED, answer, true);
    listen(window, ASKED_CLOSED, answerClosed, true);
  };

  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function attachShadow() {
    const shadow = apply(attach, this, arguments);
    if (modeOf(shadow) === "closed") keep(closedHosts, this, true);
    return shadow;
  };

  EventTarget.prototype.addEventListener = function addEventListener(type, listener) {
    if (listener && this instanceof Node) {
      record(this, `${type}`);
      // `document.open` forgets all listeners.
      if (CLICKS[type]) answerIndexer();
    }
    return apply(add, this, arguments);
  };
  answerIndexer();
})();
