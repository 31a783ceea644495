/** Publishes events to a stream of NATS JetStream, which confirms each event and drops duplicates. */
import { jetstream, type JetStreamClient } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import type { Sink } from "./sink.ts";

interface NatsSinkOptions {
  servers: string[];
  subject: string;
  user?: string;
  password?: string;
  token?: string;
}

export function createNatsSink({ servers, subject, user, password, token }: NatsSinkOptions): Sink {
  let connection: NatsConnection | null = null;
  let stream: JetStreamClient | null = null;

  async function close(): Promise<void> {
    const open = connection;
    connection = null;
    stream = null;
    await open?.close();
  }

  return {
    async resume() {
      await close();
      connection = await connect({
        servers,
        name: "assent",
        // Do not reconnect, because the export repeats a failed batch with a new connection.
        reconnect: false,
        timeout: 5000,
        ...(user === undefined ? {} : { user, pass: password ?? "" }),
        ...(token === undefined ? {} : { token }),
      });
      stream = jetstream(connection);
      return null;
    },
    async write(events) {
      if (stream === null) throw new Error("the connection to NATS is closed");
      // Publish one event at a time, because a later event must not follow a failed event.
      for (const event of events)
        await stream.publish(subject, JSON.stringify(event), { msgID: event.metadata.uid, timeout: 5000 });
    },
    close,
  };
}
