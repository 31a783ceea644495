/** Cards of the page about an agent with what it may do for a time: grants, tasks, authorities. */
import type { ComponentChildren } from "preact";
import { hasScope } from "../core/me.ts";
import { ErrorNotice } from "./elements.tsx";
import { useSubmit } from "./forms.tsx";
import { useLoad } from "./hooks.ts";
import { LoadedCard } from "./section.tsx";

interface CardProps<T> {
  /** Unique on the page. */
  id: string;
  title: string;
  /** Name of the data, for "Loading …". */
  what: string;
  /** Below the title. */
  help?: string;
  /** Right of the title. */
  side?: ComponentChildren;
  agent: string;
  load(agent: string, signal: AbortSignal): Promise<readonly T[]>;
  /** Text without permissions. If absent, the card is hidden then, because most agents have none. */
  none?: string;
  /** @param reload reads the list again, after a change */
  children(items: readonly T[], reload: () => void): ComponentChildren;
}

export function PermissionsCard<T>({ agent, load, help, none, children, ...card }: CardProps<T>) {
  const loaded = useLoad((signal) => load(agent, signal), [agent]);
  if (none === undefined && loaded.error === null && (loaded.data ?? []).length === 0) return null;
  return (
    <LoadedCard {...card} loaded={loaded}>
      {(items) => (
        <>
          {help === undefined && items.length > 0 ? null : <p class="quiet">{items.length === 0 ? none : help}</p>}
          {items.length === 0 ? null : children(items, loaded.reload)}
        </>
      )}
    </LoadedCard>
  );
}

interface PermissionProps {
  title: ComponentChildren;
  /** The scope of those who can end it. */
  scope: Parameters<typeof hasScope>[0];
  /** Label of the button that ends it. */
  label: string;
  end(): Promise<unknown>;
  children: ComponentChildren;
}

/** Renders a permission with the button that ends it. */
export function Permission({ title, scope, label, end, children }: PermissionProps) {
  const { error, isBusy, submit } = useSubmit(async () => void (await end()));
  return (
    <article>
      <p>{title}</p>
      {children}
      {hasScope(scope) ? (
        <form onSubmit={submit}>
          <ErrorNotice error={error} />
          <button type="submit" class="danger small" disabled={isBusy}>
            {label}
          </button>
        </form>
      ) : null}
    </article>
  );
}
