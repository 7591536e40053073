# ckc in a container:
#
#	docker build -t ckc .
#	docker run --rm -v "$PWD:/work" ckc ckc model.onnx --memory-budget 60%
#
# -e CKC_CACHE=.ckc-cache keeps compiled units from run to run.
FROM debian:bookworm-slim AS build
WORKDIR /src
COPY .ci .ci
RUN sh .ci/setup file dpkg-dev
COPY CMakeLists.txt CMakePresets.json LICENSE ./
COPY ir ir
COPY passes passes
COPY codegen codegen
COPY runtime runtime
COPY frontend frontend
COPY samples/gpt samples/gpt
RUN cmake --preset release -DCKC_TESTS=OFF -DCMAKE_INSTALL_PREFIX=/usr \
	&& cmake --build build -j "$(nproc)" \
	&& cd build && cpack

FROM debian:bookworm-slim
COPY --from=build /src/build/ckc_*.deb /tmp/
RUN apt-get update \
	&& apt-get install -y --no-install-recommends /tmp/ckc_*.deb \
		libopenblas0-openmp libdnnl2 \
	&& rm -rf /tmp/ckc_*.deb /var/lib/apt/lists/*
WORKDIR /work
ENV HOME=/tmp
# Started by root, as the user whose folder is mounted, who then owns the files.
ENTRYPOINT ["sh", "-c", "[ $(id -u) = 0 ] && as=$(stat -c '--reuid=%u --regid=%g' .) && set -- setpriv $as --clear-groups \"$@\"; exec \"$@\"", "sh"]
CMD ["ckc", "--help"]
