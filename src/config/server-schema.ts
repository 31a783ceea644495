/** The key `server` of `assent.yaml`: listening address and limits. */
import { Type } from "@sinclair/typebox";

export const ServerSchema = Type.Object(
  {
    host: Type.String({
      default: "127.0.0.1",
      description:
        "Address to listen on. 127.0.0.1, ::1 and localhost mean both loopback addresses. ASSENT_HOST overrides it.",
    }),
    port: Type.Integer({
      default: 8000,
      minimum: 0,
      maximum: 65535,
      description: "Port to listen on. 0 selects a free port and prints it. ASSENT_PORT overrides it.",
    }),
    public_url: Type.Union([Type.String(), Type.Null()], {
      default: null,
      description:
        "URL at which people reach the service: for links, cookies and passkeys. ASSENT_PUBLIC_URL overrides it.",
    }),
    max_body_bytes: Type.Integer({
      default: 65_536,
      minimum: 1024,
      maximum: 67_108_864,
      description: "Maximum size of an action, and of any other body without its own limit. Bytes.",
    }),
    max_json_values: Type.Integer({
      default: 100_000,
      minimum: 1000,
      maximum: 100_000_000,
      description: "Maximum number of members and items in one JSON body.",
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
        "Maximum total bytes of large responses (over 16 KiB) that are being built or that clients have not read yet, over all keys. Above the limit, requests get 503 with Retry-After.",
    }),
    max_response_bytes_per_key: Type.Integer({
      default: 16_777_216,
      minimum: 1_048_576,
      maximum: 68_719_476_736,
      description: "The same maximum for one API key. Above the limit, requests get 429 with Retry-After.",
    }),
    max_page_bytes: Type.Integer({
      default: 4_194_304,
      minimum: 65_536,
      maximum: 268_435_456,
      description:
        "Maximum size in bytes of parameters, contexts and results, or of entries, on one page of a list. A page that reaches this size ends before its `limit`, and next_cursor continues the list.",
    }),
    max_wait_seconds: Type.Integer({
      default: 60,
      minimum: 0,
      maximum: 3600,
      description: "Maximum wait for `Prefer: wait` and `?wait`.",
    }),
    drain_seconds: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 300,
      description:
        "Time after SIGTERM in which the service still accepts requests while /readyz returns 503, so that a load balancer stops sending requests before the port closes. ASSENT_DRAIN_SECONDS overrides it.",
    }),
    trusted_proxies: Type.Integer({
      default: 0,
      minimum: 0,
      maximum: 10,
      description:
        "Number of proxies in front of the service that append to X-Forwarded-For. The client's address is the entry at this position from the end of the header. 0 ignores the header. ASSENT_TRUSTED_PROXIES overrides it.",
    }),
    cors_origins: Type.Array(Type.String({ minLength: 1 }), {
      default: [],
      description:
        "Origins whose pages can call the API, such as https://console.example; `*` for every origin. Empty disables CORS.",
    }),
  },
  { default: {}, additionalProperties: false, description: "The HTTP server." },
);
