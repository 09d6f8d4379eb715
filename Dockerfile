# syntax=docker/dockerfile:1
# Hearth in one container. It needs to be privileged: see docker-compose.yml, which says why.

FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY scripts scripts
COPY Cargo.toml Cargo.toml
# The compiler is in the image; this adds python3, against which a native module is built, and Debian's own Node.js, so
# that none is fetched and packed beside it.
RUN scripts/setup.sh build && rm -rf /var/lib/apt/lists/*
COPY . .
# The caches stay out of the image and make the next build short.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    scripts/build.sh release && scripts/install.sh /opt/hearth

FROM debian:trixie-slim
# python3 and node run functions; ca-certificates is what functions with a network check servers against; criu keeps
# templates as images, so that a start need not boot.
RUN apt-get update \
    && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates criu nodejs python3 \
    && rm -rf /var/lib/apt/lists/*
# The server's user; the process that needs root starts it. A fixed number, since files in the volume are its own.
RUN useradd --system --uid 899 --user-group --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin hearth
COPY --from=build /opt/hearth /opt/hearth
ENV HEARTH_LISTEN=0.0.0.0:8080 \
    HEARTH_DATA_DIR=/var/lib/hearth
VOLUME /var/lib/hearth
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/bin/python3", "-I", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
ENTRYPOINT ["/opt/hearth/hearth"]
