/** Groups with their members and limits, and rotas with the people on call. */
import {
  Fragment,
  type Api,
  Badge,
  buildUrl,
  encodeSegment,
  formatCounted,
  formatManager,
  formatPatterns,
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
type Requirement = Api["GET /v1/groups/required"]["response"]["required"][number];
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
  notAsked: "no rule",
} as const;

export function Groups() {
  const loaded = useLoad(async (signal) => {
    const mayReadUsers = hasScope("users:read") || hasScope("users:manage");
    const mayReadRotas = hasScope("actions:read") || hasScope("approvals:decide");
    const [{ groups }, { rotas }, { required }] = await Promise.all([
      mayReadUsers ? request("GET /v1/groups", { signal }) : { groups: null },
      mayReadRotas ? request("GET /v1/rotas", { signal }) : { rotas: null },
      mayReadUsers && hasScope("policies:read") ? request("GET /v1/groups/required", { signal }) : { required: [] },
    ]);
    return { groups, rotas, required };
  }, []);
  return (
    <LoadedPage title={TEXTS.title} what="groups" loaded={loaded}>
      {({ groups, rotas, required }) => (
        <>
          <p class="quiet">{TEXTS.configured}</p>
          <HiddenRequests required={required} />
          {rotas === null ? null : <RotaSection rotas={rotas} required={required} />}
          {groups === null ? null : <GroupSection groups={groups} required={required} />}
        </>
      )}
    </LoadedPage>
  );
}

function GroupSection({ groups, required }: { groups: readonly Group[]; required: readonly Requirement[] }) {
  return (
    <>
      <h2 class="part">{TEXTS.groups}</h2>
      {groups.length === 0 ? (
        <p class="quiet">{TEXTS.noGroups}</p>
      ) : (
        <Table label={TEXTS.groups} head={["Group", "Members", "Asked by", "See and approve"]}>
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
              <td data-label="Asked by">
                <AskingRules rules={required.filter(({ group }) => group === name)} />
              </td>
              <td data-label="See and approve">
                {limits === null ? TEXTS.everything : <MarkedValue value={formatPatterns(limits)} />}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

function RotaSection({ rotas, required }: { rotas: readonly Rota[]; required: readonly Requirement[] }) {
  return (
    <>
      <h2 class="part">{TEXTS.rotas}</h2>
      {rotas.length === 0 ? <p class="quiet">{TEXTS.noRotas}</p> : null}
      {rotas.length === 0 ? null : (
        <Table label={TEXTS.rotas} head={["Rota", "On call", "Next", "Members", "Asked by"]}>
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
              <td data-label="Asked by">
                <AskingRules rules={required.filter(({ group }) => group === name)} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

/** Renders links to the rules that require an approval of a group or rota. */
function AskingRules({ rules }: { rules: readonly Requirement[] }) {
  if (rules.length === 0) return <span class="quiet">{TEXTS.notAsked}</span>;
  return (
    <>
      {rules.map((rule, i) => (
        <Fragment key={i}>
          {i === 0 ? "" : ", "}
          <RuleLink rule={rule} />
        </Fragment>
      ))}
    </>
  );
}

function RuleLink({ rule: { policy, rule } }: { rule: Pick<Requirement, "policy" | "rule"> }) {
  return (
    <PageLink href={buildUrl(`#/policies/${encodeSegment(policy)}`, { rule })}>
      <MarkedValue value={rule} />
    </PageLink>
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

/**
 * Warns if limits hide requests from a group or rota that must approve them. Collapses warnings that leave enough
 * people.
 */
function HiddenRequests({ required }: { required: readonly Requirement[] }) {
  const isSerious = ({ group, able, needed }: Requirement): boolean => group !== null || able < needed;
  // Requirements without a group can also be met by keys that are in no group, so they are not counted.
  const hidden = required.filter(
    ({ group, hidden_from, able, needed }) => hidden_from.length > 0 || (group !== null && able < needed),
  );
  const others = hidden.filter((each) => !isSerious(each));
  const notice = (each: Requirement) => (
    <HiddenNotice key={`${each.policy} ${each.rule} ${each.group}`} hidden={each} />
  );
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

/** Says whether a rule can be met, and from whom limits of groups hide its requests. */
function HiddenNotice({ hidden }: { hidden: Requirement }) {
  const { group, needed, members, able, hidden_from } = hidden;
  const isUnreachable = able < needed;
  return (
    <Notice kind={isUnreachable ? "bad" : "busy"}>
      <RuleLink rule={hidden} /> asks {needed} of {group === null ? "all approvers" : <MarkedValue value={group} />}{" "}
      about <MarkedValue value={describePatterns(hidden)} />.{hidden_from.length === 0 ? "" : " Limits of groups hide "}
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
      {hidden_from.length === 0 ? " " : ". "}
      {isUnreachable
        ? `Only ${able} of ${formatCounted(members, "member")} can approve any, so the rule cannot be met.`
        : `${able} of ${formatCounted(members, "member")} can approve.`}
    </Notice>
  );
}

function describePatterns(patterns: NonNullable<Group["limits"]>): string {
  const text = formatPatterns(patterns);
  return text === "" ? "all requests" : `requests of ${text}`;
}

function describeSource(managedBy: string): string {
  if (managedBy === "configuration") return " in assent.yaml";
  return managedBy === "user" ? "" : ` from ${formatManager(managedBy)}`;
}
