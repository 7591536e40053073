#include "runtime/image/image.h"

ckr_status
image_jpeg(struct image_reading *r)
{
	return image_broken(r, "is JPEG, and libjpeg not built in (CMake: "
	                    "CKC_JPEG, libjpeg-dev)");
}
