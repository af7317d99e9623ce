# The image of a release, from the programs that were built for it: one for each processor, put there by stage.sh.
FROM gcr.io/distroless/static-debian12:nonroot
ARG TARGETARCH
COPY --chmod=755 ${TARGETARCH}/mcpzip /usr/bin/mcpzip
COPY --chown=65532:65532 data /data
ENV MCPZIP_CONFIG=/config/config.json MCPZIP_CACHE_DIR=/data/cache MCPZIP_STATE_DIR=/data/state MCPZIP_BROWSER=none \
    MCPZIP_HTTP_ADDRESS=0.0.0.0:8080
VOLUME /data
EXPOSE 8080
USER 65532
ENTRYPOINT ["/usr/bin/mcpzip"]
HEALTHCHECK --interval=30s --timeout=6s --start-period=5s CMD ["/usr/bin/mcpzip", "healthcheck"]
CMD ["serve", "--http", "--token-file", "/run/secrets/mcpzip_token"]
