/**
 * The page to which MCP clients send a user, who allows the client to act for them, and the list of such clients.
 */
import {
  Ago,
  type Api,
  Badge,
  currentMe,
  EmptyState,
  ErrorNotice,
  hasScope,
  isUserSession,
  LoadedPage,
  MarkedValue,
  Notice,
  Page,
  type PartTexts,
  PersonLink,
  request,
  Table,
  useLoad,
  useState,
  useSubmit,
} from "../../console/app/kit.ts";

type App = Api["GET /v1/oauth/apps"]["response"]["apps"][number];

const TEXTS = {
  title: "Connected apps",
  none: "No app is connected.",
  noneHelp: "An MCP client that reaches a proxy of this service asks its user to connect it.",
  end: "Disconnect",
} as const;

export function Apps() {
  const loaded = useLoad((signal) => request("GET /v1/oauth/apps", { signal }), []);
  return (
    <LoadedPage title={TEXTS.title} what="connected apps" loaded={loaded}>
      {({ apps }) =>
        apps.length === 0 ? (
          <EmptyState text={TEXTS.none}>
            <p>{TEXTS.noneHelp}</p>
          </EmptyState>
        ) : (
          <Table label={TEXTS.title} head={["App", "User", "Agent", "Last token", ""]}>
            {apps.map((app) => (
              <Row key={app.id} app={app} onEnd={loaded.reload} />
            ))}
          </Table>
        )
      }
    </LoadedPage>
  );
}

function Row({ app, onEnd }: { app: App; onEnd(): void }) {
  const { error, isBusy, submit } = useSubmit(async () => {
    await request("DELETE /v1/oauth/apps/{id}", { path: [app.id] });
    onEnd();
  });
  const isOver = app.ended_at !== null || Date.parse(app.expires_at) <= Date.now();
  const mayEnd = !isOver && (hasScope("users:manage") || app.user === currentMe()?.principal);
  return (
    <tr>
      <td>
        <strong>
          <MarkedValue value={app.client} />
        </strong>{" "}
        {isOver ? <Badge value="ended" label={app.ended_at === null ? "expired" : "disconnected"} /> : null}
        <br />
        <span class="quiet">
          <MarkedValue value={app.resource} />
        </span>
      </td>
      <td data-label="User">
        <PersonLink principal={app.user} />
      </td>
      <td data-label="Agent">
        <MarkedValue value={app.agent_id} />
      </td>
      <td data-label="Last token">
        <Ago at={app.refreshed_at} />
      </td>
      <td>
        {mayEnd ? (
          <form onSubmit={submit}>
            <button type="submit" class="small" disabled={isBusy}>
              {TEXTS.end}
            </button>
          </form>
        ) : null}
        <ErrorNotice error={error} />
      </td>
    </tr>
  );
}

const CONNECT_TEXTS = {
  title: "Connect an app",
  session: "Sign in as a person to connect an app. An API key cannot.",
  asks: " wants to use tools for you.",
  help: "Allow it only if you just started this in that app. Policies decide on each of its calls, and you cannot approve them yourself. You can disconnect it at any time.",
  name: "The app chose its name itself.",
  through: "Through",
  agent: "As the agent",
  returns: "Then returns to",
  allow: "Allow",
  refuse: "Refuse",
} as const;

const PARAMETERS = ["response_type", "code_challenge", "code_challenge_method", "state", "resource", "scope"] as const;

export function ConnectApp({ query }: { query: URLSearchParams }) {
  const given = PARAMETERS.flatMap((name) => (query.get(name) ? [[name, query.get(name)]] : []));
  const body = {
    client_id: query.get("client_id") ?? "",
    redirect_uri: query.get("redirect_uri") ?? "",
    ...(Object.fromEntries(given) as Partial<Record<(typeof PARAMETERS)[number], string>>),
  };
  return isUserSession() ? (
    <Request body={body} />
  ) : (
    <Page title={CONNECT_TEXTS.title}>
      <Notice kind="bad">{CONNECT_TEXTS.session}</Notice>
    </Page>
  );
}

function Request({ body }: { body: { client_id: string; redirect_uri: string } }) {
  const [answer, setAnswer] = useState<"allow" | "refuse">("allow");
  const send = (answer: "allow" | "refuse" | null, signal?: AbortSignal) =>
    request("POST /v1/oauth/consent", { body: { ...body, answer }, ...(signal === undefined ? {} : { signal }) });
  const loaded = useLoad((signal) => send(null, signal), [JSON.stringify(body)]);
  const { error, isBusy, submit } = useSubmit(async () => {
    const { redirect } = await send(answer);
    if (redirect !== null) location.assign(redirect);
  });
  return (
    <LoadedPage title={CONNECT_TEXTS.title} what="the request" loaded={loaded}>
      {({ client, resource, agent_id, returns_to }) => (
        <form onSubmit={submit}>
          <p>
            <strong>
              <MarkedValue value={client} />
            </strong>
            {CONNECT_TEXTS.asks} <span class="quiet">{CONNECT_TEXTS.name}</span>
          </p>
          <dl class="facts">
            <dt>{CONNECT_TEXTS.through}</dt>
            <dd>
              <MarkedValue value={resource} />
            </dd>
            <dt>{CONNECT_TEXTS.agent}</dt>
            <dd>
              <MarkedValue value={agent_id} />
            </dd>
            <dt>{CONNECT_TEXTS.returns}</dt>
            <dd>
              <MarkedValue value={returns_to} />
            </dd>
          </dl>
          <p>{CONNECT_TEXTS.help}</p>
          <ErrorNotice error={error} />
          <div class="buttons">
            <button type="submit" class="primary" disabled={isBusy} onClick={() => setAnswer("allow")}>
              {CONNECT_TEXTS.allow}
            </button>
            <button type="submit" disabled={isBusy} onClick={() => setAnswer("refuse")}>
              {CONNECT_TEXTS.refuse}
            </button>
          </div>
        </form>
      )}
    </LoadedPage>
  );
}

const SENTENCES: Readonly<Record<string, string>> = {
  granted: "connected",
  refreshed: "got another access token",
  ended: "disconnected",
};

function describeChange(entry: Record<string, unknown>) {
  const { change, client, reason } = entry["data"] as { change: string; client: { name: string }; reason: string };
  return <MarkedValue value={`${client.name} ${SENTENCES[change] ?? change}${reason === null ? "" : `: ${reason}`}`} />;
}

export const texts: PartTexts = {
  entries: { "oauth:grant": { summarize: describeChange, describe: describeChange } },
};
