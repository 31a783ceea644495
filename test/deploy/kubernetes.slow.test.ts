/**
 * Checks the manifests in deploy/kubernetes without a cluster.
 * @needs metrics
 */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { after, before, describe, it } from "node:test";
import { existsSync } from "node:fs";
import { parseAllDocuments } from "yaml";
import { newKey } from "../support/keys.ts";
import { admits, environmentOf, mountInto, only, passes, renderedFrom, type Manifest } from "../support/kubernetes.ts";
import { freePort, startPostgres, withoutPostgres, type PostgresServer } from "../support/postgres.ts";
import { MAIN, ROOT, startCommand, stopProcess, type ServiceProcess } from "../support/process.ts";
import { commandOf } from "../support/runtimes.ts";
import { ALLOWED, POLICIES } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const FOLDER = join(ROOT, "deploy/kubernetes");
const ADMIN = `assent-test-admin-${"0".repeat(32)}`;
const DOCKERFILE = readFileSync(join(ROOT, "deploy/docker/node.Dockerfile"), "utf8");
const IMAGE = Object.fromEntries(
  [...DOCKERFILE.matchAll(/^ENV (.*)$/gm)].flatMap(([, pairs]) =>
    (pairs as string).split(" ").map((pair) => pair.split("=") as [string, string]),
  ),
);
const withoutKubectl = (process.env["PATH"] ?? "").split(delimiter).some((path) => existsSync(join(path, "kubectl")))
  ? false
  : "no kubectl on this machine";

const IPS = ["127.0.0.1", "127.0.0.2"];

/** Removes the suffixes of generated names, as `renderedFrom` does. */
const plainNames = (text: string): string => text.replaceAll(/\bassent-[a-z0-9]{10}\b/g, "assent");

describe("the manifests for Kubernetes", () => {
  const filled = temporaryFolder("assent-kubernetes-");
  let manifests: Manifest[];
  let server: PostgresServer | undefined;
  before(async () => {
    cpSync(FOLDER, filled, { recursive: true });
    if (withoutPostgres === false) server = await startPostgres();
    const values: Record<string, string> = {
      DATABASE_URL: (await server?.database()) ?? "postgres://127.0.0.1/none",
      ASSENT_SECRET: "k3Yw9vQe7RtBnM2xLs8ZpDf4GhJc6VaU",
      ASSENT_ADMIN_KEY: ADMIN,
    };
    const example = readFileSync(join(FOLDER, "secrets.env.example"), "utf8");
    writeFileSync(
      join(filled, "secrets.env"),
      example.replaceAll(/^(\w+)=.*$/gm, (_, name: string) => `${name}=${values[name] ?? ""}`),
    );
    for (const name of ["log-key.pem", "permit-key.pem"]) writeFileSync(join(filled, name), newKey());
    manifests = renderedFrom(filled);
    // Created by the command in README.md.
    manifests.push({
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: "assent-policies", namespace: "assent" },
      data: Object.fromEntries(
        readdirSync(POLICIES)
          .filter((name) => name.endsWith(".yaml"))
          .map((name) => [name, readFileSync(join(POLICIES, name), "utf8")]),
      ),
    });
  });
  after(async () => {
    await server?.stop();
    rmSync(filled, { recursive: true, force: true });
  });
  const workload = (): { spec: Manifest; container: Manifest } => {
    const { spec } = only(manifests, "StatefulSet");
    assert.equal(spec.template.spec.containers.length, 1);
    return { spec, container: spec.template.spec.containers[0] };
  };

  it("have only fields that Kubernetes defines", () => {
    const typed = (one: Manifest, name: string): string => {
      const [group, version] = (one.apiVersion as string).replace(".k8s.io", "").split("/");
      const module = version === undefined ? `core/${group}` : `${group}/${version}`;
      return `export const ${name}: import("kubernetes-types/${module}").${one.kind} = ${JSON.stringify(one)};`;
    };
    const { spec, ...workloads } = only(manifests, "StatefulSet");
    const misspelt = [
      { ...workloads, spec: { ...spec, replica: 2 } },
      { ...workloads, spec: { ...spec, template: { spec: { containers: [{ name: "x", imagePullSecret: "y" }] } } } },
      { ...workloads, spec: { ...spec, replicas: "2" } },
    ];
    const lines = [
      ...manifests.map((one, at) => typed(one, `it${at}`)),
      // Checks that the types reject misspelt manifests.
      ...misspelt.map((one, at) => `// @ts-expect-error\n${typed(one, `misspelt${at}`)}`),
    ];
    const folder = temporaryFolder("assent-typed-");
    try {
      symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"));
      writeFileSync(join(folder, "manifests.ts"), lines.join("\n"));
      const options = { strict: true, noEmit: true, module: "esnext", moduleResolution: "bundler", types: [] };
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options }));
      const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
      execFileSync(process.execPath, [tsc, "-p", folder], { stdio: ["ignore", "inherit", "inherit"] });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("are rendered as by kubectl, including the commands in README.md", { skip: withoutKubectl }, () => {
    const readme = readFileSync(join(FOLDER, "README.md"), "utf8");
    const create = /^kubectl (create configmap .*) \\$/m.exec(readme)?.[1] ?? "";
    const kubectl = (args: string[]): Manifest[] => {
      const text = execFileSync("kubectl", args, {
        encoding: "utf8",
        cwd: ROOT,
        env: { ...process.env, HOME: filled },
      });
      return parseAllDocuments(plainNames(text)).map((document) => document.toJS() as Manifest);
    };
    const policies = kubectl([...create.split(" "), "--dry-run=client", "-o", "yaml"]);
    const plain = (one: Manifest): Manifest => {
      delete one.metadata.creationTimestamp;
      // kustomize wraps base64 into several lines.
      if (one.kind === "Secret") for (const key in one.data) one.data[key] = one.data[key].replaceAll("\n", "");
      return one;
    };
    const byName = (one: Manifest): [string, Manifest] => [`${one.kind} ${one.metadata.name}`, one];
    assert.deepEqual(
      Object.fromEntries([...kubectl(["kustomize", filled]), ...policies].map(plain).map(byName)),
      Object.fromEntries(manifests.map(byName)),
    );
  });

  it("refer only to names, keys and volumes that exist", () => {
    const { spec, container } = workload();
    const { labels } = spec.template.metadata;
    const port = container.ports[0];
    assert.deepEqual([port.name, String(port.containerPort)], ["http", IMAGE["ASSENT_PORT"]]);
    for (const name of ["startupProbe", "livenessProbe", "readinessProbe"])
      assert.equal(container[name].httpGet.port, port.name, name);
    const selectors = [
      spec.selector.matchLabels,
      only(manifests, "PodDisruptionBudget").spec.selector.matchLabels,
      only(manifests, "NetworkPolicy").spec.podSelector.matchLabels,
      ...spec.template.spec.topologySpreadConstraints.map((one: Manifest) => one.labelSelector.matchLabels),
      ...manifests.filter(({ kind }) => kind === "Service").map((one) => one.spec.selector),
    ];
    for (const selector of selectors) assert.deepEqual(selector, labels);
    assert.equal(only(manifests, "Service", spec.serviceName as string).spec.clusterIP, "None");
    for (const { backend } of only(manifests, "Ingress").spec.rules[0].http.paths) {
      const { ports } = only(manifests, "Service", backend.service.name as string).spec;
      const to = ports.find(({ name }: Manifest) => name === backend.service.port.name);
      assert.equal(to?.targetPort, port.name);
    }
    assert.match(container.image as string, /:\d+\.\d+\.\d+$/);
  });

  it("restrict a pod: the restricted standard, no token, and only its data and /tmp are writable", () => {
    const { spec, container } = workload();
    const { securityContext: pod, ...rest } = spec.template.spec;
    const [uid, gid] = (/^USER (\d+):(\d+)$/m.exec(DOCKERFILE) ?? []).slice(1).map(Number);
    assert.deepEqual([pod.runAsNonRoot, pod.runAsUser, pod.runAsGroup], [true, uid, gid]);
    assert.deepEqual(pod.seccompProfile, { type: "RuntimeDefault" });
    assert.deepEqual(container.securityContext, {
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ["ALL"] },
    });
    assert.deepEqual([rest.automountServiceAccountToken, rest.enableServiceLinks], [false, false]);
    assert.deepEqual(
      container.volumeMounts.filter((one: Manifest) => one.readOnly !== true).map((one: Manifest) => one.mountPath),
      ["/data", "/tmp"],
    );
    const { labels } = only(manifests, "Namespace").metadata;
    assert.equal(labels["pod-security.kubernetes.io/enforce"], "restricted");
  });

  it("accept connections only from the ingress controller", () => {
    const policy = only(manifests, "NetworkPolicy");
    assert.deepEqual(policy.spec.policyTypes, ["Ingress"]);
    const pod = workload().spec.template.metadata.labels as object;
    const ingress = { "kubernetes.io/metadata.name": "ingress" };
    const port = Number(IMAGE["ASSENT_PORT"]);
    assert.ok(admits(policy, { pod: { app: "controller" }, namespace: ingress, port }));
    for (const other of [
      { pod, namespace: "its own", port } as const,
      { pod: { app: "agent" }, namespace: "its own", port } as const,
      { pod, namespace: { "kubernetes.io/metadata.name": "other" }, port },
      { pod: { app: "controller" }, namespace: ingress, port: port + 1 },
    ])
      assert.equal(admits(policy, other), false, JSON.stringify(other));
  });

  const cannot = withoutPostgres || (process.platform === "linux" ? false : "127.0.0.2 is there on Linux alone");
  it("start two healthy pods, which reject an older database", { skip: cannot }, async () => {
    const { spec, container } = workload();
    assert.equal(spec.replicas, 2);
    const port = String(await freePort());
    const pods: ServiceProcess[] = [];
    const root = temporaryFolder("assent-pods-");
    async function start(ip: string, more: Record<string, string> = {}): Promise<void> {
      const env = { ...IMAGE, ...environmentOf(manifests, container, {}), ...more };
      const at = mountInto(join(root, ip), manifests, { spec, container });
      for (const [name, value] of Object.entries(env)) env[name] = at(value).replace(/:8000$/, `:${port}`);
      // Each pod has its own address. Here, all pods share one address, so each needs a different port.
      Object.assign(env, { ASSENT_HOST: ip, ASSENT_PORT: port, KUBERNETES_SERVICE_HOST: "10.0.0.1" });
      const [program, args] = commandOf("node", MAIN, ["serve"], []);
      const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
      pods.push(await startCommand(["env", ["-i", ...variables, program, ...args]], {}, { cwd: root }));
    }
    try {
      for (const ip of IPS) await start(ip);
      const urls = pods.map(({ url }) => url);
      assert.deepEqual(urls, [`http://127.0.0.1:${port}`, `http://127.0.0.2:${port}`]);
      for (const url of urls)
        for (const name of ["startupProbe", "livenessProbe", "readinessProbe"])
          assert.equal((await fetch(`${url}${container[name].httpGet.path}`)).status, 200, name);

      const call = async (url: string, path: string, key: string, body?: object): Promise<Manifest> => {
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
        const post = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
        const answer = await fetch(`${url}${path}`, { headers, ...post });
        assert.ok(answer.ok, `${path}: ${answer.status}`);
        return answer.json();
      };
      const [first, second] = urls as [string, string];
      const { key } = await call(first, "/v1/api-keys", ADMIN, { name: "support", agent_id: ALLOWED.agent_id });
      for (const url of urls)
        assert.equal((await call(url, "/v1/actions", key as string, ALLOWED)).status, "allowed", url);
      await until("each sees the other", async () => (await call(second, "/readyz", ADMIN)).replicas.processes === 2);

      const { paths } = await call(first, "/openapi.json", ADMIN);
      const ingress = only(manifests, "Ingress");
      const inside = ["/healthz", "/readyz", "/metrics"];
      for (const path of [
        ...Object.keys(paths as object),
        "/",
        "/approve",
        "/sign-in",
        "/sign-in-assets/page.css",
        "/manifest.webmanifest",
        "/service-worker.js",
        "/docs/errors",
        "/redoc",
      ])
        assert.equal(passes(ingress, path), !inside.includes(path), path);
      for (const { child } of pods) child.kill("SIGTERM");
      assert.deepEqual(await Promise.all(pods.map(({ ended }) => ended)), [0, 0]);
      // Uses the volume of each pod.
      const older = { DATABASE_URL: (await server?.database()) ?? "" };
      for (const ip of IPS) await assert.rejects(start(ip, older), /an older copy of the store was restored/);
    } finally {
      await Promise.all(pods.map((pod) => stopProcess(pod)));
      rmSync(root, { recursive: true, force: true });
    }
  });
});
