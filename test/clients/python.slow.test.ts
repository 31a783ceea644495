/** The Python client against a real service, with the python3 of this machine. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { promisify } from "node:util";
import { startProcess, stopProcess, type ServiceProcess } from "../support/process.ts";
import { findProgram } from "../support/proxy.ts";
import { ROOT } from "../support/runtimes.ts";
import { POLICIES } from "../support/service.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const run = promisify(execFile);
// The system's own Python, without packages.
const PYTHON = ["/usr/bin/python3", findProgram("python3")].find(
  (path) => path !== null && findProgram(path.slice(path.lastIndexOf("/") + 1)) !== null,
);

describe("the Python client", { skip: PYTHON === undefined ? "no python3 on this machine" : false }, () => {
  let service: ServiceProcess;
  let data: string;
  let agent = "";
  let admin = "";
  before(async () => {
    data = temporaryFolder("assent-python-");
    service = await startProcess({ ASSENT_DATA: data, ASSENT_POLICIES: POLICIES });
    admin = /export ADMIN_KEY=(\S+)/.exec(service.output())?.[1] ?? "";
    const response = await fetch(`${service.url}/v1/api-keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
      body: JSON.stringify({ name: "python", preset: "agent", agent_id: "support-bot" }),
    });
    const made = (await response.json()) as { key: string };
    assert.equal(response.status, 201, JSON.stringify(made));
    agent = made.key;
  });
  after(async () => {
    await stopProcess(service);
    rmSync(data, { recursive: true, force: true });
  });

  const folder = join(ROOT, "clients", "python");
  const settings = () => ({
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      ASSENT_URL: service.url,
      ASSENT_API_KEY: agent,
      ASSENT_TEST_ADMIN: admin,
      PYTHONPATH: folder,
    },
    timeout: 120_000,
  });

  const pyright = join(ROOT, "node_modules", "pyright", "index.js");
  const noChecker = existsSync(pyright)
    ? false
    : "pyright is not installed; run npm ci --workspaces --include-workspace-root";
  it("has types that hold in strict mode, for the oldest Python that it supports", { skip: noChecker }, async () => {
    const project = temporaryFolder("assent-pyright-");
    cpSync(join(folder, "assent"), join(project, "assent"), { recursive: true });
    const uses = [
      "from assent import Assent, AsyncAssent",
      "async def both(one: Assent, other: AsyncAssent) -> str:",
      '    first = one.submit(agent_id="a", tool="t", operation="o", params={"n": 1})',
      '    second = await other.submit(agent_id="a", tool="t", operation="o", params={"n": 1})',
      '    await other.result(second["id"], success=True)',
      '    return first["status"] + second["status"]',
    ];
    writeFileSync(join(project, "uses.py"), `${uses.join("\n")}\n`);
    const settings = { include: ["assent", "uses.py"], typeCheckingMode: "strict", pythonVersion: "3.9" };
    writeFileSync(join(project, "pyrightconfig.json"), JSON.stringify(settings));
    const { stdout } = await run(process.execPath, [pyright, "-p", project], { cwd: project });
    assert.match(stdout, /^0 errors, 0 warnings/m);
    rmSync(project, { recursive: true });
  });

  it("makes the first call of its page", async () => {
    const page = readFileSync(join(folder, "README.md"), "utf8");
    const example = /```python\n([\s\S]*?)```/.exec(page)?.[1] ?? "";
    const api = 'class charge_api:\n    refund = staticmethod(lambda *given: print("ran", *given))\n\n';
    const { stdout } = await run(PYTHON as string, ["-B", "-c", api + example], settings());
    assert.equal(stdout, "ran 50 USD ch_1\n");
  });

  it("passes its own tests", async () => {
    const unittest = ["-B", "-W", "error", "-m", "unittest", "discover", "-s", "tests"];
    const { stderr } = await run(PYTHON as string, unittest, settings()).catch((error: { stderr?: string }) =>
      assert.fail(`python failed:\n${error.stderr ?? "it did not start"}`),
    );
    assert.match(stderr, /Ran (?:[2-9]\d|\d{3}) tests/);
    assert.match(stderr, /\nOK\n/);
  });
});

describe("the Python distribution", { skip: PYTHON === undefined ? "no python3 on this machine" : false }, () => {
  it("is assent-client, contains the module assent, and its build leaves no files in the clone", async (t) => {
    const folder = join(ROOT, "clients", "python");
    const wheels = temporaryFolder("assent-wheel-");
    try {
      const pip = [PYTHON as string, findProgram("python3") as string].find(
        (python) => spawnSync(python, ["-m", "pip", "--version"]).status === 0,
      );
      if (pip === undefined) return t.skip("no pip on this machine");
      const before = readdirSync(folder).sort();
      const { status, stderr } = spawnSync(pip, ["-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, folder]);
      const text = stderr.toString();
      if (/No matching distribution found for flit_core|Could not fetch/.test(text))
        return t.skip("the build backend cannot be installed here");
      assert.equal(status, 0, text);
      assert.deepEqual(readdirSync(folder).sort(), before);
      const [wheel = ""] = readdirSync(wheels);
      assert.match(wheel, /^assent_client-0\.1\.0-py3-none-any\.whl$/);
      const listing = await run(PYTHON as string, ["-m", "zipfile", "-l", join(wheels, wheel)]);
      for (const name of ["assent/client.py", "assent/adapters/gate.py", "assent/py.typed"])
        assert.ok(listing.stdout.includes(name), name);
    } finally {
      rmSync(wheels, { recursive: true, force: true });
    }
  });
});
