// What a walk offers to act on: which elements, as what, and whether they can be reached.
const MAX_CONTROLS = 1_500;
const MAX_FRAMES = 30;
const REACTIVE = "a[href],button,input,select,textarea,summary,canvas,iframe,[onclick],[role]:not([role=presentation],[role=none]),[tabindex],[contenteditable]";

const CLOSED_ROOT = " (its content is in a closed shadow root: it cannot be read or listed; a click meets its middle, send_keys its focus) ";

class Offers {
  constructor(view, remember, add) {
    this.view = view;
    this.remember = remember;
    this.add = add;
    this.frames = [];
    this.controls = 0;
    this.unlisted = 0;
    this.lacksFrames = false;
  }

  // Returns what that changes for all that is inside.
  offer(element, style, box, context) {
    if (FRAMES.test(tagOf(element))) return this.frame(element, box, context);
    if (tagOf(element) === "LABEL" && element.control) return this.label(element, context);
    const kind = kindOf(element, style);
    if (!kind || style.visibility !== "visible" || !isShown(element, style, context)) return {};
    if (kind === "closed") return this.closed(element, context);
    return kind === "control" ? this.control(element, context) : this.listener(element, box, context);
  }

  control(element, context) {
    const name = nameOf(element);
    // A link in a tab, say: the same thing to a person.
    if (context.name && !NATIVE.has(tagOf(element)) && context.name === name) return {};
    return this.list(itself(element, name, nameOf), context) ? { quiet: true, name } : {};
  }

  // A click goes to its middle, and keys to what then has the focus in it.
  closed(element, context) {
    if (this.list(itself(element, labelOf(element), labelOf), context, ["closed-shadow-root"])) this.add("text", context, { text: CLOSED_ROOT });
    return {};
  }

  // An element that is no control but reacts: named by its own words, if they are few; what else is in it that
  // reacts follows by itself.
  listener(element, box, context) {
    const hasOthers = findInside(element, REACTIVE) !== null || elementsIn(element, 60).some(isListening);
    const own = ownTextOf(element);
    const isLarge = box.width * box.height > 0.5 * innerWidth * innerHeight;
    if (hasOthers && (isLarge || !own)) return {};
    const isLong = own.length > MAX_NAME;
    const naming = isLong ? labelOf : hasOthers ? (one) => labelOf(one) || ownTextOf(one) : nameOf;
    const name = naming(element);
    if (context.name && context.name === name) return {};
    return this.list(itself(element, name, naming), context) && !isLong ? { quiet: true, name } : {};
  }

  label(label, context) {
    const { control } = label;
    const style = getComputedStyle(control);
    const isVisible = !isSmall(rectOf(control)) && style.opacity !== "0" && style.visibility === "visible";
    if (!isVisible && control.type !== "hidden" && !context.hidden && !isUnderItsLabel(control)) {
      const element = control.type === "file" ? control : label;
      this.list({ element, subject: control, shown: label, name: nameOf(control), naming: nameOf }, context);
    }
    return { quiet: true };
  }

  // A button of the page's opens it in its place; it takes a file all the same.
  hiddenFile(element, context) {
    const isFile = tagOf(element) === "INPUT" && element.type === "file" && !labelsOf(element).length;
    if (isFile && !context.hidden) this.list({ ...itself(element, nameOf(element), nameOf), shown: parentElementOf(element) }, context);
    return null;
  }

  // `element` is what is acted on, `subject` what it says, `shown` what of it is in the window.
  list(control, context, marks = []) {
    const { subject, shown, name } = control;
    if (this.controls >= MAX_CONTROLS) return ++this.unlisted > 0;
    const onTop = isOnTop(shown, this.view);
    const box = boxOf(shown);
    if (onTop === false && !sticksOut(box, context.clip) && !isDisabled(subject)) return false;
    if (onTop !== true && !isReachable(shown, box, context)) return false;
    this.controls++;
    const role = roleOf(subject);
    const seen = onTop === true;
    this.add("control", { ...context, seen }, {
      id: this.remember(control, role),
      role,
      name,
      details: [...marks, ...detailsOf(subject, name.startsWith("(") ? "" : name)],
      box: seen ? roundBox(meet(box, this.view)) : null,
    });
    return true;
  }

  frame(element, box, context) {
    const part = meet(box, context.clip);
    const isTiny = part.right - part.left < 10 || part.bottom - part.top < 10;
    if (isTiny || context.hidden || !isVisible(element, { visibilityProperty: true, opacityProperty: true })) return {};
    const mask = maskOf(element, part, this.view);
    if (!mask.includes("0")) return {};
    if (this.frames.length >= MAX_FRAMES) {
      this.lacksFrames = true;
      return {};
    }
    const [left, top] = [box.left + element.clientLeft, box.top + element.clientTop];
    this.frames.push(element);
    this.add("frame", context, {
      clip: [part.left - left, part.top - top, part.right - left, part.bottom - top].map(Math.round),
      mask: mask.includes("1") ? mask : "",
      origin: [Math.round(left), Math.round(top)],
    });
    return {};
  }
}

const itself = (element, name, naming) => ({ element, subject: element, shown: element, name, naming });

const labelOf = (element) => tidy(element.getAttribute("aria-label"));

const ownTextOf = (element) => textOf(element, MAX_NAME + 1, (inner) => matches(inner, REACTIVE) || isListening(inner));

const isShown = (element, style, context) => {
  if (isSmall(boxOf(element))) return false;
  if (!context.hidden && style.opacity !== "0") return true;
  // A choice is often made transparent and laid over the picture of one.
  const isChoice = tagOf(element) === "INPUT" && CHOICES.test(element.type);
  if (isChoice) return !labelsOf(element).some((label) => isVisible(label));
  return isUnderItsLabel(element);
};

// Several libraries draw an empty text field as its label alone: the field is transparent until it has the focus.
const isUnderItsLabel = (element) => {
  const isField = tagOf(element) === "TEXTAREA" || (tagOf(element) === "INPUT" && !SILENT.test(element.type));
  if (!isField) return false;
  const box = rectOf(element);
  const isOver = (label) => isVisible(label, { opacityProperty: true }) && overlaps(rectOf(label), box);
  return labelsOf(element).some(isOver) || (element.getRootNode() instanceof ShadowRoot && nameOf(element) !== "");
};

// Out of the view, but one can scroll to it.
const isReachable = (element, box, { clip }) => {
  if (overlaps(box, clip)) return true;
  for (let parent = parentElementOf(element); parent !== rootElement(); parent = parentElementOf(parent)) {
    const style = getComputedStyle(parent);
    const isCut = style.overflow !== "visible" && !overlaps(box, rectOf(parent));
    if (isCut || style.position === "fixed") return /auto|scroll/.test(style.overflow);
  }
  return box.right + scrollX > 0 && box.bottom + scrollY > 0;
};

const roundBox = (box) => [box.left, box.top, box.right - box.left, box.bottom - box.top].map(Math.round);
