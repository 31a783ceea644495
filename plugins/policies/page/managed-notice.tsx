import { Badge } from "../../console/app/kit.ts";

/** Renders what manages a policy: the API, or a source such as a folder or a repository. Marks the baseline. */
export function ManagedPolicyNotice({ policy }: { policy: { managed_by: string | null; baseline: boolean } }) {
  if (policy.managed_by === null) return <span class="quiet">API</span>;
  return (
    <>
      <Badge value={policy.managed_by} /> {policy.baseline ? <Badge value="baseline" /> : null}
    </>
  );
}
