/** Cards about the controls of an agent: grants, limits and keys. */
import type { Action, Grant, Policy, Replay } from "../core/api-types.ts";
import { encodeSegment, request } from "../core/api.ts";
import { hasScope } from "../core/me.ts";
import { KeyTable } from "../keys/keys.tsx";
import { Table, MarkedValue, Time } from "../ui/elements.tsx";
import { useLoad } from "../ui/hooks.ts";
import { PersonLink } from "../ui/person.tsx";
import { LoadedCard } from "../ui/section.tsx";
import { AGENT_TEXTS as TEXTS } from "./strings.ts";

/** Maximum number of kinds of action for which limits are read. Each kind needs one replay request. */
const MAX_KINDS = 4;

export function GrantCard({ id }: { id: string }) {
  const loaded = useLoad(
    (signal) => request("GET /v1/grants", { query: { agent_id: id, active: true, limit: 100 }, signal }),
    [id],
  );
  return (
    <LoadedCard id="grants" title={TEXTS.grants} what="grants" loaded={loaded} side={<a href="#/grants">All grants</a>}>
      {({ grants }) => (grants.length === 0 ? <p class="quiet">{TEXTS.noGrants}</p> : <Grants grants={grants} />)}
    </LoadedCard>
  );
}

function Grants({ grants }: { grants: readonly Grant[] }) {
  return (
    <Table label={TEXTS.activeGrants} head={["Covers", "Used", "Granted by", "Until"]}>
      {grants.map(({ id, tool, operation, scope, count, used, granted_by, until }) => (
        <tr key={id}>
          <td>
            <strong>
              <MarkedValue value={`${tool} ${operation}`} />
            </strong>
            <br />
            <code>
              <MarkedValue value={scope ?? "every request"} />
            </code>
          </td>
          <td data-label="Used">
            <a href={`#/actions?grant_id=${encodeSegment(id)}`}>
              {used === null ? "uses" : `${used.count} of ${count}`}
            </a>
          </td>
          <td data-label="Granted by">
            <PersonLink principal={granted_by} />
          </td>
          <td data-label="Until">
            <Time at={until} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

export const canReadLimits = (): boolean => hasScope("replay:run") && hasScope("policies:read");

/** A limit that counted the newest action of a kind. */
interface LimitUse {
  policy: string;
  limit: string;
  /** Actions, or millionths of a sum. */
  used: number;
  action: Action;
  /** Null if the active version of the policy no longer has this limit. */
  definition: { count?: number; at_most?: number; window?: string } | null;
}

/** @param props.actions the agent's newest actions, newest first */
export function LimitCard({ actions }: { actions: readonly Action[] }) {
  const newest = [
    ...new Map(actions.toReversed().map((action) => [`${action.tool} ${action.operation}`, action])).values(),
  ]
    .toReversed()
    .filter(({ erased_at }) => erased_at === null)
    .slice(0, MAX_KINDS);
  const loaded = useLoad((signal) => loadLimits(newest, signal), [newest.map(({ id }) => id).join()]);
  return (
    <LoadedCard id="limits" title={TEXTS.limits} what="limits" loaded={loaded}>
      {(uses) =>
        uses.length === 0 ? (
          <p class="quiet">{TEXTS.noLimits}</p>
        ) : (
          <>
            <p class="quiet">{TEXTS.limitsHelp}</p>
            <Limits uses={uses} />
          </>
        )
      }
    </LoadedCard>
  );
}

async function loadLimits(newest: readonly Action[], signal: AbortSignal): Promise<LimitUse[]> {
  const replays = await Promise.all(
    newest.map(async (action) => {
      const body = { action_id: action.id };
      const { limits } = (await request("POST /v1/replay", { body, signal })) as Replay;
      return (limits ?? []).map((each) => ({ ...each, action }));
    }),
  );
  const uses = replays.flat();
  const names = [...new Set(uses.map(({ policy }) => policy))];
  const policies = new Map(
    await Promise.all(
      names.map(async (name) => [name, await request("GET /v1/policies/{id}", { path: [name], signal })] as const),
    ),
  );
  return uses.map((use) => ({ ...use, definition: findLimit(policies.get(use.policy), use.limit) }));
}

function findLimit(policy: Policy | undefined, name: string): LimitUse["definition"] {
  const limits = (policy?.definition["limits"] ?? []) as ({ name: string } & NonNullable<LimitUse["definition"]>)[];
  return limits.find((limit) => limit.name === name) ?? null;
}

const MILLION = 1_000_000;

function Limits({ uses }: { uses: readonly LimitUse[] }) {
  return (
    <Table label={TEXTS.limitUses} head={["Limit", "Used", "Before"]}>
      {uses.map(({ policy, limit, used, action, definition }) => {
        const isSum = definition?.count === undefined && definition?.at_most !== undefined;
        const most = isSum ? definition?.at_most : definition?.count;
        return (
          <tr key={`${policy} ${limit} ${action.id}`}>
            <td>
              <strong>
                <MarkedValue value={limit} />
              </strong>
              <br />
              <a class="quiet" href={`#/policies/${encodeSegment(policy)}`}>
                <MarkedValue value={policy} />
              </a>
            </td>
            <td data-label="Used">
              {(isSum ? used / MILLION : used).toLocaleString()}
              {most === undefined ? null : (
                <>
                  {" "}
                  of {most.toLocaleString()}
                  {definition?.window === undefined ? null : (
                    <>
                      {" "}
                      in <MarkedValue value={definition.window} />
                    </>
                  )}
                </>
              )}
            </td>
            <td data-label="Before">
              <a href={`#/actions/${encodeSegment(action.id)}`}>
                <MarkedValue value={`${action.tool} ${action.operation}`} />
              </a>{" "}
              <Time at={action.created_at} />
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

export function KeyCard({ id }: { id: string }) {
  const loaded = useLoad(
    (signal) => request("GET /v1/api-keys", { query: { agent_id: id, status: "live", limit: 100 }, signal }),
    [id],
  );
  return (
    <LoadedCard id="keys" title={TEXTS.keys} what="keys" loaded={loaded} side={<a href="#/keys">All keys</a>}>
      {({ api_keys: keys }) => (keys.length === 0 ? <p class="quiet">{TEXTS.noKeys}</p> : <KeyTable keys={keys} />)}
    </LoadedCard>
  );
}
