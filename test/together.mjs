/**
 * Runs test files one after another in this process, each as a suite named by its path. Loading the service and compiling
 * it takes longer than most files do. Several such processes share one list of files: each claims the next unclaimed one.
 */
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, describe } from "node:test";
import { cpuOfChildren } from "./cpu.mjs";

const { files, claims, most } = JSON.parse(readFileSync(process.env["ASSENT_TEST_TOGETHER"], "utf8"));
const environment = { ...process.env };

/** Returns true in one process only. */
function claim(index) {
  try {
    closeSync(openSync(join(claims, String(index)), "wx"));
    return true;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
}

function restoreEnvironment() {
  for (const name of Object.keys(process.env)) if (!(name in environment)) delete process.env[name];
  Object.assign(process.env, environment);
}

function cpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + cpuOfChildren();
}

let count = 0;
for (const [index, file] of files.entries()) {
  if (count === most) break;
  if (!claim(index)) continue;
  count++;
  const begun = cpuSeconds();
  // A file that ends the process early loses only its own result: the runner runs it once more, alone.
  await describe(file, () => {
    after(() => writeFileSync(join(claims, String(index)), String(cpuSeconds() - begun)));
    return import(new URL(`../${file.replace(/\.ts$/, ".js")}`, import.meta.url).href);
  });
  restoreEnvironment();
}
