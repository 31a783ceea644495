# docker build -f deploy/docker/deno.Dockerfile -t assent:deno .
FROM node:20.20.2-bookworm-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund

FROM denoland/deno:debian-2.9.6
ENV DENO_NO_UPDATE_CHECK=1 DENO_DIR=/tmp/deno ASSENT_HOST=0.0.0.0 ASSENT_PORT=8000 ASSENT_DATA=/data ASSENT_POLICIES=/policies
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json deno.json LICENSE ./
COPY src ./src
COPY plugins ./plugins
# A volume or a bind mount takes the place of these.
COPY policies /policies
RUN mkdir /data && chown 10001:10001 /data && chmod 700 /data
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s CMD ["deno", "eval", "const answer = await fetch(`http://127.0.0.1:${Deno.env.get('ASSENT_PORT')}/readyz`).catch(() => ({ ok: false })); Deno.exit(answer.ok ? 0 : 1)"]
# The permissions of deno.json's task, for the folders of this image.
CMD ["deno", "run", "--no-prompt", "--allow-net", "--allow-read=/app,/data,/policies,/run/secrets", "--allow-write=/data", "--allow-env", "--allow-sys=uid", "src/cli/main.ts", "serve"]
