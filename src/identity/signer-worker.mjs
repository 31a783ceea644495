// Signs on a separate thread. Plain JavaScript, because a worker does not get the loader that reads TypeScript.
import { createPrivateKey, sign } from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";

const key = createPrivateKey({ key: Buffer.from(workerData), format: "der", type: "pkcs8" });

parentPort.on("message", ({ id, messages }) => {
  const signatures = new Uint8Array(messages.length * 64);
  messages.forEach((message, i) => signatures.set(sign(null, message, key), i * 64));
  parentPort.postMessage({ id, signatures }, [signatures.buffer]);
});
