/* Sizes of memory in options. */
#ifndef FRONTEND_DRIVER_BYTE_SIZE_H
#define FRONTEND_DRIVER_BYTE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* "512MiB", "24GB", "1.5GiB", "4096"; case does not matter.  "6G" is 6GB, the
 * smaller of two possible meanings.  False: the text is no size. */
bool parse_byte_size(const char *, int64_t *nbytes);

#endif
