# What Debian wants in a package and no install rule brings: a copyright file,
# a changelog, compressed manual pages, archives without debug information.
# CPack runs this before it packs the staged files.
file(GLOB staged ${CPACK_TEMPORARY_DIRECTORY}/*/usr)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
foreach(usr ${staged})
	cmake_path(GET usr PARENT_PATH component)
	cmake_path(GET component FILENAME component)
	string(TOUPPER ${component} component)
	set(package ${CPACK_DEBIAN_${component}_PACKAGE_NAME})
	set(doc ${usr}/share/doc/${package})
	file(WRITE ${doc}/copyright
		"Copyright (C) the ckc developers\n"
		"onnx.proto: Copyright (C) the contributors of ONNX\n"
		"License: Apache-2.0, see /usr/share/common-licenses/Apache-2.0\n")
	file(WRITE ${doc}/changelog
		"${package} (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium\n\n"
		"  * CHANGELOG.md of the source lists the changes.\n\n"
		" -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
	file(GLOB pages ${usr}/share/man/man1/*.1)
	execute_process(COMMAND gzip -9nf ${doc}/changelog ${pages}
		COMMAND_ERROR_IS_FATAL ANY)
	file(GLOB archives ${usr}/lib/*.a ${usr}/lib/*/*.a)
	if(archives)
		execute_process(COMMAND strip --strip-debug ${archives}
			COMMAND_ERROR_IS_FATAL ANY)
	endif()
endforeach()
