/** Ends the stream of a response when the credential of its request ends or changes. */
import type { HeldCredential } from "../contract/held-credential.ts";
import { utf8 } from "../domain/hash.ts";

/**
 * Passes `source` on as fast as the client reads. Confirms the credential directly before it passes on each chunk. When
 * the credential ends or its rights change, cancels `source` at once, sends the text of `farewell`, and closes the
 * stream; without `farewell`, the stream fails.
 * @param done called once, when the stream has ended for any reason
 */
export function guardStream(
  source: ReadableStream<Uint8Array>,
  held: HeldCredential,
  farewell: ((reason: string) => string) | undefined,
  done: () => void,
): ReadableStream<Uint8Array> {
  const reader = source.getReader();
  const { signal } = held;
  let controller: ReadableStreamDefaultController<Uint8Array>;
  let isOver = false;

  function finish(): boolean {
    if (isOver) return false;
    isOver = true;
    signal.removeEventListener("abort", onAbort);
    done();
    return true;
  }

  function cut(error: unknown): void {
    if (!finish()) return;
    reader.cancel(error).catch(() => undefined);
    if (held.refusal === null || farewell === undefined) return controller.error(error);
    controller.enqueue(utf8(farewell(held.refusal.message)));
    controller.close();
  }

  function onAbort(): void {
    // Streams themselves end when the service stops.
    if (held.refusal !== null) cut(held.refusal);
  }

  async function pass(): Promise<void> {
    const { done: isEnd, value } = await reader.read();
    if (isOver) return;
    if (isEnd) {
      finish();
      return controller.close();
    }
    while (!held.isCurrent()) await held.confirm();
    if (!isOver) controller.enqueue(value);
  }

  return new ReadableStream<Uint8Array>(
    {
      start(given) {
        controller = given;
        signal.addEventListener("abort", onAbort);
        onAbort();
      },
      async pull() {
        try {
          await pass();
        } catch (error) {
          cut(error);
        }
      },
      async cancel(reason) {
        finish();
        await reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}
