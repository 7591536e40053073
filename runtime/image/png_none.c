#include "runtime/image/image.h"

bool
image_can_png(void)
{
	return false;
}

ckr_status
image_png(struct image_reader *r)
{
	return image_error(r, "is PNG, and libpng not built in (CMake: "
	                   "CKC_PNG, libpng-dev)");
}
