/* Stands in for jpeg.c in a build without libjpeg. */
#include "runtime/image/image.h"

const struct image_format image_jpeg = {
	.name = "JPEG", .magic = "\xff\xd8\xff", .nmagic = 3,
	.missing = "libjpeg is not built in (CMake: CKC_JPEG, libjpeg-dev)",
};
