import { defineConfig } from "vite";

// The build is committed: Python serves it, and nobody needs Node to run the service.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/maniple/api/page",
    emptyOutDir: true,
    assetsDir: "assets",
    target: "es2022",
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1_000,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
