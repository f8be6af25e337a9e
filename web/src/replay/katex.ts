import type katex from "katex";

/** KaTeX, embedded only in files that need it, because it is larger than everything else. */
export default {
  render: ((tex, place, options) => {
    const beside = (globalThis as { katex?: typeof katex }).katex;
    if (beside) beside.render(tex, place, options);
    else place.textContent = tex;
  }) satisfies typeof katex.render,
};
