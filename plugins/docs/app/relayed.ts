/** Messages between a frame (frame.ts) and the page around it (relay.ts). */

/** A request to the service, which the frame cannot send itself. */
export interface RelayedRequest {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
}

/** The service's response, or the reason why there is none. */
export type RelayedResponse =
  | { status: number; statusText: string; headers: [string, string][]; body: string }
  | { error: string };

/** A message of the frame: a request, or the fragment of the displayed section, without `#`. */
export type FrameMessage = { request: RelayedRequest } | { hash: string };
