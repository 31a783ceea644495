/** Parts of a page whose code is loaded when they are displayed, such as the panels that other features add. */
import type { ComponentChildren, ComponentType } from "preact";
import { listPanels, loadModule, type Places } from "../core/parts.ts";
import { hasScope } from "../core/me.ts";
import { ErrorNotice } from "./elements.tsx";
import { useLoad } from "./hooks.ts";

/**
 * Renders the panels that features add to a place, with the properties of the place.
 * @example
 * <Panels place="agent-title" agent={id} />
 */
export function Panels<P extends keyof Places>({ place, ...props }: { place: P } & Places[P]) {
  return (
    <>
      {listPanels(place)
        .filter(({ scopes = [] }) => scopes.length === 0 || scopes.some(hasScope))
        .map((panel, i) => (
          <LazyPart key={`${place} ${i}`} load={panel.load as LoadPart<object>} props={props} />
        ))}
    </>
  );
}

type LoadPart<P> = () => Promise<ComponentType<P>>;

/**
 * Renders a component once its module is loaded.
 * @param props.load always the same function
 * @param props.waiting content until then; nothing by default
 */
export function LazyPart<P extends object>({
  load,
  props,
  waiting = null,
}: {
  load: LoadPart<P>;
  props: P;
  waiting?: ComponentChildren;
}) {
  const { data, error, reload } = useLoad(async () => ({ View: await loadModule(load) }), []);
  if (error !== null) return <ErrorNotice error={error} onRetry={reload} />;
  return data === null ? <>{waiting}</> : <data.View {...props} />;
}
