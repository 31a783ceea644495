/** CPU time of child processes, which Node does not report. */
import { readFileSync } from "node:fs";

/** Ticks of the kernel per second, on Linux. */
const TICKS = 100;

/**
 * Returns the seconds of CPU time that ended children of this process and their descendants have used. Returns 0 on other
 * systems than Linux. Source: proc_pid_stat(5), fields cutime and cstime.
 */
export function cpuOfChildren() {
  if (process.platform !== "linux") return 0;
  // The name of the program, in parentheses, can contain spaces.
  const fields = readFileSync("/proc/self/stat", "utf8")
    .replace(/^.*\) /s, "")
    .split(" ");
  return (Number(fields[13]) + Number(fields[14])) / TICKS;
}
