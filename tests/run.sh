#!/bin/sh
# Builds everything and runs every test.
#
#	sh tests/run.sh [ctest options, e.g. -L unit]
set -eu
cd "$(dirname "$0")/.."

sh .ci/setup
cmake --preset release >/dev/null
cmake --build build -j "$(nproc)" | tail -n 1
# Tests of several processes wait as much as they work.
exec ctest --test-dir build --output-on-failure -j "$(($(nproc) * 3 / 2))" "$@"
