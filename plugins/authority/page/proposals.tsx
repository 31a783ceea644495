/** The card with the rules that an agent proposes. Nothing on it applies a rule. */
import {
  Ago,
  type Api,
  encodeSegment,
  ErrorNotice,
  hasScope,
  LoadedCard,
  MarkedValue,
  PrincipalName,
  request,
  Snippet,
  useLoad,
  useSubmit,
} from "../../console/app/kit.ts";

type Proposal = Api["GET /v1/authority/proposals"]["response"]["proposals"][number];

const TEXTS = {
  title: "Proposed rules",
  help: "The agent proposed these rules. Nothing applies them: copy a rule, change and test it, and activate it as any other policy.",
  free: (members: readonly string[]) => `The rule leaves free: ${members.join(", ")}.`,
} as const;

export function Proposals({ agent }: { agent: string }) {
  const loaded = useLoad((signal) => request("GET /v1/authority/proposals", { signal }), []);
  const own = (loaded.data?.proposals ?? []).filter(({ agent_id }) => agent_id === agent);
  // Most agents propose nothing, and a card without content is noise.
  if (loaded.error === null && own.length === 0) return null;
  return (
    <LoadedCard id="proposals" title={TEXTS.title} what="proposed rules" loaded={loaded}>
      {() => (
        <>
          <p class="quiet">{TEXTS.help}</p>
          {own.map((proposal) => (
            <ProposedRule key={proposal.id} proposal={proposal} onDismissed={loaded.reload} />
          ))}
        </>
      )}
    </LoadedCard>
  );
}

function ProposedRule({ proposal, onDismissed }: { proposal: Proposal; onDismissed(): void }) {
  const { id, reason, rule, free, evidence, proposed_at, dismissed_at, dismissed_by } = proposal;
  const { error, isBusy, submit } = useSubmit(async () => {
    await request("POST /v1/authority/proposals/{id}/dismiss", { path: [encodeSegment(id)], body: {} });
    onDismissed();
  });
  return (
    <article>
      <p>
        <MarkedValue value={reason} /> <Ago at={proposed_at} />
      </p>
      <p class="quiet">
        Of its {evidence.compared} newest actions: {evidence.allowed} allowed, {evidence.approved} approved,{" "}
        {evidence.denied} denied, {evidence.failed} failed with this tool and operation.
      </p>
      <p class="quiet">
        <MarkedValue value={TEXTS.free(free)} />
      </p>
      <Snippet label="Policy in shadow mode" text={rule} />
      {dismissed_at === null ? (
        hasScope("policies:write") ? (
          <form onSubmit={submit}>
            <ErrorNotice error={error} />
            <button type="submit" class="small" disabled={isBusy}>
              Dismiss
            </button>
          </form>
        ) : null
      ) : (
        <p class="quiet">
          Dismissed by <PrincipalName principal={dismissed_by ?? ""} /> <Ago at={dismissed_at} />
        </p>
      )}
    </article>
  );
}
