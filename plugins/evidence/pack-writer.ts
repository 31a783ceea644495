/** Writes the files of a pack one at a time, and computes their digests. */
import { createHash } from "node:crypto";
import { createWriteStream, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { once } from "node:events";
import { CommandError } from "../../src/command.ts";
import type { Manifest } from "./pack-format.ts";

export interface PackWriter {
  /** Writes one file from pieces of text. Waits for the disk between the pieces, so that memory use stays bounded. */
  write(name: string, chunks: AsyncIterable<string> | Iterable<string>): Promise<void>;
  /** Returns the files that were written so far, sorted by name. */
  files(): Manifest["files"];
}

/** Creates the folder, and a writer for it. Throws CommandError if the folder is not empty, so that packs never mix. */
export function createPackWriter(folder: string): PackWriter {
  mkdirSync(folder, { recursive: true });
  if (readdirSync(folder).length > 0)
    throw new CommandError(`the folder "${folder}" is not empty; name another folder`);
  const files: Manifest["files"] = [];
  return {
    files: () => [...files].sort((a, b) => (a.name < b.name ? -1 : 1)),
    async write(name, chunks) {
      const hash = createHash("sha256");
      let bytes = 0;
      const file = createWriteStream(join(folder, name), { flags: "wx" });
      const finished = once(file, "finish");
      // Prevent an unhandled rejection. The caller gets errors through `finished`, which is awaited after the pieces.
      finished.catch(() => {});
      for await (const chunk of chunks) {
        const encoded = Buffer.from(chunk, "utf8");
        hash.update(encoded);
        bytes += encoded.length;
        if (!file.write(encoded)) await Promise.race([once(file, "drain"), finished]);
      }
      file.end();
      await finished;
      files.push({ name, sha256: hash.digest("hex"), bytes });
    },
  };
}
