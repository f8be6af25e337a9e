import { defineConfig } from "vite";

// `page_build.py` runs this and puts the result into the Python package, which serves it.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/maniple/api/page",
    emptyOutDir: true,
    assetsDir: "assets",
    target: "es2022",
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
    rolldownOptions: { input: ["index.html", "docs.html"] },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
