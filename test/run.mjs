/**
 * Runs every test file, or those that are named, two at a time at least: many of them wait for processes, disks and
 * browsers more than they compute. Node's own runner leaves a core free, which on two cores means one file at a time.
 */
import { spawn } from "node:child_process";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";

const named = process.argv.slice(2);
const files = named.length > 0 ? named : readdirSync(import.meta.dirname ?? new URL(".", import.meta.url).pathname, { recursive: true }).map((file) => join("test", file)).filter((file) => file.endsWith(".test.ts")).sort();
// The longest first, so that no core waits for them at the end.
const LONG = ["runtimes", "faults", "browser", "e2e", "deploy", "cli"].map((folder) => join("test", folder, ""));
const rank = (file) => LONG.findIndex((folder) => file.startsWith(folder)) + 1 || LONG.length + 1;
files.sort((a, b) => rank(a) - rank(b));
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
// Older ones of Node 20 do not know the flag.
const concurrency = major > 20 || minor >= 10 ? [`--test-concurrency=${Math.max(2, availableParallelism() - 1)}`] : [];
spawn(process.execPath, ["--import", "tsx", "--test", ...concurrency, ...files], { stdio: "inherit" }).on("exit", (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
