#!/bin/sh
# Compiles test_nccl_api.c beside NVIDIA's headers; skipped where there are none.
#	headers.sh CC ROOT
set -eu
for cuda in "${CUDA_HOME:-/usr/local/cuda}" /usr; do
	for nccl in "$cuda" /usr/local /usr; do
		[ -f "$cuda/include/cuda.h" ] && [ -f "$nccl/include/nccl.h" ] || continue
		exec "$1" -std=c11 -Wall -Wextra -Werror -fsyntax-only -I "$2" -isystem "$cuda/include" \
			-isystem "$nccl/include" "$2/tests/cuda/test_nccl_api.c"
	done
done
echo "no cuda.h and nccl.h: declarations were not compared"
exit 77
