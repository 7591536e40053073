# Options out of what --help prints, a line each: name, value, help, with tabs
# between; headings as lines of one field; other lines behind a bar.
/^  --[a-z]/ {
	match($0, /--[a-z0-9-]+/)
	name = substr($0, RSTART, RLENGTH)
	rest = substr($0, RSTART + RLENGTH)
	value = ""
	# one space: a value follows, which has none in it
	if (rest ~ /^ [^ ]/) {
		value = substr(rest, 2)
		sub(/ .*/, "", value)
		rest = substr(rest, length(value) + 2)
	}
	sub(/^,.*/, "", rest)
	sub(/^ +/, "", rest)
	print name "\t" value "\t" rest
	next
}
/^[a-z]+:?$/ { sub(/:$/, ""); print; next }
{ print "|" $0 }
