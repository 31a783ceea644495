/** The exports of the package: the runtime, its configuration, and the API for plugins. */
export { createRuntime, type Runtime, type RuntimeOptions } from "./runtime/runtime.ts";
export { ConfigError, defaultConfig, loadConfig, type Config } from "./config/index.ts";
export { definePlugin, type Contributions, type Plugin } from "./plugin.ts";
export type { CoreHost as Host } from "./contract/core-host.ts";
export { Refusal, type ErrorCode } from "./contract/errors.ts";
export type { Reply, RequestContext, Route } from "./contract/resource.ts";
export type { Storage, StorageTransaction } from "./contract/storage.ts";
export { createLogger } from "./serve/log.ts";
