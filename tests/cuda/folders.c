/* folders LIBRARY: the file that libckr opens for a library of NVIDIA's. */
#include "runtime/support/gpu_library.h"

#include <stdio.h>

int
main(int argc, char **argv)
{
	const char *const names[] = { argc == 2 ? argv[1] : NULL, NULL };
	void *library = gpu_library_open(names);

	if (library)
		puts(gpu_library_file(library));
	return !library;
}
