// Scrolls by `pixels`, negative for up: the page itself where it can, else what scrolls at its middle, else its largest part.
// Answers by how much it moved, "nothing" when nothing scrolls, "frame" when the middle is a frame, where it goes on.
pixels => {
    const down = pixels > 0;
    const can = element => {
        const room = down ? element.scrollHeight - element.clientHeight - element.scrollTop : element.scrollTop;
        return room >= 1;
    };
    const scrolls = element => {
        if (element.scrollHeight <= element.clientHeight || element.clientHeight < 40) return false;
        return /auto|scroll|overlay/.test(getComputedStyle(element).overflowY);
    };
    const above = function* (element) {
        for (; element; element = element.assignedSlot ?? element.parentElement ?? element.getRootNode().host)
            yield element;
    };
    const deepest = () => {
        let found = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
        while (found?.shadowRoot) {
            const inner = found.shadowRoot.elementFromPoint(innerWidth / 2, innerHeight / 2);
            if (!inner || inner === found) break;
            found = inner;
        }
        return found;
    };
    const root = document.scrollingElement ?? document.documentElement;
    const locked = [document.documentElement, document.body].some(
        element => element && getComputedStyle(element).overflowY === "hidden");
    let target = !locked && can(root) ? root : null;
    const middle = deepest();
    if (!target && (middle?.localName === "iframe" || middle?.localName === "frame")) return "frame";
    if (!target) for (const element of above(middle))
        if (element !== root && scrolls(element) && can(element)) { target = element; break; }
    if (!target && root.scrollHeight <= innerHeight) {
        const parts = Array.from(document.querySelectorAll("*")).slice(0, 20000).filter(e => e !== root && scrolls(e));
        const size = e => { const box = e.getBoundingClientRect(); return box.width * box.height; };
        target = parts.filter(can).sort((a, b) => size(b) - size(a))[0] ?? null;
        if (!target && !parts.length) return "nothing";
    }
    if (!target) return 0;
    const from = target.scrollTop;
    target.scrollBy({top: pixels, behavior: "instant"});
    return Math.round(Math.abs(target.scrollTop - from));
}
