/** A notifier that stores its messages. A test plans the result of each delivery. */
import type { DeliveryResult, Feed, Message, Notifier } from "../../src/contract/notifier.ts";
import { definePlugin, type Plugin } from "../../src/plugin.ts";
import { eventually } from "./wait.ts";

export interface TestNotifier {
  messages: Message[];
  /** Results of the next delivery attempts, in order. An attempt without a plan succeeds. */
  plans: ((message: Message, signal: AbortSignal) => DeliveryResult | void | Promise<DeliveryResult | void>)[];
  /** Verifies the credentials. By default they are accepted. */
  verify(): Promise<void>;
  /** Resolves to the first message that passes `test`, including messages that were already delivered. */
  next(test: (message: Message) => boolean): Promise<Message>;
  plugin: { plugin: Plugin; options: unknown; origin: string };
}

export function testNotifier(name = "pigeon", feeds: readonly Feed[] = []): TestNotifier {
  const messages: Message[] = [];
  const notifier: Notifier = {
    name,
    verify: () => made.verify(),
    feeds,
    check: (to) => (to.includes(" ") ? `"${to}" holds a space` : null),
    deliver(message, signal) {
      messages.push(message);
      const plan = made.plans.shift();
      return (
        plan === undefined ? { reference: `ref-${message.to}` } : plan(message, signal)
      ) as Promise<DeliveryResult>;
    },
  };
  const made: TestNotifier = {
    messages,
    plans: [],
    verify: () => Promise.resolve(),
    next: (test) =>
      eventually(
        () => messages.find(test),
        () => `no such message came; there are ${messages.map(({ kind, to }) => `${kind} to ${to}`).join(", ")}`,
      ),
    plugin: {
      plugin: definePlugin({ name: `notify-${name}`, setup: () => ({ notifiers: [notifier] }) }) as Plugin,
      options: {},
      origin: name,
    },
  };
  return made;
}
