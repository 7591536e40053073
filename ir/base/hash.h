/* Hashes for tables: of names, by FNV-1a, and of lists of numbers. */
#ifndef IR_BASE_HASH_H
#define IR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HASH_START 0xcbf29ce484222325u

/* Hash of the strings that gave h, followed by s. */
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

/* n bytes, eight at a time. */
static inline uint64_t
hash_words(const void *data, size_t n)
{
	const unsigned char *s = data;
	uint64_t h = 14695981039346656037u, word;

	for (; n >= 8; n -= 8, s += 8) {
		memcpy(&word, s, 8);
		h = (h ^ word) * 1099511628211u;
		h ^= h >> 29;
	}
	for (; n; n--)
		h = (h ^ *s++) * 1099511628211u;
	return h ^ h >> 32;
}

#endif
