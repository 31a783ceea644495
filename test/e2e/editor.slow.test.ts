/** The published schemas in the YAML language server of editors: diagnostics, completion and hover texts, offline. */
import "../support/on-disk.ts";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { renderEditorSchema } from "../../src/config/editor-schemas.ts";
import { eventually } from "../support/wait.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

interface Message {
  id?: number;
  method?: string;
  params?: { uri: string; diagnostics: Diagnostic[] };
  result?: unknown;
  error?: { message: string };
}
interface Diagnostic {
  message: string;
  range: { start: { line: number; character: number } };
}

/** A minimal client of the Language Server Protocol, 3.17. */
class Editor {
  private readonly child = spawn(
    process.execPath,
    [
      join(
        createRequire(import.meta.url).resolve("yaml-language-server/package.json"),
        "..",
        "bin",
        "yaml-language-server",
      ),
      "--stdio",
    ],
    { stdio: ["pipe", "pipe", "inherit"] },
  );
  private buffer = Buffer.alloc(0);
  private ids = 0;
  private readonly answers = new Map<number, (message: Message) => void>();
  private readonly diagnostics = new Map<string, Diagnostic[]>();
  private readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
    this.child.stdout.on("data", (chunk: Buffer) => {
      this.buffer = Buffer.concat([this.buffer, chunk]);
      for (;;) {
        const found = /^Content-Length: (\d+)\r\n(?:[^\r\n]+\r\n)*\r\n/.exec(this.buffer.toString("latin1"));
        if (found === null) return;
        const [head, length] = [found[0].length, Number(found[1])];
        if (this.buffer.length < head + length) return;
        const message = JSON.parse(this.buffer.toString("utf8", head, head + length)) as Message;
        this.buffer = this.buffer.subarray(head + length);
        if (message.method === "textDocument/publishDiagnostics" && message.params !== undefined)
          this.diagnostics.set(message.params.uri, message.params.diagnostics);
        else if (message.method !== undefined && message.id !== undefined)
          this.write({
            id: message.id,
            result: message.method === "workspace/configuration" ? [{}, {}, {}, {}, {}] : null,
          });
        else if (message.id !== undefined) this.answers.get(message.id)?.(message);
      }
    });
  }

  private write(message: object): void {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    this.child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }
  private ask<T>(method: string, params: object): Promise<T> {
    const id = ++this.ids;
    return new Promise((resolve, reject) => {
      this.answers.set(id, ({ result, error }) =>
        error === undefined ? resolve(result as T) : reject(new Error(error.message)),
      );
      this.write({ id, method, params });
    });
  }

  async start(): Promise<void> {
    await this.ask("initialize", {
      processId: process.pid,
      rootUri: pathToFileURL(this.folder).href,
      capabilities: { textDocument: { completion: { completionItem: {} }, hover: { contentFormat: ["plaintext"] } } },
    });
    this.write({ method: "initialized", params: {} });
    // Nothing is fetched from the schema store.
    this.write({
      method: "workspace/didChangeConfiguration",
      params: { settings: { yaml: { schemaStore: { enable: false }, validate: true, completion: true, hover: true } } },
    });
  }
  /** Opens a file in the folder. Resolves to its diagnostics, as `line: message`, from line 1. */
  async marks(name: string, text: string): Promise<string[]> {
    const uri = this.open(name, text);
    const found = await eventually(
      () => this.diagnostics.get(uri),
      () => "the server said nothing",
    );
    return found.map(({ message, range }) => `${range.start.line + 1}: ${message}`);
  }
  private open(name: string, text: string): string {
    const path = join(this.folder, name);
    writeFileSync(path, text);
    const uri = pathToFileURL(path).href;
    this.write({
      method: "textDocument/didOpen",
      params: { textDocument: { uri, languageId: "yaml", version: 1, text } },
    });
    return uri;
  }
  /** @param text `|` marks the cursor */
  async complete(name: string, text: string): Promise<string[]> {
    const { uri, position } = this.cursor(name, text);
    const { items } = await this.ask<{ items: { label: string }[] }>("textDocument/completion", {
      textDocument: { uri },
      position,
    });
    return items.map(({ label }) => label);
  }
  async hover(name: string, text: string): Promise<string> {
    const { uri, position } = this.cursor(name, text);
    const answer = await this.ask<{ contents: string | { value: string } } | null>("textDocument/hover", {
      textDocument: { uri },
      position,
    });
    return answer === null ? "" : typeof answer.contents === "string" ? answer.contents : answer.contents.value;
  }
  private cursor(name: string, text: string): { uri: string; position: { line: number; character: number } } {
    const before = text.slice(0, text.indexOf("|")).split("\n");
    return {
      uri: this.open(name, text.replace("|", "")),
      position: { line: before.length - 1, character: before.at(-1)?.length ?? 0 },
    };
  }
  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.child.on("exit", () => resolve());
      this.child.kill("SIGKILL");
    });
  }
}

describe("an editor with the YAML language server", () => {
  let folder: string;
  let editor: Editor;
  before(async () => {
    folder = temporaryFolder("assent-editor-");
    for (const name of ["policy", "policy-test", "config"] as const)
      writeFileSync(join(folder, `${name}.schema.json`), renderEditorSchema(name, {}));
    editor = new Editor(folder);
    await editor.start();
  });
  after(async () => {
    await editor.stop();
    rmSync(folder, { recursive: true });
  });
  const under = (schema: string, text: string): string =>
    `# yaml-language-server: $schema=./${schema}.schema.json\n${text}`;

  test("reports nothing in a valid policy, test and configuration", async () => {
    assert.deepEqual(
      await editor.marks(
        "good.yaml",
        under(
          "policy",
          "policy: p\nrules:\n  - { name: r, effect: allow }\nlimits:\n  - { name: l, count: 3, window: 1h }\n",
        ),
      ),
      [],
    );
    assert.deepEqual(
      await editor.marks(
        "good_test.yaml",
        under(
          "policy-test",
          "now: 2026-01-15T10:00:00Z\ncases:\n  - { name: c, action: { agent_id: a, tool: t, operation: o }, used: { l: 2 }, expect: { effect: allow } }\n",
        ),
      ),
      [],
    );
    assert.deepEqual(
      await editor.marks(
        "assent.yaml",
        under(
          "config",
          "server:\n  port: ${PORT:-8000}\nchannels:\n  finance:\n    notifier: notify-email\n    people:\n      - { owner: ada, to: ada@example.com }\n",
        ),
      ),
      [],
    );
  });

  test("reports what the service would reject, at its line", async () => {
    const [effect, key, ...more] = await editor.marks(
      "bad.yaml",
      under("policy", "policy: p\nrules:\n  - name: r\n    effect: alow\n    reson: x\n"),
    );
    assert.match(effect ?? "", /^5: .*allow/);
    assert.match(key ?? "", /^6: .*reson/);
    assert.deepEqual(more, []);
    assert.match(
      (
        await editor.marks(
          "bad_test.yaml",
          under(
            "policy-test",
            "now: 2026-01-15T10:00:00Z\ncases:\n  - { name: c, action: { agent_id: a, tool: t }, expect: { effect: allow } }\n",
          ),
        )
      ).join(),
      /^4: .*operation/,
    );
    assert.match((await editor.marks("bad-assent.yaml", under("config", "server:\n  port: eighty\n"))).join(), /^3: /);
  });

  test("completes keys and values, and explains them", async () => {
    const keys = await editor.complete("keys.yaml", under("policy", "policy: p\nrules:\n  - name: r\n    |"));
    for (const key of ["tool", "operation", "when", "effect", "risk", "approval"])
      assert.ok(keys.includes(key), `${key} is not among ${keys.join(", ")}`);
    const effects = await editor.complete(
      "effects.yaml",
      under("policy", "policy: p\nrules:\n  - name: r\n    effect: |"),
    );
    for (const effect of ["allow", "deny", "require_approval"]) assert.ok(effects.includes(effect), effects.join(", "));
    assert.match(
      await editor.hover("hover.yaml", under("policy", "policy: p\nrules:\n  - name: r\n    ef|fect: allow\n")),
      /Decision if the rule matches/,
    );
    assert.match(
      await editor.hover("hover-assent.yaml", under("config", "idempotency:\n  keep_|days: 30\n")),
      /Deletes idempotency keys/,
    );
  });
});
