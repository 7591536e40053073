#!/bin/sh
# Shows how clang-format would write the lines of C that differ from a commit.
#
#	sh tests/house/format.sh [COMMIT]	(HEAD: what is not committed yet)
#
# Exit status 1 if any differ.
set -eu
cd "$(dirname "$0")/../.."
diff=$(git clang-format --quiet --diff "${1-HEAD}" -- '*.c' '*.h')
[ -z "$diff" ] || { echo "$diff"; exit 1; }
