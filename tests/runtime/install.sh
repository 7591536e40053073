#!/bin/sh
# The installed package: samples/train builds against it, by CMake and by
# pkg-config, and the header serves C and C++ by itself.
#	install.sh CMAKE BUILD-FOLDER SOURCE-FOLDER MODELS
set -eu
cmake=$1 build=$2 source=$3 models=$4
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$cmake" --install "$build/runtime" --prefix "$dir/usr" >/dev/null
"$cmake" -S "$source/samples/train" -B "$dir/b" -DCMAKE_PREFIX_PATH="$dir/usr" \
	-DCMAKE_C_FLAGS="${CFLAGS-}" >/dev/null
"$cmake" --build "$dir/b" >/dev/null
# it runs, and tells what is wrong
if "$dir/b/train" none.so "$source/runtime/ckr.h" 1 2>"$dir/err"; then
	exit 1
fi
grep -q none.so "$dir/err"

if command -v pkg-config >/dev/null; then
	PKG_CONFIG_PATH=$(dirname "$(find "$dir/usr" -name ckr.pc)")
	export PKG_CONFIG_PATH
	${CC:-cc} "$source/samples/train/main.c" -o "$dir/train" \
		$(pkg-config --cflags --libs ckr)
fi
echo '#include <ckr.h>
int main(void) { return ckr_close(0), ckr_hyper_default().clip != 0; }' >"$dir/t.c"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -I"$dir/usr/include" "$dir/t.c" \
	-c -o "$dir/t.o"
if command -v c++ >/dev/null; then
	c++ -x c++ -Wall -Wextra -Werror -I"$dir/usr/include" "$dir/t.c" -c \
		-o "$dir/t.o"
fi
test "$(find "$dir/usr" -name '*.h' | wc -l)" = 1
"$dir/usr/bin/ckrun" --version
"$dir/usr/bin/ckrun" "$models/tokens.so" --init none 2>"$dir/err" && exit 1
grep -q 'none: cannot read' "$dir/err"
# processes find their module where it is installed
if command -v mpirun >/dev/null && [ -f "$build/ckr_mpi.so" ]; then
	mpirun --allow-run-as-root --oversubscribe -n 2 "$dir/usr/bin/ckrun" \
		"$models/tokens.so" --init none 2>"$dir/err" && exit 1
	grep -q 'got 2 ranks' "$dir/err"
fi
