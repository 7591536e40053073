# Turn text files into a C source with one string per file.
#
#   cmake -DOUT=text.c "-DFILES=a.h;b.h" -P embed.cmake
#
# Each becomes const char codegen_text_NAME[], NAME without its extension.
# Bytes are written as numbers: string literals have a length limit.
set(body "/* Made by embed.cmake. */\n#include \"codegen/emit.h\"\n")
foreach(file IN LISTS FILES)
	get_filename_component(name ${file} NAME_WE)
	file(READ ${file} hex HEX)
	string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
	string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
	string(APPEND body "\nconst char codegen_text_${name}[] = {\n${hex}\n0};\n")
endforeach()
file(WRITE ${OUT}.tmp "${body}")
execute_process(COMMAND ${CMAKE_COMMAND} -E copy_if_different ${OUT}.tmp ${OUT})
file(REMOVE ${OUT}.tmp)
