// Draws Mermaid's diagrams for the page that framed this, see web/src/diagrams.ts: what it gets is a stranger's text.
(() => {
  "use strict";
  const FONT = 'system-ui, "Segoe UI", Roboto, "Noto Sans", "PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", sans-serif';
  const LIGHT = { primaryColor: "#eef1fc", primaryTextColor: "#1d1d1b", primaryBorderColor: "#8b9be0", lineColor: "#5f5f58", edgeLabelBackground: "#ffffff" };
  const DARK = { primaryColor: "#262c45", primaryTextColor: "#ecebe6", primaryBorderColor: "#7f90d6", lineColor: "#a8a79f", edgeLabelBackground: "#191918" };
  const PAPER = { light: "#ffffff", dark: "#191918" };
  let drawn = 0;

  const library = new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = /^[^#]*\/assets\/mermaid[^/]*\.js$/.exec(location.hash.slice(1))?.[0] ?? "about:blank";
    script.onload = () => resolve(globalThis.mermaid);
    script.onerror = () => reject(new Error("Mermaid could not be loaded."));
    document.head.append(script);
  });

  addEventListener("message", async ({ source, data, ports: [port] }) => {
    if (source !== parent || !port) return;
    try {
      port.postMessage({ svg: await draw(String(data.code), Boolean(data.isDark)) });
    } catch (error) {
      port.postMessage({ error: String(error?.message ?? error) });
    }
  });

  async function draw(code, isDark) {
    const mermaid = await library;
    const background = isDark ? PAPER.dark : PAPER.light;
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      maxEdges: 80,
      // Words as shapes of the picture itself: HTML in it is not shown everywhere.
      htmlLabels: false,
      look: "classic",
      fontFamily: FONT,
      theme: "base",
      themeVariables: { ...(isDark ? DARK : LIGHT), darkMode: isDark, background, fontFamily: FONT },
    });
    const { svg } = await mermaid.render(`d${(drawn += 1)}`, code);
    return asPicture(svg, background);
  }

  /** An `svg` that stands alone: well-formed, and as large as what is in it. */
  function asPicture(svg, background) {
    const picture = new DOMParser().parseFromString(svg, "text/html").querySelector("svg");
    // What is printed from a dark page stands on white paper.
    picture.style.background = background;
    const [, , width, height] = (picture.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
    if (width > 0 && height > 0) {
      picture.setAttribute("width", String(Math.ceil(width)));
      picture.setAttribute("height", String(Math.ceil(height)));
    }
    return new XMLSerializer().serializeToString(picture);
  }
})();
