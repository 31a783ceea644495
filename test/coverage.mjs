/** Reads V8's coverage of all processes of a run, and prints the covered lines by folder. */
import { readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Prints the coverage of a run. @param folder NODE_V8_COVERAGE of the run @param build the JavaScript that ran, without
 * comments
 */
export function reportCoverage(folder, build) {
  const files = new Map();
  for (const path of readdirSync(build, { recursive: true, encoding: "utf8" }))
    if (/^(src|plugins|clients)[\\/].*\.js$/.test(path) && !/[\\/](assets|vendor)[\\/]/.test(path)) {
      const text = readFileSync(join(build, path), "utf8");
      files.set(join(build, path), { path: path.split(sep).join("/"), text, ran: new Uint8Array(text.length) });
    }
  for (const name of readdirSync(folder)) {
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8"));
    for (const { url, functions } of result) {
      const file = url.startsWith("file:") ? files.get(fileURLToPath(url)) : undefined;
      if (file !== undefined) mark(file.ran, functions);
    }
  }
  const rooms = new Map();
  for (const { path, text, ran } of files.values()) {
    const room = path.split("/").slice(0, 2).join("/").replace(/\.js$/, ".ts");
    const sums = rooms.get(room) ?? { lines: 0, ran: 0 };
    const counted = linesOf(text, ran);
    rooms.set(room, { lines: sums.lines + counted.lines, ran: sums.ran + counted.ran });
  }
  const percent = ({ lines, ran }) => (lines === 0 ? 100 : (100 * ran) / lines).toFixed(1).padStart(6);
  console.log("\nlines that ran, of the JavaScript that is built:");
  let [lines, ran] = [0, 0];
  for (const [room, sums] of [...rooms].sort(([a], [b]) => (a < b ? -1 : 1))) {
    console.log(`${percent(sums)} %  ${room} (${sums.ran} of ${sums.lines})`);
    lines += sums.lines;
    ran += sums.ran;
  }
  console.log(`${percent({ lines, ran })} %  in all (${ran} of ${lines})`);
}

/**
 * Marks the characters that ran. The count of an inner range overrides that of the range around it, so outer ranges are
 * marked first.
 */
function mark(ran, functions) {
  const here = new Uint8Array(ran.length);
  const ranges = functions.flatMap((each) => each.ranges);
  // Outer ranges first: sort by start, and for equal starts by descending end.
  ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of ranges) here.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  for (let i = 0; i < ran.length; i++) ran[i] |= here[i];
}

/** Counts the lines that contain more than brackets. A line is covered if all of it ran. */
function linesOf(text, ran) {
  const counted = { lines: 0, ran: 0 };
  let start = 0;
  for (const line of text.split("\n")) {
    if (/[^\s{}()[\];,]/.test(line)) {
      counted.lines++;
      const from = start + line.search(/\S/);
      if (ran.subarray(from, start + line.length).every((each) => each === 1)) counted.ran++;
    }
    start += line.length + 1;
  }
  return counted;
}
