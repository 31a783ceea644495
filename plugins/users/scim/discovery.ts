/** Descriptions of the supported features, resources and attributes (RFC 7643, sections 5 to 7). */
import type { JsonObject } from "../../../src/core.ts";
import { GROUP_SCHEMA, MAX_RESULTS, USER_SCHEMA } from "./messages.ts";

const CORE = "urn:ietf:params:scim:schemas:core:2.0:";

export const SERVICE_PROVIDER_CONFIG: JsonObject = {
  schemas: [`${CORE}ServiceProviderConfig`],
  patch: { supported: true },
  bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
  filter: { supported: true, maxResults: MAX_RESULTS },
  changePassword: { supported: false },
  sort: { supported: false },
  etag: { supported: false },
  authenticationSchemes: [{ type: "oauthbearertoken", name: "API key", description: "A key with users:provision" }],
};

export const RESOURCE_TYPES: readonly JsonObject[] = [
  { id: "User", endpoint: "/Users", schema: USER_SCHEMA },
  { id: "Group", endpoint: "/Groups", schema: GROUP_SCHEMA },
].map(({ id, ...type }) => ({ schemas: [`${CORE}ResourceType`], id, name: id, ...type }));

/** Attributes that the service stores. It ignores the others of the core schemas. */
export const SCHEMAS: readonly JsonObject[] = [
  describeSchema(USER_SCHEMA, "User", [
    describeAttribute("userName", { required: true, uniqueness: "server" }),
    describeAttribute("externalId", { required: true, mutability: "immutable", caseExact: true }),
    describeAttribute("displayName"),
    describeAttribute("name", {
      type: "complex",
      subAttributes: ["formatted", "givenName", "familyName"].map((name) => describeAttribute(name)),
    }),
    describeAttribute("active", { type: "boolean" }),
    describeAttribute("groups", {
      type: "complex",
      multiValued: true,
      mutability: "readOnly",
      subAttributes: [describeAttribute("display", { mutability: "readOnly" })],
    }),
  ]),
  describeSchema(GROUP_SCHEMA, "Group", [
    describeAttribute("displayName", {
      required: true,
      mutability: "immutable",
      caseExact: true,
      uniqueness: "server",
    }),
    describeAttribute("externalId", { caseExact: true }),
    describeAttribute("members", {
      type: "complex",
      multiValued: true,
      subAttributes: [
        describeAttribute("value", { mutability: "immutable" }),
        describeAttribute("display", { mutability: "readOnly" }),
      ],
    }),
  ]),
];

function describeSchema(id: string, name: string, attributes: JsonObject[]): JsonObject {
  return { schemas: [`${CORE}Schema`], id, name, attributes };
}

function describeAttribute(name: string, members: JsonObject = {}): JsonObject {
  return {
    name,
    type: "string",
    multiValued: false,
    required: false,
    caseExact: false,
    mutability: "readWrite",
    returned: "default",
    uniqueness: "none",
    ...members,
  };
}
