/** Posts events to an HTTP collector, as one JSON object per line. */
import { post, readWebhookTarget } from "../../src/plugin.ts";
import type { Sink } from "./sink.ts";

interface HttpSinkOptions {
  url: string;
  headers?: Record<string, string>;
  allow_private?: boolean;
  tls_ca_file?: string;
  timeout_seconds?: number;
}

/** Status of a collector that limits the size of a request (RFC 9110, section 15.5.14). */
const CONTENT_TOO_LARGE = 413;

/**
 * Creates the sink. Any 2xx response means that the collector has stored the whole request. A batch that is too large
 * for the collector is sent in smaller requests.
 */
export function createHttpSink(name: string, options: HttpSinkOptions): Sink {
  const { target, headers } = readWebhookTarget(`export "${name}"`, { ...options, secret: [] });
  return {
    resume: () => Promise.resolve(null),
    async write(events, signal) {
      const body = events.map((event) => `${JSON.stringify(event)}\n`).join("");
      const { status } = await post(target, { ...headers, "content-type": "application/x-ndjson" }, body, signal);
      if (status === CONTENT_TOO_LARGE && events.length > 1) {
        const half = Math.ceil(events.length / 2);
        await this.write(events.slice(0, half), signal);
        await this.write(events.slice(half), signal);
      } else if (status === CONTENT_TOO_LARGE) {
        const entry = events[0]?.metadata.sequence;
        throw new Error(`the event of entry ${entry} is larger than ${target.url.host} accepts (status ${status})`);
      } else if (status < 200 || status > 299) throw new Error(`${target.url.host} responded with status ${status}`);
    },
    close: () => Promise.resolve(),
  };
}
