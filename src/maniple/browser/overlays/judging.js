// Whether a layer is an overlay: of which kind, how surely, and what may be clicked on it.

const trimmed = (label) => label.toLowerCase().replace(/^[\s"'«»→›>|·-]+|[\s"'«»→›>|·!.-]+$/g, "");

const roleOf = ({ element, label, spoken }) => {
  const said = [label, spoken].map(trimmed).filter((words) => words.length > 1);
  for (const role of ["task", "reject", "necessary", "close", "acknowledge", "accept", "bait"]) {
    if (said.some((words) => LABELS[role].test(words))) return role;
  }
  return !said.length && (isMarkedClose(element) || /[x×✕✖✗⨯]/i.test(label)) ? "close" : "other";
};

const hostOf = (root) => root.getRootNode().host ?? null;

const toolOf = (root) => {
  const places = [root, hostOf(root)].filter(Boolean);
  return (
    TOOLS.find(([, marks]) => places.some((place) => place.closest(marks)) || root.querySelector(marks))?.[0] ??
    null
  );
};

const isFilledIn = (fields) =>
  fields.some((field) =>
    /^(?:password|select|textarea|file|number|date|time|range|color|search|tel|url)/.test(field),
  ) ||
  fields.filter((field) => /^(?:text|email|div)$/.test(field)).length > 3 ||
  fields.filter((field) => /^(?:checkbox|radio)$/.test(field)).length > 1;

const countOf = (signals, text) => signals.filter((signal) => signal.test(text)).length;

// Consent windows have their choices saved; all else that a person came for is none of theirs.
const SAVING = /^(?:save|confirm|select|choose|update|apply|edit|change)\b/;
const isForeign = ({ role, label }) => role === "task" && !SAVING.test(trimmed(label));

const isConsent = ({ text, fields, tool, controls }, has) => {
  if (fields.some((field) => !/^(?:checkbox|radio)$/.test(field)) || controls.some(isForeign)) return false;
  const refusable = has("reject", "necessary");
  if (tool === "consent") return refusable || has("accept", "acknowledge", "close");
  const privacy = countOf(PRIVACY_SIGNALS, text);
  if (!COOKIES.test(text)) return refusable && privacy >= 2 && TRACKING.test(text) && !OFFER.test(text);
  const cookies = countOf(COOKIE_SIGNALS, text);
  if (refusable) return cookies + privacy >= (OFFER.test(text) ? 3 : 1);
  return has("accept", "acknowledge", "close") && cookies >= 1 && cookies + privacy >= (OFFER.test(text) ? 4 : 2);
};

// A newsletter wants an address, or a click for it; what only speaks of one is something else.
const FITS = {
  newsletter: (has, fields) => fields.length > 0 || has("bait"),
  notification: (has, fields) => !fields.length,
  app: (has, fields) => !fields.length,
  announcement: (has, fields, text) => !fields.length && !BUSINESS.test(text),
};

// A window of a few words, with nothing to do but close it.
const isPlain = ({ text, fields, controls, rich }) =>
  !fields.length &&
  !rich &&
  text.length < 300 &&
  !BUSINESS.test(text) &&
  controls.length > 0 &&
  controls.every(({ role }) => role === "close" || role === "acknowledge");

const kindOf = (seen) => {
  const has = (...roles) => seen.controls.some((control) => roles.includes(control.role));
  const { text, fields, tool } = seen;
  if (isConsent(seen, has)) return "consent";
  if (isFilledIn(fields) || has("task") || CHAT.test(text) || MANAGED.test(text)) return null;
  const told = KINDS.find(([kind, words]) => words.test(text) && (FITS[kind]?.(has, fields, text) ?? true))?.[0];
  const kind = tool && tool !== "consent" ? tool : told;
  if (kind) return has("accept", "reject") && kind !== "notification" ? null : kind;
  return isPlain(seen) ? "plain" : null;
};

const SURENESS = {
  consent: 0.45,
  newsletter: 0.45,
  notification: 0.4,
  app: 0.4,
  promotion: 0.4,
  survey: 0.35,
  announcement: 0.25,
  plain: 0.1,
};

// How much of the window these must cover unless they dim it: a bar or a box that says such things is the page's.
const LEAST = { promotion: 0.9, announcement: 0.9, plain: Infinity };

const MODAL = "[aria-modal=true], :modal";

const confidenceIn = (kind, { covered, modal, dismissible, tool }) =>
  Math.min(
    1,
    SURENESS[kind] +
      Math.min(0.3, covered * 0.4) +
      (modal ? 0.1 : 0) +
      (dismissible ? 0.15 : 0) +
      (tool ? 0.1 : 0),
  );

const PAGE = "header, nav, main";
const PARTS = "nav, [role=navigation], main, [role=main]";
const DIALOGS = "dialog[open], [role=dialog], [aria-modal=true]";

const isPartOfPage = ({ root }, seen, covered) => {
  if (isDialog(root) || root.matches(":modal")) return false;
  if (seen.isCut || root.matches(PAGE) || root.querySelector(PARTS)) return true;
  // An application as a whole, with a window of its own open.
  return covered > 0.5 && seen.text.length > 1500 && !!root.querySelector(DIALOGS);
};

const NOTHING = { kind: null, confidence: 0 };

// Null, or what `layer` is taken for; `dimmed` says that something else dims the page beneath it.
const judge = (layer, { dimmed, points, budget }) => {
  const seen = readLayer(layer.root, budget);
  const size = share(layer.root.getBoundingClientRect());
  // A wrapper of what is fixed has no size itself.
  const covered = layer.share ?? (size > 0.001 ? size : layer.hits.length / points);
  const tool = toolOf(layer.root);
  if (!tool && (layer.isWhole ? seen.isCut : isPartOfPage(layer, seen, covered))) return null;
  const controls = seen.controls.map((control) => ({ ...control, role: roleOf(control) }));
  const modal =
    dimmed || layer.dimmed > points * 0.3 || layer.root.matches(MODAL) || !!layer.root.querySelector(MODAL);
  const told = { ...seen, controls, modal };
  const kind = kindOf({ ...seen, controls, tool });
  if (!kind || (layer.how === "sticky" && kind !== "consent")) return { ...told, ...NOTHING };
  if (!modal && (covered < LEAST[kind] || (covered < 0.2 && seen.links > 4))) return { ...told, ...NOTHING };
  const dismissible = controls.some((control) => !["other", "task", "bait"].includes(control.role));
  return { ...told, kind, confidence: confidenceIn(kind, { covered, modal, dismissible, tool }) };
};
