/** An Assent storage on libSQL: a file, sqld, or Turso. */
import { definePlugin, Type } from "assent/plugin";
import { libsqlStorage } from "./storage.ts";

export default definePlugin({
  name: "storage-libsql",
  options: Type.Object(
    { url: Type.String({ minLength: 1 }), auth_token: Type.Optional(Type.String({ minLength: 1 })) },
    { additionalProperties: false },
  ),
  storage: (_host, { url, auth_token }) =>
    libsqlStorage({ url, ...(auth_token === undefined ? {} : { authToken: auth_token }) }),
});
