# Turn text files into a C source with one string per file.
#
#   cmake -DOUT=text.c "-DFILES=a.h;b.h" -DHEADER=h -DPREFIX=p -P embed.cmake
#
# Each becomes const char pNAME[], NAME without its extension; h declares it.
# With -DTABLE=t instead of a prefix they become the rows { name, text } of
# const struct text t[], which ends with a row of NULL.
# Bytes are written as numbers: string literals have a length limit.
set(body "/* Made by embed.cmake. */\n#include \"${HEADER}\"\n")
set(rows "")
foreach(file IN LISTS FILES)
	get_filename_component(name ${file} NAME_WE)
	set(symbol "const char ${PREFIX}${name}[]")
	if(TABLE)
		get_filename_component(name ${file} NAME)
		string(MAKE_C_IDENTIFIER ${name} id)
		set(symbol "static const char ${id}[]")
		string(APPEND rows "\t{ \"${name}\", ${id} },\n")
	endif()
	file(READ ${file} hex HEX)
	string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
	string(APPEND body "\n${symbol} = {\n${hex}\n0};\n")
endforeach()
if(TABLE)
	string(APPEND body
		"\nconst struct text ${TABLE}[] = {\n${rows}\t{ 0 }\n};\n")
endif()
file(WRITE ${OUT}.tmp "${body}")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.tmp ${OUT})
file(REMOVE ${OUT}.tmp)
