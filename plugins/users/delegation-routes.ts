/** Routes that create, list and revoke delegations. */
import type { CoreHost, Delegation, PrincipalNames, Users } from "../../src/core.ts";
import {
  principalOfUser,
  readPrincipalNames,
  userState,
  delegationState,
  closed,
  delegationStatus,
  orNull,
  textSchema,
  timeSchema,
} from "../../src/core.ts";
import { defineRoute, nextLink, PAGE_QUERY, slicePage, type Static, toRfc3339, Type } from "../../src/plugin.ts";
import {
  createDelegation,
  delegableGroups,
  listDelegates,
  canSeeDelegation,
  revokeDelegation,
  requireVisibleDelegation,
} from "./delegations.ts";
import { OPENAPI_TAG } from "./session-routes.ts";
import { requireOwnUser } from "./user-changes.ts";
import { ERRORS } from "./user-errors.ts";

const Names = (description: string) =>
  Type.Array(Type.String({ minLength: 1, maxLength: 256, pattern: "^[^\\u0000-\\u001f\\u007f]*$" }), {
    minItems: 1,
    maxItems: 50,
    uniqueItems: true,
    description,
  });
const Comment = Type.String({ minLength: 1, maxLength: 1000, description: "Recorded in the ledger." });

const Body = Type.Object(
  {
    to: Type.String({ maxLength: 64, description: "Id of the user who approves on your behalf. Must be an approver." }),
    groups: Type.Optional(Names("Your groups and rotas that votes count for. Default: all.")),
    agents: Type.Optional(Names("Globs of the agents that it covers. Default: all.")),
    tools: Type.Optional(Names("Globs of the tools that it covers. Default: all.")),
    starts_at: Type.Optional(Type.String({ maxLength: 40, description: "RFC 3339 time. Default: now." })),
    until: Type.String({ maxLength: 40, description: "RFC 3339, at most 90 days after the start." }),
    comment: Type.Optional(Comment),
  },
  { ...closed, examples: [{ to: "019346a0-0000-7000-8000-000000000000", until: "2026-12-24T18:00:00Z" }] },
);
const RevokeBody = Type.Object({ comment: Type.Optional(Comment) }, closed);
const Params = Type.Object({ id: Type.String() }, closed);
const Status = Type.Union([Type.Literal("scheduled"), Type.Literal("active"), Type.Literal("ended")]);
const Query = Type.Object(
  {
    status: Type.Optional(Status),
    user_id: Type.Optional(Type.String({ maxLength: 64, description: "Delegations from or to this user." })),
    ...PAGE_QUERY,
  },
  closed,
);

const Party = Type.Object({ id: Type.String(), name: Type.String() }, closed);
const Patterns = orNull(Type.Array(Type.String()));
const DelegationRecord = Type.Object(
  {
    id: Type.String({ format: "uuid" }),
    status: Status,
    from: Party,
    to: Party,
    groups: Patterns,
    agents: Patterns,
    tools: Patterns,
    starts_at: timeSchema("Start of the delegation."),
    until: timeSchema("End of the delegation."),
    comment: orNull(Type.String()),
    created_at: timeSchema("When it was created."),
    ended: orNull(
      Type.Object(
        {
          cause: Type.Union([Type.Literal("revoked"), Type.Literal("user_ended")]),
          at: timeSchema("When it ended."),
          by: textSchema("Principal."),
          comment: orNull(Type.String()),
        },
        { ...closed, description: "The recorded end. Null if none was recorded, even if the delegation has expired." },
      ),
    ),
  },
  { title: "Delegation", ...closed },
);
const DelegateList = Type.Object(
  {
    delegates: Type.Array(Party, { description: "Users to whom this user can delegate, newest first." }),
    groups: Type.Array(Type.String(), { description: "Groups and rotas that a delegation of the user can name." }),
    next_cursor: orNull(Type.String()),
  },
  closed,
);
const DelegationList = Type.Object(
  { delegations: Type.Array(DelegationRecord), next_cursor: orNull(Type.String()) },
  closed,
);

const ONE = { description: "The delegation.", schema: DelegationRecord };

export function delegationRoutes(host: CoreHost) {
  return [...readRoutes(host), ...changeRoutes(host)];
}

function readRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "GET",
      path: "/v1/delegations",
      tag: OPENAPI_TAG,
      summary: "List delegations, newest first",
      description: "A user lists their own delegations; with `users:read` or `users:manage`, those of all users.",
      scope: host.scopes,
      query: Query,
      responses: { 200: { description: "A page, including ended delegations.", schema: DelegationList } },
      errors: ["INVALID_CURSOR"],
      async handle({ query, credential }) {
        const [all, users, now] = [await host.state(delegationState), await host.state(userState), host.clock()];
        const listed = [...all.values()]
          .filter(
            (each) =>
              canSeeDelegation(each, credential) &&
              (query.status === undefined || query.status === delegationStatus(each, users, now)) &&
              (query.user_id === undefined || query.user_id === each.from || query.user_id === each.to),
          )
          .reverse();
        const { rows, next_cursor } = slicePage("delegations", listed, query);
        const names = await namesOf(host, users, rows);
        return {
          status: 200,
          json: { delegations: rows.map((each) => renderDelegation(each, { users, names, now })), next_cursor },
          headers: nextLink("/v1/delegations", query, next_cursor),
        };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/delegations/:id",
      tag: OPENAPI_TAG,
      summary: "Show a delegation",
      scope: host.scopes,
      params: Params,
      responses: { 200: ONE },
      errors: [ERRORS.DELEGATION_NOT_FOUND],
      async handle({ params: { id }, credential }) {
        const delegation = requireVisibleDelegation((await host.state(delegationState)).get(id), id, credential);
        return { status: 200, json: await render(host, delegation) };
      },
    }),
    defineRoute({
      method: "GET",
      path: "/v1/users/:id/delegates",
      tag: OPENAPI_TAG,
      summary: "List to whom and what a user can delegate",
      description: "Only for the user, in a session. Lists approvers by name and id.",
      scope: "approvals:decide",
      params: Params,
      query: Type.Object(PAGE_QUERY, closed),
      responses: { 200: { description: "A page of users, and all groups.", schema: DelegateList } },
      errors: [ERRORS.SESSION_REQUIRED, "INVALID_CURSOR"],
      async handle({ params: { id }, query, credential }) {
        requireOwnUser(credential, id);
        const users = await host.state(userState);
        const { rows, next_cursor } = slicePage("delegates", listDelegates(users, id), query);
        const principals = rows.map((user) => principalOfUser(user.id));
        const names = await readPrincipalNames(host.storage, users, principals);
        const delegates = rows.map((user) => partyOf(names, user.id));
        return {
          status: 200,
          json: { delegates, groups: delegableGroups(host, credential), next_cursor },
          headers: nextLink(`/v1/users/${id}/delegates`, query, next_cursor),
        };
      },
    }),
  ];
}

function changeRoutes(host: CoreHost) {
  return [
    defineRoute({
      method: "POST",
      path: "/v1/users/:id/delegations",
      tag: OPENAPI_TAG,
      summary: "Let another user approve on your behalf",
      description: "Only the user can do this, in a session. The user keeps their own rights.",
      scope: "approvals:decide",
      params: Params,
      body: Body,
      responses: { 201: ONE },
      errors: [ERRORS.SESSION_REQUIRED, ERRORS.NOT_FOUND, ERRORS.ENDED, ERRORS.DELEGATION_INVALID],
      async handle({ params: { id }, body, credential }) {
        const delegation = await createDelegation(host, credential, id, body);
        const Location = `/v1/delegations/${delegation.id}`;
        return { status: 201, json: await render(host, delegation), headers: { Location } };
      },
    }),
    defineRoute({
      method: "POST",
      path: "/v1/delegations/:id/revoke",
      tag: OPENAPI_TAG,
      summary: "Revoke a delegation",
      description:
        "For the delegation's two users in a session, and for callers with `users:manage`. Takes effect in every process before the response is sent.",
      scope: host.scopes,
      params: Params,
      body: RevokeBody,
      responses: { 200: ONE },
      errors: [ERRORS.DELEGATION_NOT_FOUND, ERRORS.DELEGATION_ENDED, "SCOPE_ESCALATION"],
      async handle({ params: { id }, body: { comment = null }, credential }) {
        return { status: 200, json: await render(host, await revokeDelegation(host, credential, id, comment)) };
      },
    }),
  ];
}

async function render(host: CoreHost, delegation: Delegation) {
  const users = await host.state(userState);
  return renderDelegation(delegation, { users, names: await namesOf(host, users, [delegation]), now: host.clock() });
}

/** Returns the names of the users as they are displayed. A name that several users have is followed by the id. */
function namesOf(host: CoreHost, users: Users, delegations: readonly Delegation[]): Promise<PrincipalNames> {
  const principals = delegations.flatMap(({ from, to }) => [from, to].map(principalOfUser));
  return readPrincipalNames(host.storage, users, principals);
}

const partyOf = (names: PrincipalNames, user: string): Static<typeof Party> => ({
  id: user,
  name: names[principalOfUser(user)] ?? "",
});

function renderDelegation(
  delegation: Delegation,
  { users, names, now }: { users: Users; names: PrincipalNames; now: number },
): Static<typeof DelegationRecord> {
  const { id, from, to, groups, agents, tools, starts_at, until, comment, created_at, ended } = delegation;
  const list = (names: readonly string[] | null) => (names === null ? null : [...names]);
  return {
    id,
    status: delegationStatus(delegation, users, now),
    from: partyOf(names, from),
    to: partyOf(names, to),
    groups: list(groups),
    agents: list(agents),
    tools: list(tools),
    starts_at: toRfc3339(starts_at),
    until: toRfc3339(until),
    comment,
    created_at: toRfc3339(created_at),
    ended:
      ended === null
        ? null
        : { cause: ended.cause, at: toRfc3339(ended.at), by: ended.by.principal, comment: ended.comment },
  };
}
