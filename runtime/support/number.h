/* Numbers and sizes in options and files: parsing, and formatting of byte
 * counts. */
#ifndef RUNTIME_SUPPORT_NUMBER_H
#define RUNTIME_SUPPORT_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parse digits and nothing else, 0..max. */
bool number_whole(const char *s, uint64_t max, uint64_t *x);
/* Parse a finite number and nothing else. */
bool number_real(const char *s, double *x);
/* The number in n bytes, at most 8, the lowest first. */
static inline uint64_t
load_le(const unsigned char *p, int n)
{
	uint64_t x = 0;

	for (int i = n - 1; i >= 0; i--)
		x = x << 8 | p[i];
	return x;
}

/* Parse a size: "512MiB", "24GB", "1.5GiB", "4096" in any case.  "6G" means
 * 6GB, the smaller of two possible meanings. */
bool number_size(const char *s, int64_t *nbytes);
/* "512 B", "21.6 KiB", "4.6 MiB", and so on; returns buf. */
const char *number_bytes(char buf[24], double bytes);

#endif
