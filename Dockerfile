# The images that docker-compose.yml uses: the server, its web server, and what builds the images of runners; and the edge of a cluster.
# The page at /. A tarball has it made; otherwise npm's registry is asked.
FROM node:22-trixie-slim AS page
WORKDIR /src
COPY nginx nginx
RUN bash -c 'project=/src && . nginx/setup/page.sh && make_page /page'

FROM debian:trixie-slim AS build
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends autoconf automake gcc libc6-dev make pkg-config \
      libarchive-dev libargon2-dev libcjose-dev libcurl4-openssl-dev libfcgi-dev libjansson-dev libseccomp-dev libssl-dev >/dev/null \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
COPY --from=page /page build/page
RUN autoreconf -fi && cd build \
 && ../configure --prefix=/usr --sysconfdir=/etc --libexecdir=/usr/libexec \
 && make -j"$(nproc)" && make install-strip DESTDIR=/installed

FROM debian:trixie-slim AS nginx
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends nginx-light >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /installed/usr/share/sandcgi/page /usr/share/sandcgi/page
# What its configuration is made from, by the server's container: when an upgrade changes it, Compose starts nginx anew.
COPY --from=build /installed/usr/share/sandcgi/nginx /usr/share/sandcgi/nginx
COPY --from=build /installed/usr/libexec/sandcgi/nginx /usr/libexec/sandcgi/nginx
ENTRYPOINT ["nginx", "-c", "/etc/sandcgi/nginx/container.conf", "-g", "daemon off;"]
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]

FROM debian:trixie-slim AS sandcgi
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends ca-certificates \
      libarchive13t64 libargon2-1 libcjose0 libcurl4t64 libfcgi0t64 libjansson4 libseccomp2 libssl3t64 >/dev/null \
 && rm -rf /var/lib/apt/lists/* \
 && useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin sandcgi
COPY --from=build /installed /
COPY service/container.sh /usr/local/bin/container.sh
# For sandcgi token.
ENV SANDCGI_CONFIG=/etc/sandcgi/sandcgi.conf SANDCGI_TOKENS_FILE=/etc/sandcgi/nginx/tokens.map
ENTRYPOINT ["container.sh"]
HEALTHCHECK --interval=10s --timeout=10s --start-period=30s CMD ["sandcgi", "status", "--here", "--config", "/etc/sandcgi/sandcgi.conf"]

# nginx in front of several nodes (nginx/cluster.md).
FROM sandcgi AS edge
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends nginx-light >/dev/null \
 && rm -rf /var/lib/apt/lists/*
COPY service/edge.sh /usr/local/bin/edge.sh
ENTRYPOINT ["edge.sh"]
STOPSIGNAL SIGQUIT
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/8080 && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && head -n 1 <&3 | grep -q ' 200 '"]

# With a client of the engine.
FROM sandcgi AS runners
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends docker-cli >/dev/null \
 && rm -rf /var/lib/apt/lists/*
ENTRYPOINT ["/usr/libexec/sandcgi/runners/build.sh"]
HEALTHCHECK NONE
