/* Stands in for png.c in a build without libpng. */
#include "runtime/image/image.h"

const struct image_format image_png = {
	.name = "PNG", .magic = "\x89PNG\r\n\x1a\n", .nmagic = 8,
	.missing = "libpng is not built in (CMake: CKC_PNG, libpng-dev)",
};
