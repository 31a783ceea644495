/**
 * Renders the manifests of a folder with a kustomization.yaml, and computes a pod's environment variables and files
 * from them. Throws if a reference does not resolve, because Kubernetes would not start such a pod. A test compares the
 * rendering with `kubectl kustomize` where that is installed.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { parse, parseAllDocuments } from "yaml";

// Manifests are looked into freely; their types are held against Kubernetes' own where they are tested.
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Manifest = any;

/** Returns the key and the path of `key=path`, or of a path, whose last segment is then the key. */
const sourceOf = (file: string): [key: string, path: string] => {
  const [key, path] = file.split("=");
  return path === undefined ? [file.split("/").at(-1) as string, file] : [key as string, path];
};

const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** Returns the rendered manifests. Generated names have no hash suffix. */
export function renderedFrom(folder: string): Manifest[] {
  const read = (path: string): string => readFileSync(join(folder, path), "utf8");
  const { namespace, resources, images, configMapGenerator, secretGenerator } = parse(
    read("kustomization.yaml"),
  ) as Manifest;
  const manifests = (resources as string[]).flatMap((path) =>
    parseAllDocuments(read(path)).map((document) => document.toJS() as Manifest),
  );
  const dataOf = ({ literals = [], envs = [], files = [] }: Record<string, string[]>): [string, string][] => [
    ...[
      ...literals,
      ...envs.flatMap((path) =>
        read(path)
          .split("\n")
          .filter((line) => /^\w+=/.test(line)),
      ),
    ].map((line): [string, string] => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
    ...files.map(sourceOf).map(([key, path]): [string, string] => [key, read(path)]),
  ];
  const generated = (kind: string, { name, ...from }: Manifest, put: (text: string) => string): Manifest => ({
    apiVersion: "v1",
    kind,
    metadata: { name: name as string },
    ...(kind === "Secret" ? { type: "Opaque" } : {}),
    data: Object.fromEntries(dataOf(from as Record<string, string[]>).map(([key, text]) => [key, put(text)])),
  });
  for (const one of configMapGenerator) manifests.push(generated("ConfigMap", one, (text) => text));
  for (const one of secretGenerator) manifests.push(generated("Secret", one, base64));
  for (const manifest of manifests) {
    if (manifest.kind !== "Namespace") manifest.metadata.namespace = namespace;
    for (const container of manifest.spec?.template?.spec.containers ?? []) {
      const image = images.find(({ name }: Manifest) => name === container.image);
      if (image !== undefined) container.image = `${image.newName}:${image.newTag}`;
    }
  }
  return manifests;
}

export function only(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const matches = manifests.filter((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  if (matches.length !== 1) throw new Error(`expected one ${kind} ${name ?? ""}; found ${matches.length}`);
  return matches[0];
}

function valueIn(manifests: readonly Manifest[], kind: string, name: string, key: string): string {
  const value = only(manifests, kind, name).data[key] as string | undefined;
  if (value === undefined) throw new Error(`the ${kind} ${name} has no ${key}`);
  return kind === "Secret" ? Buffer.from(value, "base64").toString() : value;
}

/** Returns a container's environment variables. @param fields values for `fieldRef`, by field path */
export function environmentOf(
  manifests: readonly Manifest[],
  container: Manifest,
  fields: Readonly<Record<string, string>>,
): Record<string, string> {
  const env: Record<string, string> = {};
  const valueFrom = ({ fieldRef, configMapKeyRef, secretKeyRef }: Manifest): string => {
    if (configMapKeyRef !== undefined)
      return valueIn(manifests, "ConfigMap", configMapKeyRef.name as string, configMapKeyRef.key as string);
    if (secretKeyRef !== undefined)
      return valueIn(manifests, "Secret", secretKeyRef.name as string, secretKeyRef.key as string);
    const field = fields[fieldRef.fieldPath as string];
    if (field === undefined) throw new Error(`fieldRef ${fieldRef.fieldPath} is not supported`);
    return field;
  };
  for (const { name, value, valueFrom: from } of container.env)
    env[name as string] =
      from !== undefined
        ? valueFrom(from)
        : // Kubernetes expands references only to variables that are defined above, and leaves other references unchanged.
          (value as string).replaceAll(/\$\$|\$\(([A-Za-z_][\w.-]*)\)/g, (whole, other: string | undefined) =>
            other === undefined ? "$" : (env[other] ?? whole),
          );
  return env;
}

/**
 * Writes the volumes of a new pod into folders below `root`. Returns a function that translates a path in the container
 * into a path below `root`.
 */
export function mountInto(
  root: string,
  manifests: readonly Manifest[],
  { spec, container }: { spec: Manifest; container: Manifest },
): (path: string) => string {
  const volumes: Manifest[] = [
    ...spec.template.spec.volumes,
    ...spec.volumeClaimTemplates.map(({ metadata: { name } }: Manifest) => ({ name })),
  ];
  const mounts = (container.volumeMounts as Manifest[]).map(({ name, mountPath }): string => {
    const volume = volumes.find((one) => one.name === name);
    if (volume === undefined) throw new Error(`the pod has no volume ${name}`);
    // Only volumes of a claim outlive their pod.
    if (volume.emptyDir !== undefined) rmSync(join(root, mountPath as string), { recursive: true, force: true });
    mkdirSync(join(root, mountPath as string), { recursive: true });
    const kind = volume.configMap !== undefined ? "ConfigMap" : "Secret";
    const source = volume.configMap ?? volume.secret;
    if (source !== undefined) {
      const from = (source.name ?? source.secretName) as string;
      const all = Object.keys(only(manifests, kind, from).data as object).map((key) => ({ key, path: key }));
      for (const { key, path } of (source.items ?? all) as { key: string; path: string }[]) {
        const file = join(root, mountPath as string, path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, valueIn(manifests, kind, from, key));
      }
    }
    return mountPath as string;
  });
  return (path) => (mounts.some((mount) => path === mount || path.startsWith(`${mount}/`)) ? join(root, path) : path);
}

/** Returns true if a NetworkPolicy accepts a connection to `port` from a pod. `pod` and `namespace` are labels. */
export function admits(
  policy: Manifest,
  { pod, namespace, port }: { pod: object; namespace: object | "its own"; port: number },
): boolean {
  const has = (labels: object, selector: Manifest): boolean =>
    Object.keys(selector).every((key) => key === "matchLabels") &&
    Object.entries((selector.matchLabels ?? {}) as object).every(
      ([name, value]) => (labels as Manifest)[name] === value,
    );
  return (policy.spec.ingress as Manifest[]).some(
    ({ from, ports }) =>
      ports.some((one: Manifest) => one.port === port && one.protocol === "TCP") &&
      from.some(
        ({ podSelector, namespaceSelector }: Manifest) =>
          (namespaceSelector === undefined
            ? namespace === "its own"
            : namespace !== "its own" && has(namespace, namespaceSelector)) &&
          (podSelector === undefined || has(pod, podSelector)),
      ),
  );
}

/**
 * Returns true if an Ingress forwards a path.
 * https://kubernetes.io/docs/concepts/services-networking/ingress/#path-types
 */
export const passes = (ingress: Manifest, path: string): boolean =>
  (ingress.spec.rules[0].http.paths as { path: string; pathType: string }[]).some(({ path: at, pathType }) =>
    pathType === "Exact" ? path === at : path === at || path.startsWith(at.endsWith("/") ? at : `${at}/`),
  );
