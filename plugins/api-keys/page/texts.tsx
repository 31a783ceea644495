/** Texts of API keys on pages of other features. */
import { type EntryOf, MarkedValue, type PartTexts } from "../../console/app/kit.ts";

export const texts: PartTexts = {
  entries: {
    api_key: {
      summarize(entry) {
        const { key, change } = entry as unknown as EntryOf<"api_key">;
        return <MarkedValue value={`API key ${key.name} ${change}`} />;
      },
      describe: (entry) => <MarkedValue value={(entry as unknown as EntryOf<"api_key">).key.name} />,
    },
  },
  scopes: { "keys:manage": "create and revoke keys" },
};
