#!/bin/sh
# Compiles test_nccl_api.c and test_cudnn_api.c beside NVIDIA's headers, those
# of them that are there; skipped where none are.
#	headers.sh CC ROOT
set -eu
compiled=
for library in nccl cudnn; do
	found=
	for cuda in "${CUDA_HOME:-/usr/local/cuda}" /usr; do
		for there in "$cuda" /usr/local /usr; do
			[ -z "$found" ] && [ -f "$cuda/include/cuda.h" ] &&
				[ -f "$there/include/$library.h" ] || continue
			"$1" -std=c11 -Wall -Wextra -Werror -Wno-deprecated-declarations -fsyntax-only \
				-I "$2" -isystem "$cuda/include" -isystem "$there/include" \
				"$2/tests/cuda/test_${library}_api.c"
			found=1 compiled=1
		done
	done
	[ "$found" ] || echo "no cuda.h and $library.h: its declarations were not compared"
done
[ "$compiled" ] || exit 77
