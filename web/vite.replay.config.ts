import { defineConfig } from "vite";

// What plays a shared run: one script and one style, which `maniple.replay` writes into each file.
export default defineConfig({
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  build: {
    outDir: "../src/maniple/replay/assets",
    emptyOutDir: true,
    copyPublicDir: false,
    target: "es2022",
    lib: { entry: "src/replay/main.tsx", formats: ["iife"], name: "maniple", fileName: () => "player.js", cssFileName: "player" },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
