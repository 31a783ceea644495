/** The page of an evidence pack. Verifies the selected files and shows who approved what, and on what grounds. */
import { type PackReport, type Vote, verifyPack } from "../verify-pack.ts";

/** Maximum number of votes that the page displays at a time. The search also finds votes that are not displayed. */
const MAX_ROWS = 200;

const filesInput = document.querySelector<HTMLInputElement>("#files");
const keyInput = document.querySelector<HTMLInputElement>("#vkey");
const result = document.querySelector<HTMLElement>("#result");

// Clear the selection. A browser does not report a change if someone selects the same files again after altering them.
filesInput?.addEventListener("click", () => {
  runs++;
  filesInput.value = "";
  result?.replaceChildren();
});
filesInput?.addEventListener("change", () => void run());
keyInput?.addEventListener("change", () => void run());

/** Number of verifications that were started. The page displays only the result of the last one. */
let runs = 0;

async function run(): Promise<void> {
  const number = ++runs;
  const selected = [...(filesInput?.files ?? [])];
  if (selected.length === 0 || result === null) return;
  result.replaceChildren(element("p", "Verifying …"));
  const files = new Map(selected.map((file) => [file.name, { stream: () => readPieces(file.stream()) }] as const));
  const report = await verifyPack(files, keyInput?.value.trim() ?? "");
  if (number !== runs) return;
  try {
    result.replaceChildren(...render(report));
  } catch (error) {
    // The form of some files, such as controls.json, is not checked.
    result.replaceChildren(renderRefused([`the pack cannot be displayed: ${String(error)}`]));
  }
}

async function* readPieces(stream: ReadableStream<Uint8Array>): AsyncIterable<Uint8Array> {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

function render(report: PackReport): HTMLElement[] {
  const { faults, manifest } = report;
  if (faults.length > 0 || manifest === null) return [renderRefused(faults)];
  return [renderVerified(report), ...renderVotes(report.votes), renderPolicies(report), renderControls(report)];
}

function renderRefused(faults: readonly string[]): HTMLElement {
  return createBox("bad", [
    element("h2", "Not verified"),
    element("p", "Do not rely on this pack."),
    list(faults.map((fault) => [fault])),
  ]);
}

function renderVerified(report: PackReport): HTMLElement {
  const { counts, vkey, witnesses, digest, manifest } = report;
  return createBox("good", [
    element("h2", "Verified"),
    element(
      "p",
      `${counts.entries} entries and ${counts.actions} actions from ${manifest?.from ?? ""} to ${manifest?.to ?? ""}. All entries of the window are here and unchanged, and the contents of the actions are what the entries commit to.`,
    ),
    list([
      [`Log: ${manifest?.origin ?? ""}`],
      [
        report.isVkeyKnown
          ? `Signed by the key ${vkey}, of the log that you know.`
          : `Signed by the key ${vkey}. Not checked: whose key this is. Compare it with the key that you know.`,
      ],
      ...(witnesses.length === 0 ? [["No witness cosigned the checkpoint."]] : []),
      ...witnesses.map(({ name, at, vkey: key, isKnown }) => [
        isKnown
          ? `Cosigned by ${name} at ${at} with the key ${key}, which you know.`
          : `Not checked: a cosignature with the key ${key}, which the pack names, and which calls itself ${name}, at ${at}. Anyone can create such a key. Enter the witness's own key above.`,
      ]),
      [`${counts.signedVotes} votes are signed with passkeys, which was verified.`],
      [`${counts.erased} actions were erased, as their entries record.`],
      ...(report.isWindowOpen
        ? [
            [
              `The checkpoint ends with the last entry of the pack. The pack cannot show whether the log had more entries until ${manifest?.to ?? ""}.`,
            ],
          ]
        : []),
      ["Not checked: approvals.csv, people.csv, and what is marked below."],
      [`Digest of the pack: ${digest}`],
    ]),
  ]);
}

function renderVotes(votes: readonly Vote[]): HTMLElement[] {
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Approver, agent, tool, parameter or id";
  search.setAttribute("aria-label", "Search approvals");
  const rows = document.createElement("div");
  const texts = votes.map((vote) => JSON.stringify(vote).toLowerCase());
  const show = (): void => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = votes.filter((_, i) => words.every((word) => (texts[i] as string).includes(word)));
    const more = found.length > MAX_ROWS ? ` The first ${MAX_ROWS} are shown.` : "";
    rows.replaceChildren(
      element("p", `${found.length} of ${votes.length} votes.${more}`),
      table(["When", "Who", "What", "On what grounds", "What they saw"], found.slice(0, MAX_ROWS).map(renderVote)),
    );
  };
  search.addEventListener("input", show);
  show();
  return [element("h2", "Who approved what, on what grounds, and what they saw"), search, rows];
}

function renderVote(vote: Vote): (string | HTMLElement)[][] {
  const { at, seq, verdict, approver, name, comment, isSigned, on_behalf_of, break_glass, decision, action } = vote;
  const voter = [
    element("strong", name?.text ?? approver),
    createNote(approver),
    ...(name === null
      ? []
      : [createNote(`name in entry ${name.seq}; not checked: whether a later entry before the window changed it`)]),
    createNote(isSigned ? "signed with a passkey" : "not signed by the approver"),
    ...(on_behalf_of === null ? [] : [createNote(`on behalf of ${on_behalf_of}`)]),
    ...(break_glass ? [createNote("in an emergency, without other approvers")] : []),
  ];
  const grounds = [
    ...(decision === null
      ? []
      : [
          element("div", decision.reason),
          createNote(
            `policy ${decision.policy ?? "none"}, rule ${decision.rule ?? "none"}, risk ${decision.risk_level ?? "none"}`,
          ),
          createNote(
            decision.isChecked
              ? `entry ${decision.seq}`
              : `entry ${decision.seq}; not checked: whether a later decision before the window replaced it`,
          ),
        ]),
    ...(comment === null ? [] : [element("div", `“${comment}”`)]),
  ];
  return [
    [element("div", at), createNote(`entry ${seq}`)],
    voter,
    [
      element("strong", `${verdict === "approve" ? "approved" : "rejected"} ${action.tool} ${action.operation}`),
      createNote(`agent ${action.agent_id}`),
      createNote(`action ${action.id}, at the end of the window: ${action.outcome}`),
    ],
    grounds,
    renderSeen(vote),
  ];
}

function renderSeen({ seen, erased_at }: Vote): (string | HTMLElement)[] {
  if (seen === null) return [erased_at === null ? "not in the pack" : `erased at ${erased_at}`];
  return [
    ...(seen.preview === null ? [] : [element("strong", seen.preview)]),
    ...(seen.isPreviewMissing ? [createNote("the preview that the approver saw is not in the pack")] : []),
    renderContent(seen),
    ...(seen.isQuestionErased ? [createNote("questions before the vote were erased")] : []),
    ...seen.questions.flatMap(({ question, answer }) => [
      element("div", `Asked: ${question}`),
      element("div", `Answer: ${answer ?? "none"}`),
    ]),
  ];
}

/** Renders the parameters and the context, folded if a preview names what matters. */
function renderContent({ preview, params, context }: NonNullable<Vote["seen"]>): HTMLElement {
  const details = document.createElement("details");
  details.open = preview === null;
  details.append(element("summary", "Parameters"), element("pre", JSON.stringify({ params, context }, null, 1)));
  return details;
}

function renderPolicies({ policySets }: PackReport): HTMLElement {
  const section = document.createElement("section");
  section.append(
    element("h2", "Policies in force"),
    element("p", "Not checked: the order of the sets, and the changes from one set to the next."),
  );
  for (const { digest, document: definition, changes } of policySets) {
    const details = document.createElement("details");
    details.append(element("summary", digest));
    if (changes.length > 0) details.append(element("pre", changes.join("\n")));
    details.append(element("pre", JSON.stringify(definition, null, 1)));
    section.append(details);
  }
  return section;
}

function renderControls({ controls, byType }: PackReport): HTMLElement {
  const section = document.createElement("section");
  section.append(
    element("h2", "Controls"),
    element(
      "p",
      "Not checked: which records show which requirement. The numbers of entries are checked. Whether the requirement is met is for the auditor to judge.",
    ),
    table(
      ["Standard", "Control", "Records", "Entries of the window"],
      controls.map(({ standard, compared_with, control, url, subject, entries, files }) => [
        [standard, ...(compared_with === "text" ? [] : [createNote("compared with public summaries only")])],
        [link(control, url), element("div", subject)],
        [[...entries, ...files].join(", ")],
        [renderSeqs(entries.map((type) => [type, byType.get(type) ?? { count: 0, seqs: [] }] as const))],
      ]),
    ),
  );
  return section;
}

function renderSeqs(types: readonly (readonly [string, { count: number; seqs: number[] }])[]): HTMLElement {
  const details = document.createElement("details");
  details.append(element("summary", String(types.reduce((sum, [, { count }]) => sum + count, 0))));
  for (const [type, { count, seqs }] of types)
    if (count > 0) details.append(element("div", `${type}: ${seqs.join(", ")}${count > seqs.length ? ", …" : ""}`));
  return details;
}

function element(name: string, text: string): HTMLElement {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

/** Returns a link to another site. The page itself loads nothing from there. */
function link(text: string, url: string): HTMLElement {
  const made = document.createElement("a");
  made.textContent = text;
  // Allow only https, because anyone could have written the file.
  if (url.startsWith("https://")) Object.assign(made, { href: url, rel: "noopener noreferrer", target: "_blank" });
  return made;
}

function createNote(text: string): HTMLElement {
  const made = element("div", text);
  made.className = "quiet";
  return made;
}

function createBox(kind: "good" | "bad", children: readonly HTMLElement[]): HTMLElement {
  const made = document.createElement("section");
  made.className = kind;
  made.append(...children);
  return made;
}

function list(items: readonly (readonly (string | HTMLElement)[])[]): HTMLElement {
  const made = document.createElement("ul");
  for (const item of items) {
    const line = document.createElement("li");
    line.append(...item);
    made.append(line);
  }
  return made;
}

function table(head: readonly string[], rows: readonly (readonly (string | HTMLElement)[])[][]): HTMLElement {
  const made = document.createElement("table");
  const heading = made.createTHead().insertRow();
  for (const name of head) heading.append(element("th", name));
  const body = made.createTBody();
  for (const cells of rows) {
    const row = body.insertRow();
    for (const cell of cells) row.insertCell().append(...cell);
  }
  return made;
}
