/* Stands in for jpeg.c in a build without libjpeg. */
#include "runtime/image/image.h"

bool
image_can_jpeg(void)
{
	return false;
}

ckr_status
image_jpeg(struct image_reader *r)
{
	return image_error(r, "the image is JPEG, and libjpeg is not built in "
	                   "(CMake: CKC_JPEG, libjpeg-dev)");
}
