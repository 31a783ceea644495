/** The key `server` of `assent.yaml`: listening address and limits. */
import { Type } from "@sinclair/typebox";

export const ServerSchema = Type.Object(
  {
    host: Type.String({ default: "127.0.0.1", description: "Address to listen on. ASSENT_HOST wins." }),
    port: Type.Integer({
      default: 8000,
      minimum: 0,
      maximum: 65535,
      description: "Port; 0 picks a free one and prints it. ASSENT_PORT wins.",
    }),
    public_url: Type.Union([Type.String(), Type.Null()], {
      default: null,
      description: "How people reach the service, for links. ASSENT_PUBLIC_URL wins.",
    }),
    max_body_bytes: Type.Integer({
      default: 65_536,
      minimum: 1024,
      maximum: 67_108_864,
      description: "Largest action, in bytes, and any other body that has no limit of its own.",
    }),
    max_json_values: Type.Integer({
      default: 100_000,
      minimum: 1000,
      maximum: 100_000_000,
      description: "Most members and items of one JSON body.",
    }),
    max_bytes_in_flight: Type.Integer({
      default: 268_435_456,
      minimum: 4_194_304,
      maximum: 68_719_476_736,
      description:
        "Maximum total bytes of request bodies that are being read or processed. Bodies over 64 KiB can use half of it. Above the limit, requests get 503 with Retry-After.",
    }),
    max_response_bytes: Type.Integer({
      default: 67_108_864,
      minimum: 1_048_576,
      maximum: 68_719_476_736,
      description:
        "Bytes of responses of more than 16 KiB that are put together or that their clients have not read yet, over all keys. Beyond it 503 with Retry-After.",
    }),
    max_response_bytes_per_key: Type.Integer({
      default: 16_777_216,
      minimum: 1_048_576,
      maximum: 68_719_476_736,
      description: "The same of one API key. Beyond it 429 with Retry-After.",
    }),
    max_page_bytes: Type.Integer({
      default: 4_194_304,
      minimum: 65_536,
      maximum: 268_435_456,
      description:
        "Bytes of parameters, contexts and results, or of entries, on one page of a list. A page ends there, before its `limit`, and next_cursor goes on.",
    }),
    max_wait_seconds: Type.Integer({
      default: 60,
      minimum: 0,
      maximum: 3600,
      description: "Longest wait that `Prefer: wait` and `?wait` are granted.",
    }),
    drain_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description:
        "On SIGTERM, how long the service accepts requests after /readyz began to answer 503, so that a load balancer stops sending before the port closes. ASSENT_DRAIN_SECONDS wins.",
    }),
    trusted_proxies: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 10,
      description:
        "How many proxies stand in front and add to X-Forwarded-For; the client's address is taken that many places from its end. 0 ignores the header.",
    }),
    cors_origins: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        "Origins whose pages may call the API, such as https://console.example; `*` for every one. Empty: no CORS.",
    }),
  },
  { default: {}, additionalProperties: false, description: "The HTTP server." },
);
