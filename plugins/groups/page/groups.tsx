/** Groups with their members and limits, and rotas with the people on call. */
import {
  Fragment,
  type Api,
  Badge,
  hasScope,
  LoadedPage,
  MarkedValue,
  Notice,
  PersonLink,
  request,
  Table,
  TimeLeft,
  TimeUntil,
  useLoad,
} from "../../console/app/kit.ts";

type Group = Api["GET /v1/groups"]["response"]["groups"][number];
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
  nobody: "no one yet",
} as const;

export function Groups() {
  const loaded = useLoad(async (signal) => {
    const mayReadUsers = hasScope("users:read") || hasScope("users:manage");
    const mayReadRotas = hasScope("actions:read") || hasScope("approvals:decide");
    const [{ groups }, { rotas }] = await Promise.all([
      mayReadUsers ? request("GET /v1/groups", { signal }) : { groups: null },
      mayReadRotas ? request("GET /v1/rotas", { signal }) : { rotas: null },
    ]);
    return { groups, rotas };
  }, []);
  return (
    <LoadedPage title={TEXTS.title} what="groups" loaded={loaded}>
      {({ groups, rotas }) => (
        <>
          <p class="quiet">{TEXTS.configured}</p>
          {rotas === null ? null : <RotaSection rotas={rotas} groups={groups ?? []} />}
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

function RotaSection({ rotas, groups }: { rotas: readonly Rota[]; groups: readonly Group[] }) {
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
      {rotas
        .flatMap((rota) => listHiddenRequests(rota, groups))
        .map(({ rota, member, limits }) => (
          <Notice key={`${rota} ${member}`} kind="busy">
            <PersonLink principal={member} /> is in the rota “<MarkedValue value={rota} />
            ”, but sees only requests of <MarkedValue value={limits} />. The rota's other requests are hidden from this
            person.
          </Notice>
        ))}
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

/** Returns the members of the rota whose groups limit what they see. A group without limits does not lift the limits. */
function listHiddenRequests(rota: Rota, groups: readonly Group[]) {
  return [...new Set(rota.members)].flatMap((member) => {
    const limits = groups.flatMap((group) =>
      group.limits !== null && group.members.some((each) => each.member === member)
        ? [describeLimits(group.limits)]
        : [],
    );
    return limits.length === 0 ? [] : [{ rota: rota.name, member, limits: limits.join(", or of ") }];
  });
}

/** Returns a text such as "the agents support-* with the tools crm, tickets". */
function describeLimits({ agents, tools }: NonNullable<Group["limits"]>): string {
  const parts = [
    agents === null ? "" : `the agents ${agents.join(", ")}`,
    tools === null ? "" : `the tools ${tools.join(", ")}`,
  ];
  return parts.filter((part) => part !== "").join(" with ");
}

function describeSource(managedBy: string): string {
  if (managedBy === "configuration") return " in assent.yaml";
  return managedBy === "user" ? "" : ` from ${managedBy}`;
}
