import type katex from "katex";

/** KaTeX as it stands beside the player in those files that need it: it is larger than all else. */
export default {
  render: ((tex, place, options) => {
    const beside = (globalThis as { katex?: typeof katex }).katex;
    if (beside) beside.render(tex, place, options);
    else place.textContent = tex;
  }) satisfies typeof katex.render,
};
