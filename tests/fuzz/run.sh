#!/bin/sh
# Fuzz for a while, two targets at a time:
#
#     CC=clang cmake -S . -B fuzz -DCKC_FUZZ=ON && make -C fuzz
#     tests/fuzz/run.sh fuzz SECONDS [TARGET...]
#
# Seeds are made anew; what is learnt stays in BUILD/corpus.  One line per
# target says how it went, its log and what it found are in BUILD/found.
set -u
build=$(cd "$1" && pwd) || exit 2
seconds=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
all=$(cd "$here" && ls fuzz_*.c | sed 's/fuzz_\(.*\)\.c/\1/')
[ $# -gt 0 ] && all="$*"
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
export ASAN_OPTIONS=allocator_may_return_null=1

python3 "$here/seeds.py" "$build/seeds" --models "$here/../models" \
	--ck "$here/../ck" || exit 1

fuzz() {
	found=$build/found/$1
	mkdir -p "$found" "$build/corpus/$1"
	[ -d "$here/found/$1" ] && cp "$here/found/$1"/* "$build/seeds/$1"
	# real models are large; what grows from them need not be
	nice "$build/libfuzz_$1" -max_total_time="$seconds" -timeout=10 \
		-rss_limit_mb=2048 -max_len=16384 -print_final_stats=1 \
		-artifact_prefix="$found/" "$build/corpus/$1" \
		"$build/seeds/$1" > "$found.log" 2>&1
	status=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")
	cover=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$found.log" | tail -n 1)
	echo "$1: status $status, $runs executions, coverage $cover"
}

while [ -n "$all" ]; do
	set -- $all
	fuzz "$1" &
	[ $# -gt 1 ] && fuzz "$2" &
	wait
	shift
	[ $# -gt 0 ] && shift
	all="$*"
done
# nothing may be left of a crash, a leak, a timeout or too much memory
left=$(find "$build/found" -type f ! -name '*.log' | wc -l)
[ "$left" -eq 0 ] || { echo "$left inputs in $build/found"; exit 1; }
