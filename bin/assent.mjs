#!/usr/bin/env node
// The command `assent`, executable in a clone too: dist/ is not there before the first build, and npm links what is.
import { existsSync } from "node:fs";

const launcher = new URL("../src/cli/assent.mjs", import.meta.url);
const isClone = existsSync(launcher);
// "npm start" builds dist/ without the bundles, which contain the dependencies that the package does not install.
if (!isClone && !existsSync(new URL("../dist/bundles", import.meta.url))) {
  process.stderr.write(
    "assent: this package is incomplete, because its clone was not built: run `npm run build && npm pack` there and install the new file\n",
  );
  process.exit(1);
}
await import(isClone ? launcher.href : "../dist/src/cli/bin.js");
