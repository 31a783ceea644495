/** Placeholder of the closed set: the outbox that calls notifiers comes with its own issue. */
export interface Notifier {
  readonly name: string;
}
