/** Requests of the HTTP export to a collector that limits their size. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ApiActivity } from "../../../plugins/ocsf/api-activity.ts";
import { createHttpSink } from "../../../plugins/ocsf/http-sink.ts";
import { startReceiver } from "../../support/receiver.ts";

const event = (sequence: number): ApiActivity => ({ class_uid: 6003, metadata: { uid: `${sequence}`, sequence } });

test("a batch that is too large for the collector arrives in smaller requests, in order", async () => {
  const collector = await startReceiver();
  try {
    const accepted: string[] = [];
    let limit = 150;
    collector.answer = ({ body }, response) => {
      response.statusCode = body.length > limit ? 413 : 204;
      if (response.statusCode === 204) accepted.push(body);
      response.end();
    };
    const sink = createHttpSink("siem", { url: `http://127.0.0.1:${collector.port}/events`, allow_private: true });
    const events = Array.from({ length: 9 }, (_, at) => event(at));
    await sink.write(events, new AbortController().signal);
    const sequences = accepted.map((body) =>
      body
        .trim()
        .split("\n")
        .map((line) => (JSON.parse(line) as ApiActivity).metadata.sequence),
    );
    assert.deepEqual(sequences.flat(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert.ok(sequences.length > 1, "one request had all events");
    limit = 10;
    await assert.rejects(
      sink.write(events, new AbortController().signal),
      /the event of entry 0 is larger than 127\.0\.0\.1:\d+ accepts \(status 413\)/,
    );
  } finally {
    await collector.close();
  }
});
