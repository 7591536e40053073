#!/bin/sh
# Manual pages and completions have every option of --help, and what reads
# them takes them: groff, bash, zsh and fish, where they are installed.
#	help.sh CKC CKRUN SCRIPTS
set -eu
scripts=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "FAIL $*"
	exit 1
}

# Options of all verbs, each once.
options() {
	program=$1
	shift
	for verb in "" "$@"; do
		"$program" $verb --help
	done | sed -n 's/^  \(--[a-z0-9-]*\).*/\1/p' | sort -u
}

look() {
	program=$1 name=$(basename "$1")
	shift
	sh "$scripts/man" "$program" "about it" "$@" >"$dir/$name.1"
	for shell in bash zsh fish; do
		sh "$scripts/completion" $shell "$program" "$@" >"$dir/$shell"
	done
	options "$program" "$@" >"$dir/options"
	test "$(wc -l <"$dir/options")" -gt 25 || fail "$name: few options"
	while read -r o; do
		roff=$(echo "$o" | sed 's/-/\\\\-/g')
		grep -q "^.fB$roff.fR" "$dir/$name.1" || fail "$name.1: no $o"
		grep -q -e "$o[] )|[]" "$dir/bash" || fail "bash: no $o"
		grep -q -e "\*$o\[" "$dir/zsh" || fail "zsh: no $o"
		grep -q -e "-l ${o#--} " "$dir/fish" || [ "$o" = --help ] \
			|| fail "fish: no $o"
	done <"$dir/options"
	if command -v groff >/dev/null; then
		groff -man -Tutf8 -ww -z "$dir/$name.1" 2>"$dir/log"
		test ! -s "$dir/log" || fail "$name.1: $(cat "$dir/log")"
	fi
	for shell in bash zsh fish; do
		command -v $shell >/dev/null || continue
		$shell -n "$dir/$shell" || fail "$name: $shell"
	done
}

look "$2" eval predict
grep -q "^.SH ckrun predict" "$dir/ckrun.1" || fail "ckrun.1: no predict"
look "$1" inspect advise plan pack doctor
grep -q '^\.SH DESCRIPTION' "$dir/ckc.1" || fail "ckc.1: no description"
command -v bash >/dev/null || exit 0
cat >"$dir/try" <<E2
. $dir/bash
COMP_WORDS=(ckc --optimizer ada) COMP_CWORD=2; _ckc; echo "\${COMPREPLY[@]}"
COMP_WORDS=(ckc --memory-b) COMP_CWORD=1; _ckc; echo "\${COMPREPLY[@]}"
COMP_WORDS=(ckc insp) COMP_CWORD=1; _ckc; echo "\${COMPREPLY[@]}"
E2
bash "$dir/try" >"$dir/said"
printf 'adam adamw adafactor\n--memory-budget\ninspect\n' >"$dir/want"
cmp "$dir/said" "$dir/want" || fail "bash completes $(cat "$dir/said")"
