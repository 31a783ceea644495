/**
 * Machine reviewers that are called by webhook, signed according to Standard Webhooks 1.0.0. By default, only public
 * addresses are called.
 */
import type { Static } from "@sinclair/typebox";
import {
  definePlugin,
  post,
  readReviewResponse,
  readWebhookTarget,
  type ResolveName,
  type Reviewer,
  signatureHeaders,
  REVIEWER_NAME_PATTERN,
  Type,
  WEBHOOK_TARGET_OPTIONS,
} from "../../src/plugin.ts";

const Options = Type.Object(
  {
    ...WEBHOOK_TARGET_OPTIONS,
    timeout_seconds: Type.Integer({ default: 15, minimum: 1, maximum: 45 }),
    version: Type.String({ minLength: 1, maxLength: 100, description: "Recorded with each answer." }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "review-webhook",
  needs: ["reviewers"],
  options: Type.Object(
    { reviewers: Type.Optional(Type.Record(Type.String({ pattern: REVIEWER_NAME_PATTERN }), Options)) },
    { additionalProperties: false },
  ),
  setup: (_host, { reviewers = {} }) => ({
    reviewers: Object.entries(reviewers).map(([name, options]) => createWebhookReviewer(name, options)),
  }),
});

/**
 * Creates the reviewer. Throws Error for invalid options that the schema cannot express.
 * @param resolve replaces DNS in tests
 */
export function createWebhookReviewer(name: string, options: Static<typeof Options>, resolve?: ResolveName): Reviewer {
  const { target, keys, headers } = readWebhookTarget(`reviewer "${name}"`, options);
  return {
    name,
    version: options.version,
    timeoutMs: target.timeoutMs,
    async review(request, signal) {
      const body = JSON.stringify(request);
      const answer = await post(
        // Give the request a second more than the reviewer's timeout: the service measures that timeout itself, and
        // records an answer after it as late.
        { ...target, timeoutMs: target.timeoutMs + 1_000 },
        {
          ...headers,
          "content-type": "application/json",
          "user-agent": "assent",
          ...signatureHeaders(keys, request.id, Math.floor(Date.now() / 1000), body),
        },
        body,
        signal,
        resolve,
      );
      if (answer.status !== 200)
        throw new Error(`${target.url.host} responded with status ${answer.status}; expected 200`);
      return readReviewResponse(answer.body ?? "");
    },
  };
}
