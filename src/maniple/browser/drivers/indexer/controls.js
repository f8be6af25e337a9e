// Which elements can be acted on, and what of their state a person would see.
const NATIVE = new Set(["BUTTON", "INPUT", "SELECT", "TEXTAREA", "SUMMARY", "CANVAS"]);
const WIDGETS = new Set([
  "button", "link", "checkbox", "radio", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "textbox", "combobox",
  "switch", "slider", "searchbox", "treeitem", "spinbutton", "listbox",
]);
const CHOICES = /^(checkbox|radio|file)$/;
const SILENT = /^(checkbox|radio|submit|button|reset|image|file)$/;
const MAX_OPTIONS = 10;

const isListening = (element) =>
  !element.dispatchEvent(new Event("maniple:listens", { bubbles: false, cancelable: true, composed: true }));

const isEditable = (element) => element.isContentEditable && !parentOf(element)?.isContentEditable;

// "control" for what is made to be one, "listener" for anything else that reacts to a click, else "".
const kindOf = (element, style) => {
  const tag = element.tagName;
  if (tag === "INPUT") return element.type === "hidden" ? "" : "control";
  if (NATIVE.has(tag) || WIDGETS.has(element.getAttribute("role")) || isEditable(element)) return "control";
  if ((tag === "A" || tag === "AREA") && element.hasAttribute("href")) return "control";
  if ((tag === "VIDEO" || tag === "AUDIO") && element.controls) return "control";
  if (tag === "HTML" || tag === "BODY" || tag === "IFRAME") return "";
  return reactsToClicks(element, style) ? "listener" : "";
};

const reactsToClicks = (element, style) => {
  if (element.tagName === "LABEL" && element.control) return false;
  if (element.hasAttribute("onclick") || element.hasAttribute("onmousedown")) return true;
  if (element.tabIndex >= 0 && element.hasAttribute("tabindex")) return true;
  if (style.cursor === "pointer" && getComputedStyle(parentElementOf(element)).cursor !== "pointer") return true;
  return isListening(element);
};

const parentElementOf = (element) => {
  let parent = parentOf(element);
  while (parent && parent.nodeType !== Node.ELEMENT_NODE) parent = parentOf(parent);
  return parent ?? document.documentElement;
};

const roleOf = (element) => {
  const role = element.getAttribute("role");
  if (role) return role.trim().slice(0, 30);
  const tag = element.localName;
  if (tag === "a" || tag === "area") return "link";
  if (tag === "input") return element.type === "text" ? "input" : `input ${element.type}`;
  if (isEditable(element)) return "textbox";
  return tag.slice(0, 30);
};

const detailsOf = (element) => [...wordsOf(element), ...statesOf(element)];

const wordsOf = (element) => {
  const words = [];
  if (element.placeholder) words.push(`placeholder=${quoted(element.placeholder)}`);
  if (element.tagName === "SELECT") words.push(`options=${optionsOf(element)}`);
  else if (FIELDS.test(element.tagName)) words.push(...valueOf(element));
  else if (isEditable(element)) words.push(`value=${quoted(textOf(element, 200), 200)}`);
  else if (element.hasAttribute("aria-valuenow")) words.push(`value=${tidy(element.getAttribute("aria-valuetext") || element.getAttribute("aria-valuenow"), 40)}`);
  return words;
};

const quoted = (words, limit = 80) => JSON.stringify(tidy(words, limit));

const valueOf = (field) => {
  if (field.type === "file") return [...field.files].slice(0, 3).map((file) => `value=${quoted(file.name)}`);
  if (SILENT.test(field.type)) return [];
  if (field.type === "password") return field.value ? ["value=(hidden)"] : [];
  const range = ["min", "max", "step"].filter((key) => field[key]).map((key) => `${key}=${tidy(field[key], 20)}`);
  return [...(field.value ? [`value=${quoted(field.value, 200)}`] : []), ...range];
};

const optionsOf = (select) => {
  const options = [...select.options].slice(0, MAX_OPTIONS).map((option) => (option.selected ? "*" : "") + tidy(option.text, 40));
  const chosen = select.selectedOptions[0];
  if (chosen && chosen.index >= MAX_OPTIONS) options.push(`…|*${tidy(chosen.text, 40)}`);
  const more = select.options.length - MAX_OPTIONS;
  return options.join("|") + (more > 0 ? `|… ${more} more` : "");
};

const statesOf = (element) => {
  const on = (name) => element.getAttribute(`aria-${name}`) === "true";
  const states = [];
  if (element.checked || on("checked")) states.push("checked");
  if (element.indeterminate || element.getAttribute("aria-checked") === "mixed") states.push("mixed");
  if (on("selected") || element.getAttribute("aria-current") === "page") states.push("selected");
  if (on("pressed")) states.push("pressed");
  if (isDisabled(element)) states.push("disabled");
  if (element.readOnly) states.push("readonly");
  if (element.required || on("required")) states.push("required");
  if (element.getAttribute("aria-invalid") === "true") states.push("invalid");
  const expanded = element.tagName === "SUMMARY" ? String(element.parentElement?.open ?? "") : element.getAttribute("aria-expanded");
  if (expanded === "true" || expanded === "false") states.push(`expanded=${expanded}`);
  return states;
};

const isDisabled = (element) => element.disabled || element.getAttribute("aria-disabled") === "true" || element.matches(":disabled");
