# maniple as an image. The steps are the scripts of deploy/image, which deploy/image/rootfs.sh runs without an engine.
#   docker build -t maniple .                            a model elsewhere: BASIC_API_KEY, BASIC_MODEL, BASIC_BASE_URL
#   docker build -t maniple --build-arg WITH=model .     the embedded model inside
ARG BASE=debian:trixie-slim

FROM ${BASE} AS system
COPY deploy/image/system.sh /tmp/
RUN sh /tmp/system.sh && rm /tmp/system.sh

FROM system AS build
ARG WITH=
COPY . /src
RUN sh /src/deploy/image/install.sh ${WITH}

FROM system
COPY deploy/image/user.sh /tmp/
RUN sh /tmp/user.sh && rm /tmp/user.sh
COPY --from=build /opt/maniple /opt/maniple
COPY --from=build --chown=maniple:maniple /var/cache/maniple /var/cache/maniple
ENV PATH=/opt/maniple/bin:/usr/bin:/bin LANG=C.UTF-8 HOME=/home/maniple PYTHONDONTWRITEBYTECODE=1 \
    MANIPLE_DATA_DIR=/var/lib/maniple MANIPLE_CACHE_DIR=/var/cache/maniple MANIPLE_TRUSTED_FOLDERS=/app
WORKDIR /app
USER maniple
VOLUME ["/var/lib/maniple", "/var/cache/maniple"]
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s --start-interval=1s \
  CMD ["python3", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["tini", "--", "maniple"]
CMD ["serve", "--host", "0.0.0.0"]
