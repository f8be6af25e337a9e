// Which elements can be acted on, and what of their state a person would see.
const NATIVE = new Set(["BUTTON", "INPUT", "SELECT", "TEXTAREA", "SUMMARY", "CANVAS"]);
const WIDGETS = new Set([
  "button", "link", "checkbox", "radio", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "textbox", "combobox",
  "switch", "slider", "searchbox", "treeitem", "spinbutton", "listbox",
]);
const FRAMES = /^I?FRAME$/;
const CHOICES = /^(checkbox|radio|file)$/;
const SILENT = /^(checkbox|radio|submit|button|reset|image|file)$/;
const MAX_OPTIONS = 10;

const HOSTS = /-|^(ARTICLE|ASIDE|BLOCKQUOTE|DIV|FOOTER|HEADER|MAIN|NAV|P|SECTION|SPAN)$/;

// The page's own world knows who listens, and whose shadow root is closed (`recorder.js`).
const isAnswered = (element, question) => !tell(element, new Event(question, { cancelable: true, composed: true }));
const isListening = (element) => isAnswered(element, "maniple:listens");

// What is in a closed shadow root can be neither read nor listed.
const isClosed = (element, style) => {
  const tag = tagOf(element);
  if (!HOSTS.test(tag) || shadowOf(element)) return false;
  if (!tag.includes("-") && element.firstChild) return false;
  return isAnswered(element, "maniple:closed") || (tag.includes("-") && isFilledUnseen(element, style));
};

// A closed root that came with the HTML is known by the room that it takes in an element without children.
const isFilledUnseen = (element, style) => {
  if (element.firstChild || [":before", ":after"].some((part) => !/^(none|normal)$/.test(getComputedStyle(element, part).content))) return false;
  const sizes = element.computedStyleMap();
  const isFree = (side) => sizes.get(side)?.value === "auto";
  const edges = (sides) => sides.reduce((sum, side) => sum + parseFloat(style[`padding${side}`]) + parseFloat(style[`border${side}Width`]), 0);
  const box = rectOf(element);
  if (style.display === "inline" || style.display === "inline-block") return isFree("width") && box.width > edges(["Left", "Right"]) + 1;
  return style.display === "block" && isFree("height") && !/flex|grid/.test(getComputedStyle(parentElementOf(element)).display) && box.height > edges(["Top", "Bottom"]) + 1;
};

const isEditable = (element) =>
  element.isContentEditable && (tagOf(element) === "BODY" || !parentElementOf(element).isContentEditable);

// "control" for what is made to be one, "closed" for what may hold any in its closed shadow root, "listener" for
// anything else that reacts to a click, else "".
const kindOf = (element, style) => {
  const tag = tagOf(element);
  // Editors often stand in a frame of their own whose whole body is edited.
  if (tag === "BODY") return element.isContentEditable ? "control" : "";
  if (tag === "FORM" || tag === "HTML" || FRAMES.test(tag)) return "";
  if (tag === "INPUT") return element.type === "hidden" ? "" : "control";
  if (NATIVE.has(tag) || WIDGETS.has(element.getAttribute("role")) || isEditable(element)) return "control";
  if (tag === "A" && element.hasAttribute("href")) return "control";
  if (isClosed(element, style)) return "closed";
  if ((tag === "VIDEO" || tag === "AUDIO") && element.controls) return "control";
  return reactsToClicks(element, style) ? "listener" : "";
};

const reactsToClicks = (element, style) => {
  if (element.hasAttribute("onclick") || element.hasAttribute("onmousedown")) return true;
  if (element.hasAttribute("tabindex") && (element.tabIndex >= 0 || isItem(element))) return true;
  if (style.cursor === "pointer" && getComputedStyle(parentElementOf(element)).cursor !== "pointer") return true;
  return isListening(element);
};

// What cannot be reached by Tab may be one of many of which the list is: then the list listens for all.
const isItem = (element) => {
  let parent = element;
  for (let steps = 0; steps < 3; steps++) {
    parent = parentElementOf(parent);
    if (isListening(parent)) return findInside(element, REACTIVE) === null;
  }
  return false;
};

const roleOf = (element) => {
  const role = element.getAttribute("role");
  if (role && !/^(presentation|none)$/.test(role)) return role.trim().slice(0, 30);
  const tag = tagOf(element).toLowerCase();
  if (tag === "a") return "link";
  if (tag === "input") return element.type === "text" ? "input" : `input ${element.type}`;
  return isEditable(element) ? "textbox" : tag.slice(0, 30);
};

const detailsOf = (element, name) => [...wordsOf(element), ...statesOf(element), ...lookOf(element, name)];

const quoted = (words, limit = 80) => JSON.stringify(tidy(words, limit));

const wordsOf = (element) => {
  const placeholder = element.placeholder ? [`placeholder=${quoted(element.placeholder)}`] : [];
  if (tagOf(element) === "SELECT") return [`options=${JSON.stringify(optionsOf(element))}`];
  if (FIELDS.test(tagOf(element))) return [...placeholder, ...valueOf(element)];
  if (isEditable(element)) return [`value=${quoted(textOf(element, 200), 200)}`];
  const value = element.getAttribute("aria-valuetext") || element.getAttribute("aria-valuenow");
  return value ? [`value=${quoted(value)}`] : [];
};

const valueOf = (field) => {
  if (field.type === "file") return [...field.files].slice(0, 3).map((file) => `value=${quoted(file.name)}`);
  if (SILENT.test(field.type)) return [];
  if (field.type === "password") return field.value ? ["value=(hidden)"] : [];
  const range = ["min", "max", "step"].filter((key) => field[key]).map((key) => `${key}=${tidy(field[key], 20)}`);
  return [...(field.value ? [`value=${JSON.stringify(endsOf(field.value))}`] : []), ...range];
};

// Of a long value the beginning and the end, where one goes on writing.
const endsOf = (value) => {
  if (value.length <= 240) return tidy(value, 240);
  return `${value.slice(0, 160).replace(/\s+/g, " ")} … ${value.slice(-80).replace(/\s+/g, " ")}`;
};

const optionsOf = (select) => {
  const shown = (option) => (option.selected ? "*" : "") + tidy(option.text, 40);
  const options = [...select.options].slice(0, MAX_OPTIONS).map(shown);
  const chosen = select.selectedOptions[0];
  const more = select.options.length - options.length;
  if (more > 0) options.push(`… ${more} more`);
  if (chosen && chosen.index >= MAX_OPTIONS) options.push(shown(chosen));
  return options.join("|");
};

const isDisabled = (element) => matches(element, ":disabled") || element.getAttribute("aria-disabled") === "true";

const statesOf = (element) => {
  const on = (name) => element.getAttribute(`aria-${name}`) === "true";
  const expanded = tagOf(element) === "SUMMARY" ? String(element.parentElement?.open) : element.getAttribute("aria-expanded");
  const states = {
    checked: element.checked || on("checked"),
    mixed: element.indeterminate || element.getAttribute("aria-checked") === "mixed",
    selected: on("selected") || (element.getAttribute("aria-current") ?? "false") !== "false",
    pressed: on("pressed"),
    disabled: isDisabled(element),
    readonly: element.readOnly,
    required: element.required || on("required"),
    invalid: on("invalid"),
    popup: (element.getAttribute("aria-haspopup") ?? "false") !== "false",
    "expanded=true": expanded === "true",
    "expanded=false": expanded === "false",
  };
  return Object.keys(states).filter((state) => states[state] === true);
};

// A drawing, or what has no words, is told by its colour, its size and where it is.
const lookOf = (element, name) => {
  const isDrawing = element instanceof SVGElement && tagOf(element) !== "svg";
  const isCanvas = tagOf(element) === "CANVAS";
  if (!isDrawing && !isCanvas && (name || FIELDS.test(tagOf(element)))) return [];
  const style = getComputedStyle(element);
  const box = rectOf(element);
  const color = isDrawing ? hexOf(style.fill) : colouredOnly(hexOf(style.backgroundColor));
  if (!color && !isDrawing && !isCanvas) return [];
  const place = isDrawing ? [`at=${Math.round(box.left + box.width / 2)},${Math.round(box.top + box.height / 2)}`] : [];
  return [...(color ? [`color=${color}`] : []), `size=${Math.round(box.width)}x${Math.round(box.height)}`, ...place];
};

const hexOf = (color) => {
  const parts = /^rgba?\((\d+), (\d+), (\d+)(?:, ([\d.]+))?\)$/.exec(color);
  if (!parts || Number(parts[4] ?? 1) === 0) return "";
  return `#${parts.slice(1, 4).map((part) => Number(part).toString(16).padStart(2, "0")).join("")}`;
};

// Grey is how any button looks.
const colouredOnly = (hex) => {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return Math.max(...parts) - Math.min(...parts) > 24 ? hex : "";
};
