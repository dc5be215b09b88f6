// Packages dist/dtdebug-VERSION.vsix with the licence of the repository.
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";

const { version } = JSON.parse(readFileSync("package.json", "utf8"));
copyFileSync("../../LICENSE", "LICENSE");
mkdirSync("build", { recursive: true });
execFileSync(process.execPath, ["esbuild.mjs"], { stdio: "inherit" });
execFileSync(
  process.execPath,
  ["node_modules/@vscode/vsce/vsce", "package", "--no-dependencies", "--allow-missing-repository", "--out", `build/dtdebug-${version}.vsix`],
  { stdio: "inherit" },
);
