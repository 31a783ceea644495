/** SCIM 2.0 for users and groups, for the providers that have the option `scim`. */
import { userState } from "../../../src/core.ts";
import type { CoreHost, JsonObject } from "../../../src/core.ts";
import { defineRoute, Refusal, type Reply, type Route, Type } from "../../../src/plugin.ts";
import { ERRORS } from "../user-errors.ts";
import type { ProviderOptions } from "../user-options.ts";
import { SCOPES } from "../user-scopes.ts";
import { OPENAPI_TAG } from "../session-routes.ts";
import type { Sessions } from "../sessions.ts";
import { type ScimGroup, ScimGroups } from "./scim-groups.ts";
import {
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
      Type.String({ maxLength: 1000, description: 'One comparison, such as `userName eq "ada"`.' }),
    ),
    startIndex: Type.Optional(Type.Integer({ description: "Index of the first resource, from 1." })),
    count: Type.Optional(Type.Integer({ minimum: 0, maximum: 1000, description: "Size of a page; default 100." })),
    ...ATTRIBUTES,
  },
  { additionalProperties: false },
);
const BODIES = ["application/json", CONTENT_TYPE];
const CHANGE_ERRORS = [
  ERRORS.SCIM_INVALID,
  ERRORS.SCIM_PATH_INVALID,
  ERRORS.SCIM_IMMUTABLE,
  ERRORS.SCIM_NOT_FOUND,
  ERRORS.SCIM_CONFLICT,
];

interface Endpoint {
  users: ScimUsers;
  groups: ScimGroups;
}

export function scimRoutes(host: CoreHost, sessions: Sessions, providers: readonly ProviderOptions[]): Route[] {
  const endpoints = new Map(
    providers
      .filter(({ scim }) => scim)
      .map((options) => {
        const users = new ScimUsers(host, sessions, options);
        return [options.id, { users, groups: new ScimGroups(host, users) }] as const;
      }),
  );
  const find = (provider: string): Endpoint => {
    const endpoint = endpoints.get(provider);
    if (endpoint === undefined)
      throw new Refusal(ERRORS.SCIM_NOT_FOUND, `the configuration has no provider ${provider} with scim`);
    return endpoint;
  };
  return [...userRoutes(host, find), ...groupRoutes(host, find), ...groupChangeRoutes(host, find), describeRoute(find)];
}

const path = (provider: string, rest: string): string => `/scim/v2/${provider}/${rest}`;
const reply = (description: string) => ({ description, contentType: CONTENT_TYPE });

function userRoutes(host: CoreHost, find: (provider: string) => Endpoint): Route[] {
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
      errors: [ERRORS.SCIM_FILTER_INVALID, ERRORS.SCIM_NOT_FOUND],
      handle: ({ params: { provider }, query }) =>
        withScimErrors(async () => {
          const all = await find(provider).users.list();
          const wanted =
            query.filter === undefined ? null : parseFilter(query.filter, ["username", "externalid", "id"]);
          const found = all.filter(({ user, record }) => {
            if (wanted === null) return true;
            if (wanted.attribute === "username") return isSameName(record.user_name, wanted.value);
            return (wanted.attribute === "id" ? user.id : user.identities[0]?.subject) === wanted.value;
          });
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
          const done = await find(provider).users.create(credential, readUser(readScimBody(body)));
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
      errors: [ERRORS.SCIM_NOT_FOUND],
      handle: ({ params: { provider, id } }) =>
        withScimErrors(async () =>
          scimReply(200, renderUser(provider, await find(provider).users.find(await host.state(userState), id))),
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
            return scimReply(200, renderUser(provider, await find(provider).users.change(credential, id, change)));
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
      errors: [ERRORS.SCIM_NOT_FOUND],
      handle: ({ params: { provider, id }, credential }) =>
        withScimErrors(async () => {
          await find(provider).users.delete(credential, id);
          return { status: 204 };
        }),
    }),
  ];
}

/** Returns a group with its members, unless `excludedAttributes` contains them. */
async function renderGroup(
  host: CoreHost,
  { users, groups }: Endpoint,
  group: ScimGroup,
  excluded = "",
): Promise<JsonObject> {
  const isShort = excluded.toLowerCase().split(",").includes("members");
  const members = isShort ? [] : groups.membersOf(group, await host.state(userState));
  return {
    schemas: [GROUP_SCHEMA],
    id: group.id,
    externalId: group.external_id,
    displayName: group.name,
    ...(isShort ? {} : { members: members.map(({ id, name }) => ({ value: id, display: name })) }),
    meta: { resourceType: "Group", location: path(users.options.id, `Groups/${group.id}`) },
  };
}

function groupRoutes(host: CoreHost, find: (provider: string) => Endpoint): Route[] {
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
      errors: [ERRORS.SCIM_FILTER_INVALID, ERRORS.SCIM_NOT_FOUND],
      handle: ({ params: { provider }, query }) =>
        withScimErrors(async () => {
          const all = await find(provider).groups.list();
          const names = ["displayname", "externalid", "id"];
          const parsedFilter = query.filter === undefined ? null : parseFilter(query.filter, names);
          const found = all.filter(({ id, name, external_id }) => {
            if (parsedFilter === null) return true;
            return { displayname: name, externalid: external_id, id }[parsedFilter.attribute] === parsedFilter.value;
          });
          const shown = await Promise.all(
            found.map((group) => renderGroup(host, find(provider), group, query.excludedAttributes)),
          );
          return scimReply(
            200,
            renderPage(shown, query, (each) => each),
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
          const group = await find(provider).groups.create(credential, readScimBody(body));
          const Location = path(provider, `Groups/${group.id}`);
          return scimReply(201, await renderGroup(host, find(provider), group), { Location });
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
      errors: [ERRORS.SCIM_NOT_FOUND],
      handle: ({ params: { provider, id }, query }) =>
        withScimErrors(async () =>
          scimReply(
            200,
            await renderGroup(host, find(provider), await find(provider).groups.find(id), query.excludedAttributes),
          ),
        ),
    }),
  ];
}

function groupChangeRoutes(host: CoreHost, find: (provider: string) => Endpoint): Route[] {
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
            const { groups } = find(provider);
            const json = readScimBody(body);
            const group = await (method === "PUT"
              ? groups.replace(credential, id, json)
              : groups.patch(credential, id, readPatch(json)));
            return scimReply(200, await renderGroup(host, find(provider), group, query.excludedAttributes));
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
      errors: [ERRORS.SCIM_NOT_FOUND],
      handle: ({ params: { provider, id }, credential }) =>
        withScimErrors(async () => {
          await find(provider).groups.delete(credential, id);
          return { status: 204 };
        }),
    }),
  ];
}

function describeRoute(find: (provider: string) => Endpoint): Route {
  const config: JsonObject = {
    schemas: ["urn:ietf:params:scim:schemas:core:2.0:ServiceProviderConfig"],
    patch: { supported: true },
    bulk: { supported: false, maxOperations: 0, maxPayloadSize: 0 },
    filter: { supported: true, maxResults: 1000 },
    changePassword: { supported: false },
    sort: { supported: false },
    etag: { supported: false },
    authenticationSchemes: [{ type: "oauthbearertoken", name: "API key", description: "A key with users:provision" }],
  };
  return defineRoute({
    method: "GET",
    path: "/scim/v2/:provider/ServiceProviderConfig",
    tag: OPENAPI_TAG,
    summary: "SCIM: show what is supported",
    scope: SCOPES.provision,
    errorContentType: CONTENT_TYPE,
    params: PROVIDER,
    responses: { 200: reply("The supported features.") },
    errors: [ERRORS.SCIM_NOT_FOUND],
    handle: ({ params: { provider } }): Promise<Reply> =>
      withScimErrors(async () => {
        find(provider);
        return scimReply(200, config);
      }),
  });
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
