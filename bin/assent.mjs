#!/usr/bin/env node
// The command `assent`, executable in a clone too: dist/ is not there before the first build, and npm links what is.
import { existsSync } from "node:fs";

const launcher = new URL("../src/cli/assent.mjs", import.meta.url);
await import(existsSync(launcher) ? launcher.href : "../dist/src/cli/bin.js");
