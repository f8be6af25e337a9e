// What a walk offers to act on: which elements, as what, and whether they can be reached.
const MOST_CONTROLS = 1_500;
const MOST_FRAMES = 30;
const REACTIVE = "a[href],button,input,select,textarea,summary,canvas,iframe,[onclick],[role],[tabindex],[contenteditable]";

class Offers {
  constructor(view, remember, add) {
    this.view = view;
    this.remember = remember;
    this.add = add;
    this.frames = [];
    this.controls = 0;
    this.unlisted = 0;
  }

  // Returns what that changes for all that is inside.
  offer(element, style, box, context) {
    if (FRAMES.test(tagOf(element))) return this.frame(element, box, context);
    if (tagOf(element) === "LABEL" && element.control) return this.label(element, context);
    const kind = kindOf(element, style);
    if (!kind || style.visibility !== "visible" || !isShown(element, style, context)) return {};
    return kind === "control" ? this.control(element, context) : this.listener(element, box, context);
  }

  control(element, context) {
    const name = () => nameOf(element);
    // A link in a tab, say: the same thing to a person.
    if (context.name && !NATIVE.has(tagOf(element)) && context.name === name()) return {};
    return this.list({ element, subject: element, shown: element, name }, context) ? { quiet: true, name: name() } : {};
  }

  // An element that is no control but reacts: named by its own words, if they are few; what else is in it that
  // reacts follows by itself.
  listener(element, box, context) {
    const isOther = (inner) => matches(inner, REACTIVE) || isListening(inner);
    const own = () => textOf(element, MAX_NAME + 1, isOther);
    const hasOthers = element.querySelector(REACTIVE) !== null || [...element.querySelectorAll("*")].slice(0, 60).some(isListening);
    const isLarge = box.width * box.height > 0.5 * innerWidth * innerHeight;
    if (hasOthers && (isLarge || !own())) return {};
    const name = () => (hasOthers ? tidy(element.getAttribute("aria-label")) || own() : nameOf(element));
    if (context.name && context.name === name()) return {};
    const isLong = own().length > MAX_NAME;
    const listed = this.list({ element, subject: element, shown: element, name: isLong ? () => tidy(element.getAttribute("aria-label")) : name }, context);
    return listed && !isLong ? { quiet: true, name: name() } : {};
  }

  label(label, context) {
    const { control } = label;
    const style = getComputedStyle(control);
    const isVisible = !isSmall(rectOf(control)) && style.opacity !== "0" && style.visibility === "visible";
    if (!isVisible && control.type !== "hidden" && !context.hidden) {
      this.list({ element: control.type === "file" ? control : label, subject: control, shown: label, name: () => nameOf(control) }, context);
    }
    return { quiet: true };
  }

  // A button of the page's opens it in its place; it takes a file all the same.
  hiddenFile(element, context) {
    const isFile = tagOf(element) === "INPUT" && element.type === "file" && !labelsOf(element).length;
    if (isFile && !context.hidden) this.list({ element, subject: element, shown: parentElementOf(element), name: () => nameOf(element) }, context);
    return null;
  }

  // `element` is what is acted on, `subject` what it says, `shown` what of it is in the window.
  list(control, context) {
    const { subject, shown } = control;
    const onTop = isOnTop(shown, this.view);
    const box = boxOf(shown);
    if (onTop === false && !sticksOut(box, context.clip) && !isDisabled(subject)) return false;
    if (onTop !== true && !isReachable(shown, box, context)) return false;
    if (this.controls >= MOST_CONTROLS) return ++this.unlisted > 0;
    this.controls++;
    const role = roleOf(subject);
    const name = control.name();
    const seen = onTop === true;
    this.add("control", { ...context, seen }, {
      id: this.remember(control, role, name),
      role,
      name,
      details: detailsOf(subject, name.startsWith("(") ? "" : name),
      box: seen ? roundBox(meet(box, this.view)) : null,
    });
    return true;
  }

  frame(element, box, context) {
    const part = meet(box, context.clip);
    const isTiny = part.right - part.left < 10 || part.bottom - part.top < 10;
    if (isTiny || context.hidden || this.frames.length >= MOST_FRAMES || !isVisible(element, { visibilityProperty: true, opacityProperty: true })) return {};
    const mask = maskOf(element, part, this.view);
    if (!mask.includes("0")) return {};
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

const isShown = (element, style, context) => {
  if (isSmall(boxOf(element))) return false;
  if (!context.hidden && style.opacity !== "0") return true;
  // A choice is often made transparent and laid over the picture of one.
  const isChoice = tagOf(element) === "INPUT" && CHOICES.test(element.type);
  return isChoice && !labelsOf(element).some((label) => isVisible(label));
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
