/** Publishes signed checkpoints to witnesses and webhooks, so that other parties can detect a forked log. */
import { type CoreHost, defineCorePlugin, parseCosignerVkey } from "../../src/core.ts";
import { WitnessOptions } from "./options.ts";
import { createPostedCheckpoints } from "./posted-checkpoints.ts";
import { Witnesses } from "./witnesses.ts";

export default defineCorePlugin({
  name: "witness",
  options: WitnessOptions,
  setup(host, options) {
    assertKeys(options);
    let publishers: readonly { start(): void; stop(): Promise<void> }[] = [];
    return {
      async start() {
        publishers = createPublishers(host, options);
        for (const publisher of publishers) publisher.start();
      },
      async stop() {
        await Promise.all(publishers.map((publisher) => publisher.stop()));
      },
    };
  },
});

function assertKeys({ witnesses }: WitnessOptions): void {
  for (const [i, { vkey }] of witnesses.entries()) {
    try {
      parseCosignerVkey(vkey);
    } catch (error) {
      throw new Error(`/witness/witnesses/${i}/vkey: ${(error as Error).message}`, { cause: error });
    }
  }
}

function createPublishers(host: CoreHost, options: WitnessOptions) {
  const { ledger, log, vault } = host;
  const witnesses = (): Witnesses =>
    new Witnesses({
      witnesses: options.witnesses,
      ledger,
      lease: host.leaderLease("witnesses"),
      everyMs: options.seconds * 1000,
      log,
      verify: (...args) => vault.verify(...args),
    });
  const webhooks = () =>
    createPostedCheckpoints({
      urls: options.webhooks,
      ledger,
      lease: host.leaderLease("checkpoint-webhooks"),
      everyMs: options.webhook_seconds * 1000,
      log,
    });
  return [
    ...(options.witnesses.length === 0 ? [] : [witnesses()]),
    ...(options.webhooks.length === 0 ? [] : [webhooks()]),
  ];
}
