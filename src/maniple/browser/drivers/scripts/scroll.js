// Scrolls what scrolls around `element`, or without one the page itself where it can, else what scrolls at its middle,
// else its largest part. `direction` is 1 for down and -1 for up, `pixels` null for the visible height of what scrolls,
// `room` the height of the window that a frame has, `strict` whether nothing further out may scroll instead.
// Answers {moved, pixels, part, others} when the page has been drawn again: `part` is the height of the part that
// scrolled, 0 for the page and what fills it; `others` counts the other parts that scroll. `moved` is null when nothing
// scrolls, "frame" when it goes on in the frame at the middle.
async ({element, direction, pixels, room, strict}) => {
    const SMALLEST = 40;
    const MOST = 20000;
    const MOST_MILLISECONDS = 300;
    const root = document.scrollingElement ?? document.documentElement;
    const locked = [document.documentElement, document.body].some(
        one => one && getComputedStyle(one).overflowY === "hidden");
    const roomIn = one => direction > 0 ? one.scrollHeight - one.clientHeight - one.scrollTop : one.scrollTop;
    const can = one => roomIn(one) >= 1 && !(one === root && locked);
    const scrolls = one => {
        if (one === root) return !locked && root.scrollHeight > innerHeight;
        if (one === document.body || one.scrollHeight <= one.clientHeight || one.clientHeight < SMALLEST) return false;
        return /auto|scroll|overlay/.test(getComputedStyle(one).overflowY);
    };
    const above = function* (one) {
        for (; one; one = one.assignedSlot ?? one.parentElement ?? one.getRootNode().host) yield one;
    };
    // In the flat tree but for what is in a slot, which comes as a child of its host.
    const within = function* (node) {
        let left = MOST;
        const todo = [node];
        while (todo.length && left-- > 0) {
            const one = todo.pop();
            yield one;
            if (one.shadowRoot) todo.push(...one.shadowRoot.children);
            todo.push(...one.children);
        }
    };
    const hit = () => {
        let found = document.elementFromPoint(innerWidth / 2, Math.min(innerHeight, room ?? innerHeight) / 2);
        while (found?.shadowRoot) {
            const inner = found.shadowRoot.elementFromPoint(innerWidth / 2, innerHeight / 2);
            if (!inner || inner === found) break;
            found = inner;
        }
        return found;
    };
    const size = one => { const box = one.getBoundingClientRect(); return box.width * box.height; };
    const largest = parts => parts.toSorted((a, b) => size(b) - size(a))[0] ?? null;
    const partsIn = node => Array.from(within(node)).filter(one => one !== root && scrolls(one));
    // What of it is in the window, where a step must not pass over anything.
    const visibleHeight = one => {
        const window = Math.min(innerHeight, room ?? innerHeight);
        if (one === root) return window;
        let {top, height} = one.getBoundingClientRect();
        top += one.clientTop * height / (one.offsetHeight || 1);
        let bottom = top + one.clientHeight;
        for (const around of above(one.parentElement)) {
            if (getComputedStyle(around).overflowY === "visible" || around === root || around === document.body) continue;
            const box = around.getBoundingClientRect();
            [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
        }
        const seen = Math.min(bottom, window) - Math.max(top, 0);
        return Math.round(seen >= SMALLEST ? seen : one.clientHeight);
    };

    const around = start => {
        const parts = [...above(start)].filter(scrolls);
        if (strict && parts.length && parts[0] !== root) return parts[0];
        if (strict) return largest(partsIn(start)) ?? (parts[0] || null);
        return parts.find(can) ?? parts[0] ?? null;
    };
    const anywhere = () => {
        const middle = hit();
        const modal = middle && [...above(middle)].find(one => one.matches("dialog:modal, [aria-modal=true]"));
        if (!modal && can(root)) return root;
        if (middle?.localName === "iframe" || middle?.localName === "frame") return "frame";
        const here = [...above(middle)].find(one => one !== root && scrolls(one) && can(one));
        if (here) return here;
        if (modal && partsIn(modal).length) return largest(partsIn(modal));
        if (can(root) || (!locked && root.scrollHeight > innerHeight)) return root;
        const parts = partsIn(document.documentElement);
        return largest(parts.filter(can)) ?? largest(parts);
    };

    const target = (element && around(element)) || (strict ? null : anywhere());
    if (target === "frame") return {moved: "frame"};
    if (!target) return {moved: null};
    const from = target.scrollTop;
    const step = pixels ?? visibleHeight(target);
    target.scrollBy({top: direction * step, behavior: "instant"});
    // The page hears of it with the next frame, and virtual lists draw their rows then; a hidden page has no frames.
    await new Promise(done => {
        setTimeout(done, MOST_MILLISECONDS);
        requestAnimationFrame(() => requestAnimationFrame(done));
    });
    return {
        moved: Math.round(Math.abs(target.scrollTop - from)),
        pixels: step,
        part: target === root || visibleHeight(target) > 0.9 * innerHeight ? 0 : visibleHeight(target),
        others: partsIn(document.documentElement).filter(one => one !== target).length + (target !== root && scrolls(root) ? 1 : 0),
    };
}
