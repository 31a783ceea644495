/** `POST /v1/evidence`: streams the files of a pack, so that the console can save it. */
import { createHash } from "node:crypto";
import { closed, type CoreHost, timeSchema } from "../../src/core.ts";
import { defineRoute, parseRfc3339, Refusal, Type } from "../../src/plugin.ts";
import type { PackWriter } from "./pack-writer.ts";

const NDJSON = "application/x-ndjson";
const BODY_BYTES = 4096;
/** Minimum number of characters of one line of the stream, except the last line of a file. */
const PIECE = 65_536;

const Window = Type.Object(
  { from: timeSchema("Start of the window, inclusive."), to: timeSchema("End of the window, exclusive.") },
  closed,
);

export function packRoute(host: CoreHost) {
  let isBusy = false;
  return defineRoute({
    method: "POST",
    path: "/v1/evidence",
    tag: "evidence",
    summary: "Make an evidence pack",
    description:
      "Lines of JSON. `progress` has the number of entries that were read (`done`) and that the window has (`total`). `file` has the next part of the text of a file. The last line is `result`, with the digest of the pack, or `error`. For admins who see all actions. Refuses actions whose policies redact parameters, because a pack contains parameters in clear: for these, run `assent evidence`. A process makes one pack at a time.",
    scope: "admin",
    body: Window,
    bodyLimit: BODY_BYTES,
    responses: { 200: { description: "Lines of JSON.", contentType: NDJSON } },
    handle({ body, credential, signal }) {
      const [from, to] = [parseRfc3339(body.from) ?? 0, parseRfc3339(body.to) ?? 0];
      if (from >= to) {
        const detail = `must be after \`from\` (${body.from}); got ${body.to}`;
        throw new Refusal("VALIDATION_FAILED", `the window is not valid: \`to\` ${detail}`, {
          errors: [{ pointer: "/to", detail }],
        });
      }
      if (!("all" in credential.visibility))
        throw new Refusal(
          "INSUFFICIENT_SCOPE",
          "a pack contains all actions of the window, and limits of your groups hide some of them from you",
        );
      if (isBusy) throw new Refusal("OVERLOADED", "this process is making another pack; try again when it is done");
      isBusy = true;
      const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
      const writer = writable.getWriter();
      const encoder = new TextEncoder();
      const send = async (line: object): Promise<void> => {
        signal.throwIfAborted();
        await writer.write(encoder.encode(`${JSON.stringify(line)}\n`));
      };
      void makePack(host, { from, to }, send)
        .catch((error: unknown) => send({ type: "error", detail: describeError(error) }))
        .then(() => writer.close())
        // The client has disconnected.
        .catch(() => undefined)
        .finally(() => (isBusy = false));
      return {
        status: 200,
        headers: { "Content-Type": NDJSON, "Cache-Control": "no-store" },
        stream: readable,
      };
    },
  });
}

type Send = (line: object) => Promise<void>;

async function makePack(host: CoreHost, window: { from: number; to: number }, send: Send): Promise<void> {
  // Load these modules on demand, because few services create packs.
  const [{ writePack }, { renderVerificationPage }] = await Promise.all([
    import("./write-pack.ts"),
    import("./page.ts"),
  ]);
  let waiting: Promise<void> = Promise.resolve();
  const { manifest, digest, actions } = await writePack(host.storage, {
    ...window,
    writer: createStreamWriter(async (line) => {
      await waiting;
      await host.waitForReadSlot();
      await send(line);
    }),
    checkpoint: null,
    // The options of another feature are unknown here. An auditor pastes the keys of witnesses that they know.
    witnesses: [],
    page: renderVerificationPage(),
    refusesRedacted: true,
    progress(done, total) {
      waiting = send({ type: "progress", done, total });
      // The next write awaits it.
      waiting.catch(() => undefined);
    },
  });
  await send({ type: "result", digest, entries: manifest.end - manifest.first, actions });
}

/** Creates a writer that sends files in pieces of text. */
function createStreamWriter(send: Send): PackWriter {
  const files: { name: string; sha256: string; bytes: number }[] = [];
  return {
    files: () => [...files].sort((a, b) => (a.name < b.name ? -1 : 1)),
    async write(name, chunks) {
      const hash = createHash("sha256");
      let [bytes, text] = [0, ""];
      const flush = async (): Promise<void> => {
        const encoded = new TextEncoder().encode(text);
        hash.update(encoded);
        bytes += encoded.length;
        await send({ type: "file", name, text });
        text = "";
      };
      for await (const chunk of chunks) {
        text += chunk;
        if (text.length >= PIECE) await flush();
      }
      await flush();
      files.push({ name, sha256: hash.digest("hex"), bytes });
    },
  };
}

const describeError = (error: unknown): string => (error instanceof Error ? error.message : String(error));
