#include "runtime/image/image.h"

bool
image_can_jpeg(void)
{
	return false;
}

ckr_status
image_jpeg(struct image_reader *r)
{
	return image_error(r, "is JPEG, and libjpeg not built in (CMake: "
	                   "CKC_JPEG, libjpeg-dev)");
}
