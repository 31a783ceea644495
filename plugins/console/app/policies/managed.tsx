import { Badge } from "../ui/elements.tsx";

/** Renders what manages a policy: the API, or a source such as a folder or a repository. */
export function Managed({ policy }: { policy: { managed_by: string | null } }) {
  return policy.managed_by === null ? <span class="quiet">API</span> : <Badge value={policy.managed_by} />;
}
