/** A path beside the API, for processes that know each other. Who may not enter finds what he finds at any path that is not there. */
import { Refusal } from "../contract/errors.ts";
import type { AnsweredRequest } from "../plugin.ts";
import { readBytes } from "./body.ts";
import type { FetchHandler } from "./handler.ts";
import type { InFlight } from "./in-flight.ts";
import type { RequestInfo } from "./request-info.ts";

export interface SideDoor {
  path: string;
  /** Null: this is nobody who may enter. `read` reads the body, of at most so many bytes. */
  enter(request: Request, read: (most: number) => Promise<Uint8Array>): Promise<Response | null>;
  inFlight: InFlight;
  onResponse(request: AnsweredRequest): void;
}

export function withSideDoor(api: FetchHandler, { path, inFlight, ...door }: SideDoor): FetchHandler {
  async function enter(request: Request, info: RequestInfo): Promise<Response> {
    const started = performance.now();
    const share = inFlight.share();
    try {
      const response = await door.enter(request, (most) => readBytes(request, most, info, share));
      if (response === null) return await api(request, info);
      const ms = Math.round(performance.now() - started);
      door.onResponse({ method: request.method, route: path, status: response.status, ms });
      return response;
    } catch (error) {
      // The body did not come whole, or finds no room.
      if (error instanceof Refusal) return await api(request, info);
      throw error;
    } finally {
      share.release();
    }
  }
  // Cheap, because every request is asked.
  return (request, info = {}) =>
    request.method === "POST" && request.url.endsWith(path) ? enter(request, info) : api(request, info);
}
