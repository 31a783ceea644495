/** The card with the limits that count an agent's actions. */
import {
  Ago,
  PageLink,
  type Action,
  encodeSegment,
  hasScope,
  LoadedCard,
  MarkedValue,
  type Policy,
  request,
  Table,
  useLoad,
} from "../../console/app/kit.ts";
import type { Replay } from "./api-types.ts";

/** Maximum number of kinds of action for which limits are read. Each kind needs one replay request. */
const MAX_KINDS = 4;

const TEXTS = {
  limits: "Limits in use",
  limitUses: "Uses of limits",
  limitsHelp: "The count of each limit before the newest action of its kind. It is read by replaying that decision.",
  noLimits: "No limit counts its newest actions.",
} as const;

/** @param props.actions the agent's newest actions, newest first */
export function AgentLimits({ actions }: { actions: readonly Action[] }) {
  if (actions.length === 0 || !hasScope("policies:read")) return null;
  return <LimitCard actions={actions} />;
}

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

function LimitCard({ actions }: { actions: readonly Action[] }) {
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
    <Table label={TEXTS.limitUses} head={["Limit", "Used", "Before"]} numbers={["Used"]}>
      {uses.map(({ policy, limit, used, action, definition }) => {
        const isSum = definition?.count === undefined && definition?.at_most !== undefined;
        const most = isSum ? definition?.at_most : definition?.count;
        return (
          <tr key={`${policy} ${limit} ${action.id}`}>
            <td>
              <strong>
                <MarkedValue value={limit} />
              </strong>{" "}
              <PageLink class="quiet" href={`#/policies/${encodeSegment(policy)}`}>
                <MarkedValue value={policy} />
              </PageLink>
            </td>
            <td data-label="Used" class="number">
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
              <Ago at={action.created_at} />
            </td>
          </tr>
        );
      })}
    </Table>
  );
}
