# docker build -f deploy/docker/deno.Dockerfile -t assent:deno .
FROM node:24.14.0-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc tsconfig.json tsconfig.build.json tsconfig.console.json ./
RUN npm ci --no-audit --no-fund
COPY .ci ./.ci
COPY src ./src
COPY plugins ./plugins
COPY clients ./clients
COPY policies ./policies
COPY docs/errors.md ./docs/errors.md
RUN npm run build && npm prune --omit=dev --no-audit --no-fund

FROM denoland/deno:debian-2.9.6
# git and ssh, to sync policies from a repository.
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates openssh-client && rm -rf /var/lib/apt/lists/*
ENV DENO_NO_UPDATE_CHECK=1 DENO_DIR=/tmp/deno ASSENT_HOST=0.0.0.0 ASSENT_PORT=8000 ASSENT_DATA=/data ASSENT_POLICIES=/policies
# Many people read the log of a container, so the first keys go to a file in the data folder.
ENV ASSENT_FIRST_KEYS=file
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json LICENSE ./
# Default policies. Mount your own over them.
COPY policies /policies
RUN mkdir /data && chown 10001:10001 /data && chmod 700 /data
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["deno", "eval", "const answer = await fetch(`http://127.0.0.1:${Deno.env.get('ASSENT_PORT')}/readyz`).catch(() => ({ ok: false })); Deno.exit(answer.ok ? 0 : 1)"]
# The permissions of the task in deno.json, for this image's folders, and git.
CMD ["deno", "run", "--no-prompt", "--allow-net", "--allow-read=/app,/data,/policies,/run/secrets", "--allow-write=/data", "--allow-env", "--allow-sys=uid", "--allow-run=git", "dist/src/cli/bin.js", "serve"]
