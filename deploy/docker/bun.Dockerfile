# docker build -f deploy/docker/bun.Dockerfile -t assent:bun .
FROM node:20.20.2-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM oven/bun:1.4.5-slim
ENV NODE_ENV=production ASSENT_HOST=0.0.0.0 ASSENT_PORT=8000 ASSENT_DATA=/data ASSENT_POLICIES=/policies
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE ./
COPY src ./src
COPY plugins ./plugins
# A volume or a bind mount takes the place of these.
COPY policies /policies
RUN mkdir /data && chown 10001:10001 /data && chmod 700 /data
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["bun", "-e", "fetch(`http://127.0.0.1:${process.env.ASSENT_PORT}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["bun", "src/cli/assent.mjs", "serve"]
