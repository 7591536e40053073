/* Stands in for png.c in a build without libpng. */
#include "runtime/image/image.h"

bool
image_can_png(void)
{
	return false;
}

ckr_status
image_png(struct image_reader *r)
{
	return image_error(r, "the image is PNG, and libpng is not built in "
	                   "(CMake: CKC_PNG, libpng-dev)");
}
