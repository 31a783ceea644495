/** The page "Denials" of the console: the denials of the last 24 hours. */
import { EmptyState, fetchJson, h, LoadedPage, MarkedValue, Table, useLoad } from "assent/console";

function Denials() {
  const loaded = useLoad((signal) => fetchJson("/v1/denials?hours=24", { signal }), []);
  return h(LoadedPage, { title: "Denials", what: "denials", loaded }, ({ denials }) =>
    denials.length === 0
      ? h(EmptyState, { text: "No policy denied an action in the last 24 hours." })
      : h(Table, { label: "Denials", head: ["Agent", "Policy", "Rule", "Count"] }, denials.map(renderRow)),
  );
}

function renderRow({ agent_id, policy, rule, reason_code, count }) {
  return h("tr", { key: `${agent_id} ${policy} ${rule} ${reason_code}` }, [
    ...[agent_id, policy ?? reason_code, rule].map((value) => h("td", null, h(MarkedValue, { value }))),
    h("td", null, count),
  ]);
}

export default {
  pages: [
    {
      name: "denials",
      title: "Denials",
      icon: "chart",
      section: "Record",
      order: 15,
      scopes: ["analytics:read"],
      load: async () => Denials,
    },
  ],
};
