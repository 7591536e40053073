#!/bin/sh
# Builds ckc, compiles the sample model under a memory budget, shows the plan
# and trains it on the text of a licence that every Debian machine has.
#
#	sh samples/run.sh [BUDGET [STEPS]]
set -eu
cd "$(dirname "$0")/.."
budget=${1:-70%}
steps=${2:-200}

sh .ci/setup
cmake --preset release >/dev/null
cmake --build build -j "$(nproc)" --target ckc ckrun | tail -n 1

out=build/sample
mkdir -p $out
build/ckc samples/chargpt/chargpt.onnx -o $out/chargpt.so \
	--dim batch=16 --dim seq=128 --memory-budget "$budget" --dump=plan
build/ckrun $out/chargpt.so --data /usr/share/common-licenses/GPL-3 \
	--tokens bytes --steps "$steps" --lr 3e-3 --save $out/run.safetensors
