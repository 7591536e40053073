/* Hashes: of names and bytes, by FNV-1a (Fowler, Noll and Vo), and of lists of
 * numbers. */
#ifndef RUNTIME_SUPPORT_HASH_H
#define RUNTIME_SUPPORT_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* Hash of the bytes that gave h, followed by n more. */
static inline uint64_t
hash_bytes(uint64_t h, const void *from, size_t n)
{
	const unsigned char *x = from;

	for (size_t i = 0; i < n; i++)
		h = (h ^ x[i]) * 0x100000001b3u;
	return h;
}

/* The same, followed by s. */
static inline uint64_t
hash_str(uint64_t h, const char *s)
{
	while (*s)
		h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
	return h;
}

/* Hash of the numbers that gave h, followed by x. */
static inline uint64_t
hash_number(uint64_t h, uint64_t x)
{
	h = (h ^ x) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 29;
}

/* Hash of n bytes, eight at a time. */
static inline uint64_t
hash_block(const void *data, size_t n)
{
	const unsigned char *s = data;
	uint64_t h = HASH_START, word;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * 0x100000001b3u;
		h ^= h >> 29;
	}
	return hash_bytes(h, s, n) ^ h >> 32;
}

#endif
