# Turn text files into a C source with one string per file.
#
#   cmake -DOUT=text.c "-DFILES=a.h;b.h" -DHEADER=h -DPREFIX=p -P embed.cmake
#
# Each becomes const char pNAME[], NAME without its extension; h declares it.
# Bytes are written as numbers: string literals have a length limit.
set(body "/* Made by embed.cmake. */\n#include \"${HEADER}\"\n")
foreach(file IN LISTS FILES)
	get_filename_component(name ${file} NAME_WE)
	file(READ ${file} hex HEX)
	string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
	string(APPEND body "\nconst char ${PREFIX}${name}[] = {\n${hex}\n0};\n")
endforeach()
file(WRITE ${OUT}.tmp "${body}")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.tmp ${OUT})
file(REMOVE ${OUT}.tmp)
