import { type Plugin, defineConfig } from "vite";

/** KaTeX as a script of its own, for the files of runs that speak in formulas. */
const katexBeside: Plugin = {
  name: "katex-beside",
  async buildStart() {
    const { id } = (await this.resolve("katex/dist/katex.min.js"))!;
    this.emitFile({ type: "asset", fileName: "katex.js", source: await this.fs.readFile(id) });
  },
};

// What plays a shared run: scripts and a style, which `maniple.replay` writes into each file.
export default defineConfig({
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
  resolve: {
    alias: [
      { find: /^katex$/, replacement: "/src/replay/katex.ts" },
      { find: /^\.\/diagrams$/, replacement: "/src/replay/diagrams.ts" },
    ],
  },
  plugins: [katexBeside],
  build: {
    outDir: "../src/maniple/replay/assets",
    emptyOutDir: true,
    copyPublicDir: false,
    target: "es2022",
    lib: { entry: "src/replay/main.tsx", formats: ["iife"], name: "maniple", fileName: () => "player.js", cssFileName: "player" },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
