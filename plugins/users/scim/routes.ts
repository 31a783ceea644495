/** SCIM 2.0 for users and groups, for the providers that have the option `scim`. */
import { userState } from "../../../src/core.ts";
import type { CoreHost, JsonObject, User, Users } from "../../../src/core.ts";
import { type Credential, defineRoute, Refusal, type Route, Type } from "../../../src/plugin.ts";
import { ERRORS } from "../user-errors.ts";
import type { ProviderOptions } from "../user-options.ts";
import { SCOPES } from "../user-scopes.ts";
import { OPENAPI_TAG } from "../session-routes.ts";
import type { Sessions } from "../sessions.ts";
import { type ScimGroup, ScimGroups } from "./scim-groups.ts";
import {
  type Comparison,
  CONTENT_TYPE,
  GROUP_SCHEMA,
  parseFilter,
  readPatch,
  readScimBody,
  renderPage,
  scimReply,
  USER_SCHEMA,
  withScimErrors,
} from "./messages.ts";
import { RESOURCE_TYPES, SCHEMAS, SERVICE_PROVIDER_CONFIG } from "./discovery.ts";
import { isSameName } from "./records.ts";
import { readUser, readUserPatch, type ScimUser, ScimUsers } from "./scim-users.ts";

const PROVIDER = Type.Object({ provider: Type.String({ maxLength: 40, description: "`id` of the provider." }) });
const ONE = Type.Object({ ...PROVIDER.properties, id: Type.String({ maxLength: 100 }) });
const ATTRIBUTES = {
  attributes: Type.Optional(Type.String({ description: "Ignored: all attributes are returned." })),
  excludedAttributes: Type.Optional(Type.String({ description: "`members` omits the members of groups." })),
};
const ONE_QUERY = Type.Object(ATTRIBUTES, { additionalProperties: false });
const LIST_QUERY = Type.Object(
  {
    filter: Type.Optional(
      Type.String({ maxLength: 1000, description: 'Comparisons such as `userName eq "ada"`, joined by `and`.' }),
    ),
    startIndex: Type.Optional(Type.Integer({ description: "Index of the first resource, from 1." })),
    count: Type.Optional(Type.Integer({ description: "Size of a page, at most 1000; default 100." })),
    ...ATTRIBUTES,
  },
  { additionalProperties: false },
);
const BODIES = ["application/json", CONTENT_TYPE];
const READ_ERRORS = [ERRORS.SCIM_NOT_FOUND, ERRORS.SCIM_OTHER_PROVIDER];
const CHANGE_ERRORS = [
  ...READ_ERRORS,
  ERRORS.SCIM_INVALID,
  ERRORS.SCIM_PATH_INVALID,
  ERRORS.SCIM_IMMUTABLE,
  ERRORS.SCIM_CONFLICT,
  "SCOPE_ESCALATION" as const,
];

interface Endpoint {
  users: ScimUsers;
  groups: ScimGroups;
}

/**
 * Returns the endpoint of a provider. Throws USERS_SCIM_NOT_FOUND if the configuration has no such provider, and
 * USERS_SCIM_OTHER_PROVIDER if the key belongs to another provider.
 */
type FindEndpoint = (provider: string, credential: Credential) => Endpoint;

export function scimRoutes(host: CoreHost, sessions: Sessions, providers: readonly ProviderOptions[]): Route[] {
  const endpoints = new Map(
    providers
      .filter(({ scim }) => scim)
      .map((options) => {
        const users = new ScimUsers(host, sessions, options);
        return [options.id, { users, groups: new ScimGroups(host, users) }] as const;
      }),
  );
  // A second provider must not change the users of the first with its own key.
  const isOnly = endpoints.size === 1;
  const find: FindEndpoint = (provider, credential) => {
    const endpoint = endpoints.get(provider);
    if (endpoint === undefined)
      throw new Refusal(ERRORS.SCIM_NOT_FOUND, `the configuration has no provider ${provider} with scim`);
    const { scim_keys } = endpoint.users.options;
    if (!(scim_keys ?? (isOnly ? [credential.key.id] : [])).includes(credential.key.id))
      throw new Refusal(
        ERRORS.SCIM_OTHER_PROVIDER,
        `the key ${credential.key.id} is not a key of the provider ${provider}; list its id in the option \`scim_keys\` of the provider`,
      );
    return endpoint;
  };
  return [
    ...userRoutes(host, find),
    ...groupRoutes(host, find),
    ...groupChangeRoutes(host, find),
    ...describeRoutes(find),
  ];
}

const path = (provider: string, rest: string): string => `/scim/v2/${provider}/${rest}`;
const reply = (description: string) => ({ description, contentType: CONTENT_TYPE });

function userRoutes(host: CoreHost, find: FindEndpoint): Route[] {
  const base = { tag: OPENAPI_TAG, scope: SCOPES.provision, errorContentType: CONTENT_TYPE };
  const render = (provider: string) => (each: ScimUser) => renderUser(provider, each);
  return [
    defineRoute({
      ...base,
      method: "GET",
      path: "/scim/v2/:provider/Users",
      summary: "SCIM: list users",
      params: PROVIDER,
      query: LIST_QUERY,
      responses: { 200: reply("A SCIM list.") },
      errors: [ERRORS.SCIM_FILTER_INVALID, ...READ_ERRORS],
      handle: ({ params: { provider }, query, credential }) =>
        withScimErrors(async () => {
          const all = await find(provider, credential).users.list();
          const filters = query.filter === undefined ? [] : parseFilter(query.filter, USER_FILTERS);
          const found = all.filter((each) => filters.every((comparison) => matchesUser(each, comparison)));
          return scimReply(200, renderPage(found, query, render(provider)));
        }),
    }),
    defineRoute({
      ...base,
      method: "POST",
      path: "/scim/v2/:provider/Users",
      summary: "SCIM: create a user",
      params: PROVIDER,
      textBodies: BODIES,
      responses: { 201: reply("The user.") },
      errors: CHANGE_ERRORS,
      handle: ({ params: { provider }, body, credential }) =>
        withScimErrors(async () => {
          const done = await find(provider, credential).users.create(credential, readUser(readScimBody(body)));
          const Location = path(provider, `Users/${done.user.id}`);
          return scimReply(201, renderUser(provider, done), { Location });
        }),
    }),
    defineRoute({
      ...base,
      method: "GET",
      path: "/scim/v2/:provider/Users/:id",
      summary: "SCIM: show a user",
      params: ONE,
      query: ONE_QUERY,
      responses: { 200: reply("The user.") },
      errors: READ_ERRORS,
      handle: ({ params: { provider, id }, credential }) =>
        withScimErrors(async () =>
          scimReply(
            200,
            renderUser(provider, await find(provider, credential).users.find(await host.state(userState), id)),
          ),
        ),
    }),
    ...(["PUT", "PATCH"] as const).map((method) =>
      defineRoute({
        ...base,
        method,
        path: "/scim/v2/:provider/Users/:id",
        summary: method === "PUT" ? "SCIM: replace a user" : "SCIM: change a user",
        description: "`active: false` deactivates the user, and ends their sessions, keys and grants.",
        params: ONE,
        query: ONE_QUERY,
        textBodies: BODIES,
        responses: { 200: reply("The user.") },
        errors: CHANGE_ERRORS,
        handle: ({ params: { provider, id }, body, credential }) =>
          withScimErrors(async () => {
            const json = readScimBody(body);
            const change = method === "PUT" ? readUser(json) : readUserPatch(readPatch(json));
            return scimReply(
              200,
              renderUser(provider, await find(provider, credential).users.change(credential, id, change)),
            );
          }),
      }),
    ),
    defineRoute({
      ...base,
      method: "DELETE",
      path: "/scim/v2/:provider/Users/:id",
      summary: "SCIM: deactivate and remove a user",
      params: ONE,
      responses: { 204: { description: "The user was deactivated." } },
      errors: READ_ERRORS,
      handle: ({ params: { provider, id }, credential }) =>
        withScimErrors(async () => {
          await find(provider, credential).users.delete(credential, id);
          return { status: 204 };
        }),
    }),
  ];
}

/** Attributes of users and groups that filters can compare, in lowercase. */
const USER_FILTERS = ["username", "externalid", "id", "active"];
const GROUP_FILTERS = ["displayname", "externalid", "id", "members", "members.value"];

function matchesUser({ user, record }: ScimUser, { attribute, value }: Comparison): boolean {
  if (attribute === "active") return value === (user.ended_at === null);
  if (attribute === "username") return typeof value === "string" && isSameName(record.user_name, value);
  return (attribute === "id" ? user.id : user.identities[0]?.subject) === value;
}

function matchesGroup(
  group: ScimGroup,
  membersOf: (group: ScimGroup) => readonly User[],
  { attribute, value }: Comparison,
): boolean {
  if (attribute.startsWith("members")) return membersOf(group).some((user) => user.id === value);
  const { id, name, external_id } = group;
  return { displayname: name, externalid: external_id, id }[attribute] === value;
}

/** Returns a group with its members, unless `excludedAttributes` contains them. */
function renderGroup(
  { users: { options }, groups }: Endpoint,
  users: Users,
  group: ScimGroup,
  excluded = "",
): JsonObject {
  const isShort = excluded.toLowerCase().split(",").includes("members");
  const members = isShort ? [] : groups.membersOf(group, users);
  return {
    schemas: [GROUP_SCHEMA],
    id: group.id,
    externalId: group.external_id,
    displayName: group.name,
    ...(isShort ? {} : { members: members.map(({ id, name }) => ({ value: id, display: name })) }),
    meta: { resourceType: "Group", location: path(options.id, `Groups/${group.id}`) },
  };
}

function groupRoutes(host: CoreHost, find: FindEndpoint): Route[] {
  const base = { tag: OPENAPI_TAG, scope: SCOPES.provision, errorContentType: CONTENT_TYPE };
  return [
    defineRoute({
      ...base,
      method: "GET",
      path: "/scim/v2/:provider/Groups",
      summary: "SCIM: list groups",
      params: PROVIDER,
      query: LIST_QUERY,
      responses: { 200: reply("A SCIM list.") },
      errors: [ERRORS.SCIM_FILTER_INVALID, ...READ_ERRORS],
      handle: ({ params: { provider }, query, credential }) =>
        withScimErrors(async () => {
          const endpoint = find(provider, credential);
          const all = await endpoint.groups.list();
          const filters = query.filter === undefined ? [] : parseFilter(query.filter, GROUP_FILTERS);
          const users = await host.state(userState);
          const membersOf = (group: ScimGroup): User[] => endpoint.groups.membersOf(group, users);
          const found = all.filter((group) =>
            filters.every((comparison) => matchesGroup(group, membersOf, comparison)),
          );
          const resources = found.map((group) => renderGroup(endpoint, users, group, query.excludedAttributes));
          return scimReply(
            200,
            renderPage(resources, query, (each) => each),
          );
        }),
    }),
    defineRoute({
      ...base,
      method: "POST",
      path: "/scim/v2/:provider/Groups",
      summary: "SCIM: create a group",
      params: PROVIDER,
      textBodies: BODIES,
      responses: { 201: reply("The group.") },
      errors: CHANGE_ERRORS,
      handle: ({ params: { provider }, body, credential }) =>
        withScimErrors(async () => {
          const group = await find(provider, credential).groups.create(credential, readScimBody(body));
          const Location = path(provider, `Groups/${group.id}`);
          return scimReply(201, renderGroup(find(provider, credential), await host.state(userState), group), {
            Location,
          });
        }),
    }),
    defineRoute({
      ...base,
      method: "GET",
      path: "/scim/v2/:provider/Groups/:id",
      summary: "SCIM: show a group",
      params: ONE,
      query: ONE_QUERY,
      responses: { 200: reply("The group.") },
      errors: READ_ERRORS,
      handle: ({ params: { provider, id }, query, credential }) =>
        withScimErrors(async () =>
          scimReply(
            200,
            renderGroup(
              find(provider, credential),
              await host.state(userState),
              await find(provider, credential).groups.find(id),
              query.excludedAttributes,
            ),
          ),
        ),
    }),
  ];
}

function groupChangeRoutes(host: CoreHost, find: FindEndpoint): Route[] {
  const base = { tag: OPENAPI_TAG, scope: SCOPES.provision, errorContentType: CONTENT_TYPE };
  return [
    ...(["PUT", "PATCH"] as const).map((method) =>
      defineRoute({
        ...base,
        method,
        path: "/scim/v2/:provider/Groups/:id",
        summary: method === "PUT" ? "SCIM: replace the members of a group" : "SCIM: change the members of a group",
        params: ONE,
        query: ONE_QUERY,
        textBodies: BODIES,
        responses: { 200: reply("The group.") },
        errors: CHANGE_ERRORS,
        handle: ({ params: { provider, id }, query, body, credential }) =>
          withScimErrors(async () => {
            const { groups } = find(provider, credential);
            const json = readScimBody(body);
            const group = await (method === "PUT"
              ? groups.replace(credential, id, json)
              : groups.patch(credential, id, readPatch(json)));
            return scimReply(
              200,
              renderGroup(find(provider, credential), await host.state(userState), group, query.excludedAttributes),
            );
          }),
      }),
    ),
    defineRoute({
      ...base,
      method: "DELETE",
      path: "/scim/v2/:provider/Groups/:id",
      summary: "SCIM: delete a group",
      params: ONE,
      responses: { 204: { description: "The group has no members and no longer exists." } },
      errors: READ_ERRORS,
      handle: ({ params: { provider, id }, credential }) =>
        withScimErrors(async () => {
          await find(provider, credential).groups.delete(credential, id);
          return { status: 204 };
        }),
    }),
  ];
}

/** Routes that describe what the service supports. Some clients read them before they send users. */
function describeRoutes(find: FindEndpoint): Route[] {
  const base = { method: "GET", tag: OPENAPI_TAG, scope: SCOPES.provision, errorContentType: CONTENT_TYPE } as const;
  const lists = { Schemas: SCHEMAS, ResourceTypes: RESOURCE_TYPES };
  return [
    defineRoute({
      ...base,
      path: "/scim/v2/:provider/ServiceProviderConfig",
      summary: "SCIM: show what is supported",
      params: PROVIDER,
      responses: { 200: reply("The supported features.") },
      errors: READ_ERRORS,
      handle: ({ params: { provider }, credential }) =>
        withScimErrors(async () => {
          find(provider, credential);
          return scimReply(200, SERVICE_PROVIDER_CONFIG);
        }),
    }),
    ...(["Schemas", "ResourceTypes"] as const).flatMap((name) => [
      defineRoute({
        ...base,
        path: `/scim/v2/:provider/${name}`,
        summary: name === "Schemas" ? "SCIM: list schemas" : "SCIM: list resource types",
        params: PROVIDER,
        responses: { 200: reply("A SCIM list.") },
        errors: READ_ERRORS,
        handle: ({ params: { provider }, credential }) =>
          withScimErrors(async () => {
            find(provider, credential);
            return scimReply(
              200,
              renderPage(lists[name], {}, (each) => each),
            );
          }),
      }),
      defineRoute({
        ...base,
        path: `/scim/v2/:provider/${name}/:id`,
        summary: name === "Schemas" ? "SCIM: show a schema" : "SCIM: show a resource type",
        params: ONE,
        responses: { 200: reply("The description.") },
        errors: READ_ERRORS,
        handle: ({ params: { provider, id }, credential }) =>
          withScimErrors(async () => {
            find(provider, credential);
            const found = lists[name].find((each) => each["id"] === id);
            if (found === undefined) throw new Refusal(ERRORS.SCIM_NOT_FOUND, `${name} has no ${JSON.stringify(id)}`);
            return scimReply(200, found);
          }),
      }),
    ]),
  ];
}

function renderUser(provider: string, { user, record }: ScimUser): JsonObject {
  return {
    schemas: [USER_SCHEMA],
    id: user.id,
    externalId: user.identities[0]?.subject ?? null,
    userName: record.user_name,
    displayName: user.name,
    active: user.ended_at === null,
    groups: user.provider_groups.map((display) => ({ display })),
    meta: { resourceType: "User", created: user.created_at, location: path(provider, `Users/${user.id}`) },
  };
}
