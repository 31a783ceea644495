# docker build -f deploy/docker/bun.Dockerfile -t assent:bun .
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

FROM oven/bun:1.4.5-slim
# git and ssh, to sync policies from a repository.
RUN apt-get update && apt-get install -y --no-install-recommends git ca-certificates openssh-client && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production ASSENT_HOST=0.0.0.0 ASSENT_PORT=8000 ASSENT_DATA=/data ASSENT_POLICIES=/policies
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
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["bun", "-e", "fetch(`http://127.0.0.1:${process.env.ASSENT_PORT}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["bun", "dist/src/cli/bin.js", "serve"]
