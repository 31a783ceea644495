/** Notes on actions: people write them and take them back, and the ledger keeps that they did. */
import {
  toActor,
  confirmWithScope,
  defineErrors,
  definePlugin,
  defineRoute,
  defineScopes,
  canSee,
  Refusal,
  sha256Hex,
  toRfc3339,
  Type,
  utf8,
  type Host,
  type Static,
  type Visibility,
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
        await visibleAction(host.storage, id, credential.visibility);
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
        json: await host.ledger.transact(async (tx) => {
          const who = await confirmWithScope(tx, credential, scopes.write);
          const action = await visibleAction(tx, params.id, who.visibility);
          const documents = host.documents.within(tx);
          if ((await documents.list({ prefix: `${action.id}/`, limit: MOST })).length === MOST)
            throw new Refusal(errors.FULL, `the action has ${MOST} notes already; remove one first`);
          const note = { id: host.newId(), text, salt: crypto.randomUUID(), by: who.principal };
          await documents.put(`${action.id}/${note.id}`, note, null);
          const data = { change: "added", note: note.id, commitment: sha256Hex(utf8(note.salt + text)) };
          tx.record({ ...entry(action, tx.now), data, by: toActor(who.key, who.principal) }, action.submitted_by);
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
        json: await host.ledger.transact(async (tx) => {
          const who = await confirmWithScope(tx, credential, scopes.write);
          const action = await visibleAction(tx, params.id, who.visibility);
          const documents = host.documents.within(tx);
          const kept = await documents.get(`${action.id}/${params.note}`);
          const note = kept?.value as Static<typeof Note> | undefined;
          if (kept === null || note?.by !== who.principal)
            throw new Refusal(errors.NOT_FOUND, `you have written no note ${params.note} on this action`);
          await documents.delete(kept.key, kept.version);
          const data = { change: "removed", note: note.id, commitment: sha256Hex(utf8(note.salt + note.text)) };
          tx.record({ ...entry(action, tx.now), data, by: toActor(who.key, who.principal) }, action.submitted_by);
          return note;
        }),
      }),
    }),
  ];
}

async function visibleAction(reader: Pick<Host["storage"], "action">, id: string, visibility: Visibility) {
  const row = await reader.action(id);
  if (row === null || !canSee(visibility, row)) throw new Refusal("ACTION_NOT_FOUND", `there is no action ${id}`);
  return row;
}

/** Who may see the action may see the entry. */
function entry({ id, agent_id }: { id: string; agent_id: string }, now: number) {
  return { type: "notes:change" as const, v: 1, at: toRfc3339(now), action_id: id, agent_id };
}
