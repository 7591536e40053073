/* Parse memory sizes given as options. */
#ifndef FRONTEND_DRIVER_BYTE_SIZE_H
#define FRONTEND_DRIVER_BYTE_SIZE_H

#include <stdbool.h>
#include <stdint.h>

/* Takes "512MiB", "24GB", "1.5GiB", "4096" in any case.  "6G" means 6GB, the
 * smaller of two possible meanings.  False: not a size. */
bool parse_byte_size(const char *, int64_t *nbytes);

#endif
