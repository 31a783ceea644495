import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { mkdirSync, openSync, closeSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CommandError,
  type Command,
  EXIT_CODES,
  parseArguments,
  parsePort,
  readTextFlag,
  serveUntilStopped,
  usageError,
} from "../../src/command.ts";
import { formatCosignerVkey, isNoteName, type NoteSigner, parseVkey, verifyEd25519 } from "../../src/core.ts";
import { createWitness, createWitnessStateStore, type Witness } from "./witness.ts";

/** Maximum size of a request in bytes. A proof has at most 63 lines, and a checkpoint a few signatures. */
const MAX_REQUEST_BYTES = 65_536;

export const witness: Command = {
  help: `usage: assent witness --name NAME --log VKEY [--log VKEY]... [--data FOLDER] [--host HOST] [--port PORT]

Serves the C2SP tlog-witness protocol: cosigns a log's checkpoint if a proof shows that it extends the last cosigned
checkpoint, so that the log's operator cannot present different histories. Two teams can witness each other. Creates its
key at the first start and prints the verifier key, which readers who trust this witness pin.

  --name NAME     name of this witness, such as witness.example.com/w1
  --log VKEY      verifier key of a log (GET /v1/provenance/keys), or @file; may be repeated
  --data FOLDER   folder of the key and of the last cosigned checkpoints (./witness). If it is lost, use a new name and key
  --host HOST     address to listen on (127.0.0.1)
  --port PORT     port; 0 picks a free one (8001)

examples:
  assent witness --name witness.example.com/w1 --log "$VKEY"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      name: { type: "string" },
      log: { type: "string", multiple: true },
      data: { type: "string" },
      host: { type: "string" },
      port: { type: "string" },
    });
    if (positionals.length > 0) throw usageError("assent witness takes no arguments");
    const { name, host = "127.0.0.1", data = "witness" } = values;
    if (name === undefined || !isNoteName(name)) throw usageError('--name is needed: a name without spaces and "+"');
    const logs = await Promise.all((values.log ?? []).map((log) => readTextFlag(log, (key) => key.trim())));
    if (logs.length === 0) throw usageError("--log is needed: the verifier key of a log to witness");
    for (const vkey of logs) {
      try {
        parseVkey(vkey);
      } catch (error) {
        throw usageError((error as Error).message);
      }
    }
    const port = parsePort(values.port ?? "8001");
    mkdirSync(data, { recursive: true, mode: 0o700 });
    const unlock = lock(data);
    try {
      const signer = signerIn(data, name);
      const cosigner = createWitness({
        logs,
        state: createWitnessStateStore(data),
        signer,
        clock: Date.now,
        verify: verifyEd25519,
      });
      await serveUntilStopped(createHandler(cosigner), { host, port }, (url) => {
        io.out(
          `the verifier key of this witness; readers who trust it pin it:\n\n  ${formatCosignerVkey(name, signer.publicKey)}\n`,
        );
        io.out(`the witness is listening on ${url}`);
      });
      return EXIT_CODES.ok;
    } finally {
      unlock();
    }
  },
};

function createHandler(cosigner: Witness): (request: Request) => Promise<Response> {
  return async (request) => {
    const { pathname } = new URL(request.url);
    const plain = (status: number, words: string, headers: Record<string, string> = {}): Response =>
      new Response(`${words}\n`, { status, headers: { "Content-Type": "text/plain; charset=utf-8", ...headers } });
    if (!pathname.endsWith("/add-checkpoint")) return plain(404, "the only path of this service is add-checkpoint");
    if (request.method !== "POST") return plain(405, "add-checkpoint accepts only POST", { Allow: "POST" });
    const body = await readText(request);
    if (body === null)
      return plain(413, `the request is larger than ${MAX_REQUEST_BYTES} bytes`, { Connection: "close" });
    try {
      const answer = await cosigner.addCheckpoint(body);
      return new Response(answer.body, { status: answer.status, headers: { "Content-Type": answer.contentType } });
    } catch (error) {
      process.stderr.write(`assent witness: nothing was cosigned: ${String(error)}\n`);
      return plain(503, "the witness cannot store its state; nothing was cosigned");
    }
  };
}

/** Returns the body; null if it is too large. Bytes that are not UTF-8 become U+FFFD, which no valid note contains. */
async function readText(request: Request): Promise<string | null> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of request.body ?? []) {
    size += (chunk as Uint8Array).length;
    if (size > MAX_REQUEST_BYTES) return null;
    text += decoder.decode(chunk as Uint8Array, { stream: true });
  }
  return text + decoder.decode();
}

/** Returns a signer that uses the key in the folder. Creates the key if it does not exist. */
function signerIn(folder: string, name: string): NoteSigner {
  const path = join(folder, "witness-key.pem");
  let pem: string;
  try {
    pem = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    pem = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
    writeFileSync(path, pem, { mode: 0o600, flag: "wx", flush: true });
  }
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== "ed25519") throw new CommandError(`the key in ${path} is not Ed25519`);
  const publicKey = new Uint8Array(createPublicKey(key).export({ type: "spki", format: "der" }).subarray(12));
  return { name, publicKey, sign: (message) => new Uint8Array(sign(null, message, key)) };
}

/**
 * Locks the folder, because two processes that use it could cosign two histories. Returns a function that releases the
 * lock.
 */
function lock(folder: string): () => void {
  const path = join(folder, "lock");
  for (;;) {
    try {
      const file = openSync(path, "wx", 0o600);
      writeFileSync(file, String(process.pid));
      closeSync(file);
      return () => rmSync(path, { force: true });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      const holder = Number(readFileSync(path, "utf8"));
      if (isAlive(holder)) throw new CommandError(`the process ${holder} already runs a witness with ${folder}`);
      rmSync(path, { force: true });
    }
  }
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
