/** Machine reviewers: calls the programs that other plugins contribute as `reviewers`, and applies their answers. */
import { defineCorePlugin } from "../../src/core.ts";
import { ReviewWorker } from "./worker.ts";

export default defineCorePlugin({
  name: "reviewers",
  needs: ["actions"],
  setup(host) {
    const worker = new ReviewWorker(host);
    return { start: async () => worker.start(), stop: () => worker.stop() };
  },
});
