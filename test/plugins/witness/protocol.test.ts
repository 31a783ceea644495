/** The body of an add-checkpoint request of C2SP tlog-witness. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatAddCheckpoint, parseAddCheckpoint } from "../../../plugins/witness/protocol.ts";

const note = "example.com/log\n8\nAAAA\n\n\u2014 example.com/log AAAA\n";

describe("add-checkpoint", () => {
  test("is written as the specification shows it, and read again", () => {
    const request = { old: 5, proof: [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)], checkpoint: note };
    const body = formatAddCheckpoint(request);
    const hash = (byte: number): string => Buffer.alloc(32, byte).toString("base64");
    assert.equal(body, `old 5\n${hash(1)}\n${hash(2)}\n\n${note}`);
    assert.deepEqual(parseAddCheckpoint(body), request);
    assert.deepEqual(parseAddCheckpoint(`old 0\n\n${note}`), { old: 0, proof: [], checkpoint: note });
  });

  test("in another form is rejected", () => {
    const hash = Buffer.alloc(32).toString("base64");
    for (const bad of [
      "",
      "old 5",
      `old 05\n\n${note}`,
      `old -1\n\n${note}`,
      `OLD 5\n\n${note}`,
      `old 99999999999999999\n\n${note}`,
      `old 5\n${hash.slice(0, -2)}\n\n${note}`,
      `old 5\n${Buffer.alloc(31).toString("base64")}\n\n${note}`,
      `old 5\n${`${hash}\n`.repeat(64)}\n${note}`,
    ])
      assert.throws(() => parseAddCheckpoint(bad), { name: "NoteError", reason: "malformed" }, bad);
  });
});
