/** Notes on actions: people write and retract them, and the ledger records both. */
import { createHash, randomUUID } from "node:crypto";
import {
  defineErrors,
  definePlugin,
  defineRoute,
  defineScopes,
  Refusal,
  Type,
  type Host,
  type Static,
} from "assent/plugin";

const MOST = 50;
const scopes = defineScopes("notes", ["read", "write"]);
const errors = defineErrors("notes", {
  FULL: [409, "The action takes no more notes"],
  NOT_FOUND: [404, "No such note"],
});

const Note = Type.Object({ id: Type.String(), text: Type.String(), salt: Type.String(), by: Type.String() });
const Notes = Type.Object({ notes: Type.Array(Note) }, { additionalProperties: false });
const Body = Type.Object({ text: Type.String({ minLength: 1, maxLength: 2000 }) }, { additionalProperties: false });
const Entry = Type.Object(
  {
    change: Type.Union([Type.Literal("added"), Type.Literal("removed")]),
    note: Type.String(),
    commitment: Type.String({ description: "SHA-256 of the salt and the text." }),
  },
  { additionalProperties: false },
);

export default definePlugin({
  name: "notes",
  scopes,
  errors,
  entries: { "notes:change": Entry },
  command: {
    summary: "print the notes on an action",
    help: "usage: assent notes ACTION",
    async run([action, ...more], { out, err, call }) {
      if (action === undefined || more.length > 0) return (err("usage: assent notes ACTION"), 2);
      const { notes } = (await call("GET", `/v1/actions/${action}/notes`)) as Static<typeof Notes>;
      for (const { by, text } of notes) out(`${by}: ${text}`);
      return 0;
    },
  },
  setup: (host) => ({ routes: routes(host) }),
});

function routes(host: Host) {
  const shared = { tag: "notes", errors: ["ACTION_NOT_FOUND"] as const };
  return [
    defineRoute({
      ...shared,
      method: "GET",
      path: "/v1/actions/:id/notes",
      summary: "Notes on an action, oldest first",
      scope: scopes.read,
      responses: { 200: { description: "The notes.", schema: Notes } },
      async handle({ params: { id }, credential }) {
        await host.actions(credential).get(id);
        const notes = await host.documents.list({ prefix: `${id}/` });
        return { status: 200, json: { notes: notes.map(({ value }) => value) } };
      },
    }),
    defineRoute({
      ...shared,
      method: "POST",
      path: "/v1/actions/:id/notes",
      summary: "Write a note on an action",
      scope: scopes.write,
      body: Body,
      responses: { 201: { description: "The note.", schema: Note } },
      errors: [...shared.errors, errors.FULL],
      handle: async ({ params, body: { text }, credential }) => ({
        status: 201,
        json: await host.transact(credential, async ({ caller, action: readAction, documents, record }) => {
          const action = await readAction(params.id);
          if ((await documents.list({ prefix: `${action.id}/`, limit: MOST })).length === MOST)
            throw new Refusal(errors.FULL, `the action has ${MOST} notes already; remove one first`);
          const note = { id: host.newId(), text, salt: randomUUID(), by: caller.principal };
          await documents.put(`${action.id}/${note.id}`, note, null);
          record({ type: "notes:change", action, data: { change: "added", note: note.id, commitment: commit(note) } });
          return note;
        }),
      }),
    }),
    defineRoute({
      ...shared,
      method: "DELETE",
      path: "/v1/actions/:id/notes/:note",
      summary: "Take a note back",
      scope: scopes.write,
      responses: { 200: { description: "The note as it was.", schema: Note } },
      errors: [...shared.errors, errors.NOT_FOUND],
      handle: async ({ params, credential }) => ({
        status: 200,
        json: await host.transact(credential, async ({ caller, action: readAction, documents, record }) => {
          const action = await readAction(params.id);
          const kept = await documents.get(`${action.id}/${params.note}`);
          const note = kept?.value as Static<typeof Note> | undefined;
          if (kept === null || note?.by !== caller.principal)
            throw new Refusal(errors.NOT_FOUND, `you have written no note ${params.note} on this action`);
          await documents.delete(kept.key, kept.version);
          record({
            type: "notes:change",
            action,
            data: { change: "removed", note: note.id, commitment: commit(note) },
          });
          return note;
        }),
      }),
    }),
  ];
}

/** Returns the hash that the ledger records instead of the text, so that the text can be erased. */
function commit({ salt, text }: { salt: string; text: string }): string {
  return createHash("sha256")
    .update(salt + text)
    .digest("hex");
}
