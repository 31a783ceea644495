/** `assent claim`: claims a pending action, hands it over, releases it, and lists claims. */
import {
  type Command,
  createClient,
  createPrivilegedClient,
  EXIT_CODES,
  type Output,
  parseArguments,
  printJson,
  toPrintable,
  usageError,
  withNames,
  withServiceErrors,
} from "../../src/command.ts";

interface ClaimView {
  action_id: string;
  holder: string;
  claimed_at: string;
  until: string;
  claimed_by: string;
}

export const claim: Command = {
  help: `usage: assent claim ID [--to NAME] [--take-over] [--json]
       assent claim ID --release
       assent claim --list [--json]

Says that you are looking at a pending action, so that other approvers can look at another one. A claim decides nothing:
everyone can still vote. It ends when the action settles, when its holder votes, and by itself after some minutes.

  --to NAME     hand it to this user, who must be able to approve the action: the name or the id
  --take-over   replace the claim of someone else
  --release     end your claim
  --list        list claims
  --json        print JSON

The key needs the scope approvals:decide, and must be able to approve the action.

examples:
  assent claim 019346a0-0000-7000-8000-000000000000
  assent claim 019346a0-0000-7000-8000-000000000000 --to "Ada Lovelace"
`,
  async run(args, io) {
    const { values, positionals } = parseArguments(args, {
      to: { type: "string" },
      "take-over": { type: "boolean" },
      release: { type: "boolean" },
      list: { type: "boolean" },
      json: { type: "boolean" },
    });
    const { to, release = false, list = false, json = false, "take-over": takeOver = false } = values;
    const [id, ...more] = positionals;
    if (more.length > 0) throw usageError(`unexpected argument "${more.join(" ")}"`);
    if (list) {
      if (id !== undefined || to !== undefined || release || takeOver) throw usageError("--list takes only --json");
      return listClaims(io, json);
    }
    if (id === undefined) throw usageError("assent claim takes the id of an action, or --list");
    if (release && (to !== undefined || takeOver || json)) throw usageError("--release takes no other options");
    const service = await createPrivilegedClient();
    const path = `/v1/actions/${encodeURIComponent(id)}`;
    if (release) {
      await withServiceErrors(() => service.call("POST", `${path}/release-claim`, {}));
      io.out("released");
      return EXIT_CODES.ok;
    }
    const user = to === undefined ? null : await withServiceErrors(() => findUser(service, path, to));
    const body = { ...(user === null ? {} : { user_id: user }), ...(takeOver ? { take_over: true } : {}) };
    const made = await withServiceErrors(() => service.call<ClaimView>("POST", `${path}/claim`, body));
    if (json) printJson(io, made);
    else show(io, await withNames(service, made));
    return EXIT_CODES.ok;
  },
};

type Service = Awaited<ReturnType<typeof createPrivilegedClient>>;

/** Returns the id of the user with exactly this name or id. The service adds the id to a name that several users have. */
async function findUser(service: Service, path: string, to: string): Promise<string> {
  if (/^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/.test(to)) return to;
  const query = `?name=${encodeURIComponent(to)}`;
  const { users } = await service.call<{ users: { id: string; name: string }[] }>("GET", `${path}/approvers${query}`);
  const [user, ...others] = users.filter(({ name }) => name.toLowerCase() === to.toLowerCase());
  if (user !== undefined && others.length === 0) return user.id;
  if (users.length === 0) throw usageError(`no other user named "${to}" can approve this action`);
  const listed = users.map(({ id, name }) => `${toPrintable(name)}: ${id}`).join(", ");
  throw usageError(`"${to}" is not exactly the name of one user; give the id of the user (${listed})`);
}

async function listClaims(io: Output, json: boolean): Promise<number> {
  const service = await createClient();
  const page = await withServiceErrors(() =>
    service.call<{ claims: ClaimView[]; next_cursor: string | null }>("GET", "/v1/claims?limit=1000"),
  );
  if (json) printJson(io, page);
  else if (page.claims.length === 0) io.out("no request is claimed");
  else for (const each of await withNames(service, page.claims)) show(io, each);
  return EXIT_CODES.ok;
}

function show(io: Output, { action_id, holder, until }: ClaimView): void {
  io.out(`${toPrintable(holder)} is looking at ${action_id} until ${until}`);
}
