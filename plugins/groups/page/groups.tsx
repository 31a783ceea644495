/** Groups with their members and limits, and rotas with the people on call. */
import {
  Fragment,
  type Api,
  Badge,
  buildUrl,
  encodeSegment,
  formatCounted,
  formatManager,
  hasScope,
  LoadedPage,
  MarkedValue,
  Notice,
  PageLink,
  PersonLink,
  request,
  Table,
  TimeLeft,
  TimeUntil,
  useLoad,
} from "../../console/app/kit.ts";

type Group = Api["GET /v1/groups"]["response"]["groups"][number];
type Hidden = Api["GET /v1/groups/hidden"]["response"]["hidden"][number];
type Rota = Api["GET /v1/rotas"]["response"]["rotas"][number];

const TEXTS = {
  title: "Groups and rotas",
  groups: "Groups",
  noGroups: "There are no groups. Define them under groups in assent.yaml, or give a user a group under Users.",
  noMember: "no member, so no one can give this group's approval",
  rotas: "Rotas",
  noRotas: "There are no rotas. Define them under rota in assent.yaml.",
  configured: "Rotas and limits of groups are managed in assent.yaml.",
  everything: "all requests",
  others: (count: number) =>
    `Limits also hide requests of ${formatCounted(count, "rule")} from some approvers, and leave enough others.`,
  nobody: "no one yet",
} as const;

export function Groups() {
  const loaded = useLoad(async (signal) => {
    const mayReadUsers = hasScope("users:read") || hasScope("users:manage");
    const mayReadRotas = hasScope("actions:read") || hasScope("approvals:decide");
    const [{ groups }, { rotas }, { hidden }] = await Promise.all([
      mayReadUsers ? request("GET /v1/groups", { signal }) : { groups: null },
      mayReadRotas ? request("GET /v1/rotas", { signal }) : { rotas: null },
      mayReadUsers && hasScope("policies:read") ? request("GET /v1/groups/hidden", { signal }) : { hidden: [] },
    ]);
    return { groups, rotas, hidden };
  }, []);
  return (
    <LoadedPage title={TEXTS.title} what="groups" loaded={loaded}>
      {({ groups, rotas, hidden }) => (
        <>
          <p class="quiet">{TEXTS.configured}</p>
          <HiddenRequests hidden={hidden} />
          {rotas === null ? null : <RotaSection rotas={rotas} />}
          {groups === null ? null : <GroupSection groups={groups} />}
        </>
      )}
    </LoadedPage>
  );
}

function GroupSection({ groups }: { groups: readonly Group[] }) {
  return (
    <>
      <h2 class="part">{TEXTS.groups}</h2>
      {groups.length === 0 ? (
        <p class="quiet">{TEXTS.noGroups}</p>
      ) : (
        <Table label={TEXTS.groups} head={["Group", "Members", "See and approve"]}>
          {groups.map(({ name, members, limits }) => (
            <tr key={name}>
              <td>
                <strong>
                  <MarkedValue value={name} />
                </strong>
              </td>
              <td data-label="Members">
                {members.length === 0 ? (
                  <>
                    <Badge value="failed" label="empty" /> <span class="quiet">{TEXTS.noMember}</span>
                  </>
                ) : (
                  members.map(({ member, managed_by }, i) => (
                    <Fragment key={member}>
                      {i === 0 ? "" : ", "}
                      <PersonLink principal={member} />
                      <span class="quiet">{describeSource(managed_by)}</span>
                    </Fragment>
                  ))
                )}
              </td>
              <td data-label="See and approve">
                {limits === null ? TEXTS.everything : <MarkedValue value={describeLimits(limits)} />}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function RotaSection({ rotas }: { rotas: readonly Rota[] }) {
  return (
    <>
      <h2 class="part">{TEXTS.rotas}</h2>
      {rotas.length === 0 ? <p class="quiet">{TEXTS.noRotas}</p> : null}
      {rotas.length === 0 ? null : (
        <Table label={TEXTS.rotas} head={["Rota", "On call", "Next", "Members"]}>
          {rotas.map(({ name, on_call, next, members }) => (
            <tr key={name}>
              <td>
                <strong>
                  <MarkedValue value={name} />
                </strong>
              </td>
              <td data-label="On call">
                <Shift shift={on_call} edge="until" />
              </td>
              <td data-label="Next">
                <Shift shift={next} edge="from" />
              </td>
              <td data-label="Members">
                {[...new Set(members)].map((member, i) => (
                  <Fragment key={member}>
                    {i === 0 ? "" : ", "}
                    <PersonLink principal={member} />
                  </Fragment>
                ))}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function Shift({ shift, edge }: { shift: Rota["on_call"]; edge: "from" | "until" }) {
  if (shift === null) return <span class="quiet">{TEXTS.nobody}</span>;
  return (
    <>
      <PersonLink principal={shift.member} />{" "}
      <span class="quiet">{edge === "until" ? <TimeLeft at={shift[edge]} /> : <TimeUntil at={shift[edge]} />}</span>
    </>
  );
}

/** Warns where limits hide requests from a group or rota that must approve them. What leaves enough people is folded. */
function HiddenRequests({ hidden }: { hidden: readonly Hidden[] }) {
  const isSerious = ({ group, able, needed }: Hidden): boolean => group !== null || able < needed;
  const others = hidden.filter((each) => !isSerious(each));
  const notice = (each: Hidden) => <HiddenNotice key={`${each.policy} ${each.rule} ${each.group}`} hidden={each} />;
  return (
    <>
      {hidden.filter(isSerious).map(notice)}
      {others.length === 0 ? null : (
        <details>
          <summary>{TEXTS.others(others.length)}</summary>
          {others.map(notice)}
        </details>
      )}
    </>
  );
}

/** Says from whom limits of groups hide requests of a rule that asks them, and whether the rule can still be met. */
function HiddenNotice({ hidden }: { hidden: Hidden }) {
  const { policy, rule, group, needed, members, able, hidden_from } = hidden;
  const isUnreachable = able < needed;
  return (
    <Notice kind={isUnreachable ? "bad" : "busy"}>
      <PageLink href={buildUrl(`#/policies/${encodeSegment(policy)}`, { rule })}>
        <MarkedValue value={rule} />
      </PageLink>{" "}
      asks {needed} of {group === null ? "all approvers" : <MarkedValue value={group} />} about{" "}
      <MarkedValue value={describePatterns(hidden)} />. Limits of groups hide{" "}
      {(["all", "some"] as const)
        .map((hides) => ({ hides, people: hidden_from.filter((each) => each.hides === hides) }))
        .filter(({ people }) => people.length > 0)
        .map(({ hides, people }, i) => (
          <Fragment key={hides}>
            {i === 0 ? "" : " and "}
            {hides} of these requests from{" "}
            {people.map(({ member }, at) => (
              <Fragment key={member}>
                {at === 0 ? "" : ", "}
                <PersonLink principal={member} />
              </Fragment>
            ))}
          </Fragment>
        ))}
      .{" "}
      {isUnreachable
        ? `Only ${able} of ${formatCounted(members, "member")} can see any, so the rule cannot be met.`
        : `${able} of ${formatCounted(members, "member")} can approve.`}
    </Notice>
  );
}

function describePatterns(patterns: NonNullable<Group["limits"]>): string {
  const text = describeLimits(patterns);
  return text === "" ? "all requests" : `requests of ${text}`;
}

/** Returns a text such as "the agents support-* with the tools crm, tickets". */
function describeLimits({ agents, tools }: NonNullable<Group["limits"]>): string {
  const parts = [
    agents === null ? "" : `the ${agents.length === 1 ? "agent" : "agents"} ${agents.join(", ")}`,
    tools === null ? "" : `the ${tools.length === 1 ? "tool" : "tools"} ${tools.join(", ")}`,
  ];
  return parts.filter((part) => part !== "").join(" with ");
}

function describeSource(managedBy: string): string {
  if (managedBy === "configuration") return " in assent.yaml";
  return managedBy === "user" ? "" : ` from ${formatManager(managedBy)}`;
}
