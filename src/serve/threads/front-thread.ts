/** One of the threads that speak HTTP. */
import { parentPort, workerData } from "node:worker_threads";
import { serve, ServerResponse, type ServeOptions } from "../index.ts";
import { createFront } from "./front.ts";
import type { Downward, FrontOrder, FrontState } from "./messages.ts";

if (parentPort === null) throw new Error("this is begun as a thread");
const port = parentPort;
const tell = (state: FrontState): void => port.postMessage(state);

const front = createFront(
  (message) => port.postMessage(message, [message.bodies.buffer as ArrayBuffer]),
  ServerResponse,
);
try {
  const { url, stop } = await serve(front.fetch, workerData as ServeOptions);
  port.on("message", (message: Downward | FrontOrder) => {
    if (!("order" in message)) front.heard(message);
    else if (message.order === "ping") tell({ state: "here" });
    else void stop(message.graceMs).then(() => tell({ state: "stopped" }));
  });
  tell({ state: "listening", url });
} catch (error) {
  tell({ state: "failed", message: (error as Error).message });
}
