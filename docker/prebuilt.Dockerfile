# The images of docker/Dockerfile, of programs that are there already. docker/prebuilt puts them into target/images and
# builds this; alone it is of no use.

ARG RUNTIME=gcr.io/distroless/cc-debian12:nonroot

FROM ${RUNTIME} AS site
COPY target/images/site/ /
COPY target/images/stealgrid-node /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/stealgrid-node"]

FROM ${RUNTIME} AS coordinator
COPY target/images/coordinator/ /
COPY configs /configs
COPY target/images/stealgrid /usr/local/bin/
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/stealgrid"]
