#!/bin/sh
# Everything that is too long for every change: sanitizers, valgrind, all
# mutants, all fuzz targets.
#
#	sh tests/all.sh [STEP...]
#
# Steps are suite, warnings, sanitizers, valgrind, faults, mutants,
# random_mutants and fuzz; without any, all of them, which takes a night.
# tests/results.md gets a row for each step that ran, with its date and commit,
# and keeps the others' rows.  FUZZ_SECONDS is the time for each fuzz target
# (default: 600).
set -u
cd "$(dirname "$0")/.." || exit 2
jobs=$(nproc)
logs=build-all
mkdir -p $logs
sh .ci/setup clang libclang-rt-dev libomp-dev valgrind || exit 2

build() { # FOLDER OPTIONS...
	folder=$1
	shift
	cmake -S . -B "$folder" "$@" && cmake --build "$folder" -j "$jobs"
}

suite() {
	sh tests/run.sh
}

warnings() {
	build build-gcc -DCMAKE_BUILD_TYPE=Debug -DCKC_WERROR=ON &&
		build build-clang -DCMAKE_BUILD_TYPE=Debug -DCKC_WERROR=ON \
			-DCMAKE_C_COMPILER=clang
}

sanitizers() {
	cmake --preset asan && cmake --build --preset asan -j "$jobs" &&
		ctest --preset asan -j "$jobs"
}

# The main job: a plan under a budget, training, a checkpoint, its resume.
valgrind_job() {
	check="valgrind --quiet --error-exitcode=9 --leak-check=full
		--errors-for-leak-kinds=definite"
	model=tests/models/gpt2-logits
	run="build/ckrun $logs/v.so --inputs $model.inputs.safetensors
		--threads 1 --blas own"
	build build -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
		$check build/ckc $model.onnx -o $logs/v.so --loss ce:logits \
			--dim batch=2 --dim seq=12 --memory-budget 95% \
			--json $logs/v.json --march x86-64-v2 &&
		$check $run --steps 2 --save $logs/v.ckpt &&
		$check $run --steps 4 --resume $logs/v.ckpt
}

all_faults() {
	build build -DCMAKE_BUILD_TYPE=RelWithDebInfo &&
		python3 tests/faults/faults.py build/ckc build/ckrun \
			"$(find build -name libfault.so)" --all
}

mutants() {
	python3 tests/mutants/run.py --jobs "$jobs" \
		--table tests/mutants/results.md
}

# Others each day.  Among those that survive are some that no test can notice.
random_mutants() {
	python3 tests/mutants/random_mutants.py --jobs "$jobs" --least 75 \
		--seed "$(date +%Y%m%d)" --table $logs/random.md
}

fuzz() {
	build build-fuzz -DCMAKE_C_COMPILER=clang -DCKC_FUZZ=ON &&
		sh tests/fuzz/run.sh build-fuzz "${FUZZ_SECONDS:-600}"
}

# One row for each step: its name, result, minutes, date and commit.
record() { # STEP RESULT SECONDS
	python3 - "$@" "$(git log -1 --format=%h)" <<'END'
import datetime, os, sys

step, result, seconds, commit = sys.argv[1:]
path = "tests/results.md"
head = """# Everything

Written by `sh tests/all.sh`, which says what each step is.

| step | result | minutes | date | commit |
|---|---|---:|---|---|
"""
rows = {}
if os.path.exists(path):
    for line in open(path, encoding="utf-8").read().splitlines()[6:]:
        rows[line.split("|")[1].strip()] = line
minutes = f"{int(seconds) / 60:.1f}"
rows[step] = f"| {step} | {result} | {minutes} | {datetime.date.today()} | {commit} |"
with open(path, "w", encoding="utf-8") as f:
    f.write(head + "\n".join(rows.values()) + "\n")
END
}

failed=0
for step in ${*:-suite warnings sanitizers valgrind faults mutants \
	random_mutants fuzz}; do
	case $step in
	suite | warnings | sanitizers | mutants | random_mutants | fuzz)
		command=$step ;;
	valgrind) command=valgrind_job ;;
	faults) command=all_faults ;;
	*) echo "all.sh: no step '$step'" >&2; exit 2 ;;
	esac
	began=$(date +%s)
	if $command >$logs/"$step".log 2>&1; then
		result=passed
	else
		result="failed: $(grep -hE 'tests failed|FAIL|error:|survived|left in' \
			$logs/"$step".log | tail -n 1 | tr '|' ' ' | cut -c1-100)"
		failed=1
	fi
	took=$(($(date +%s) - began))
	echo "$step: $result, $took s, log in $logs/$step.log"
	record "$step" "$result" "$took"
done
exit $failed
