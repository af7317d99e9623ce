# The image of a release, from the programs that were built for it: one for each processor, put there by stage.sh.
FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETARCH
COPY --chmod=755 ${TARGETARCH}/mcpzip /usr/bin/mcpzip
COPY --chown=65532:65532 data /data
ENV MCPZIP_CONFIG=/config/config.json MCPZIP_CACHE_DIR=/data/cache MCPZIP_STATE_DIR=/data/state MCPZIP_BROWSER=none
VOLUME /data
EXPOSE 8080
USER 65532
ENTRYPOINT ["/usr/bin/mcpzip"]
CMD ["serve", "--http", "0.0.0.0:8080", "--token-file", "/run/secrets/mcpzip_token"]
