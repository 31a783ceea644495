/** Fact sources that are read over HTTP. By default, only from public addresses. */
import type { Static } from "@sinclair/typebox";
import {
  definePlugin,
  FACT_SOURCE_NAME_PATTERN,
  FACT_SOURCE_OPTIONS,
  type FactSource,
  get,
  parseJson,
  readTarget,
  type ResolveName,
  TARGET_OPTIONS,
  Type,
} from "../../src/plugin.ts";
import { parseAddress } from "./address-template.ts";

const Options = Type.Object(
  {
    ...TARGET_OPTIONS,
    url: Type.String({
      minLength: 1,
      maxLength: 2000,
      description: "Address, with inputs in the path or the query, such as https://crm.example.com/accounts/{id}.",
    }),
    not_found: Type.Union([Type.Literal("error"), Type.Literal("null"), Type.Null()], {
      default: "error",
      description:
        "`error`: the status 404 means that there is no record, and conditions that read the fact fail. null: it means the value null, if the schema of the fact accepts null.",
    }),
    ...FACT_SOURCE_OPTIONS,
  },
  { additionalProperties: false },
);
type Options = Static<typeof Options>;

export default definePlugin({
  name: "facts-http",
  options: Type.Object(
    { sources: Type.Optional(Type.Record(Type.String({ pattern: FACT_SOURCE_NAME_PATTERN }), Options)) },
    { additionalProperties: false },
  ),
  setup: (_host, { sources = {} }) => ({
    factSources: Object.entries(sources).map(([name, options]) => createHttpSource(name, options)),
  }),
});

/**
 * Creates the source. Throws Error for invalid options that the schema cannot express.
 * @param resolve replaces DNS in tests
 */
export function createHttpSource(name: string, options: Options, resolve?: ResolveName): FactSource {
  const label = `fact source "${name}"`;
  const address = parseAddress(label, options.url);
  const timeoutMs = options.timeout_seconds * 1000;
  const { target, headers } = readTarget(label, { ...options, url: address.origin }, timeoutMs);
  return {
    name,
    inputs: address.inputs,
    timeoutMs,
    maxAgeMs: options.max_age_seconds * 1000,
    async read(inputs, signal) {
      const { status, body } = await get(
        { ...target, url: address.build(inputs) },
        { accept: "application/json", "user-agent": "assent", ...headers },
        signal,
        resolve,
      );
      if (status === 404) {
        if (options.not_found !== "error") return null;
        throw Object.assign(new Error(`${target.url.host} has no record for the inputs`), { code: "NOT_FOUND" });
      }
      if (status !== 200) throw new Error(`${target.url.host} responded with status ${status}; expected 200`);
      if (body === null) throw new Error(`the response of ${target.url.host} is larger than 64 KiB or incomplete`);
      return parseAnswer(body);
    },
  };
}

/** Parses the response. Replaces the parser's error message, which would quote the response. */
function parseAnswer(body: string): ReturnType<typeof parseJson> {
  try {
    return parseJson(body);
  } catch {
    throw new Error("the response is not valid JSON, or has duplicate members");
  }
}
