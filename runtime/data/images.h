/* Lists of images: files called *.lst, of lines "PATH LABEL". */
#ifndef RUNTIME_DATA_IMAGES_H
#define RUNTIME_DATA_IMAGES_H

#include "runtime/file/array.h"

/* Whether the file is called *.lst. */
bool is_image_list(const char *path);
/* Two arrays: images, u8 [lines, height, width, channels] as the first image
 * is, and labels, int64 [lines].  Paths begin where the list lies.  An image
 * is read when its row is. */
ckr_status images_open(struct array_file *, const char *path, struct err *);

#endif
