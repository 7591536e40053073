/* Lists of images: files called *.lst, of lines "PATH LABEL". */
#ifndef RUNTIME_DATA_IMAGES_H
#define RUNTIME_DATA_IMAGES_H

#include "runtime/file/format.h"

/* Read a list as two arrays: images, u8 [lines, height, width, channels] with
 * the size of the first image, and labels, int64 [lines].  Paths are relative
 * to the list's folder.  An image is read when its row is.  No options. */
ArrayReader images_read;

#endif
