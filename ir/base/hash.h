/* FNV-1a: a hash of strings, for tables of names. */
#ifndef IR_BASE_HASH_H
#define IR_BASE_HASH_H

#include <stdint.h>

#define HASH_START 0xcbf29ce484222325u

/* Hash of the strings that gave h, followed by s. */
static inline uint64_t
hash_str(uint64_t h, const char *s)
{
	while (*s)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
	return h;
}

#endif
