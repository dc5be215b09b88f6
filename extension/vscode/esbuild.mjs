// Bundles the extension and the notebook renderer into dist/; with --tests, the unit tests into build/test/.
import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, target: "es2022", logLevel: "warning" };
const node = { ...common, platform: "node", format: "cjs" };

if (process.argv.includes("--tests")) {
  rmSync("build/test", { recursive: true, force: true });
  await build({
    ...node,
    entryPoints: readdirSync("test").filter((name) => name.endsWith(".test.ts")).map((name) => `test/${name}`),
    alias: { vscode: "./test/vscode.ts" },
    outdir: "build/test",
    sourcemap: "inline",
    logOverride: { "import-is-undefined": "silent" }, // the stub has only what the tests come to
  });
} else {
  rmSync("dist", { recursive: true, force: true });
  await build({
    ...node,
    entryPoints: ["src/extension.ts"],
    external: ["vscode"],
    mainFields: ["module", "main"], // the UMD builds of some dependencies can't be bundled
    outdir: "dist",
    minify: true,
  });
  await build({
    ...common,
    entryPoints: ["src/renderer.ts"],
    platform: "browser",
    format: "esm",
    outdir: "dist",
    minify: true,
  });
}
