/* Windows of a stream of tokens, sampled without replacement. */
#ifndef RUNTIME_DATA_TOKEN_WINDOWS_H
#define RUNTIME_DATA_TOKEN_WINDOWS_H

#include "runtime/data/dataset.h"

/* The windows of one shard; none crosses its end. */
struct shard_windows {
	uint64_t first;                 /* first token of the shard */
	uint64_t slack;                 /* tokens that no window covers */
	uint64_t upto;                  /* windows in all shards up to this */
};

struct token_windows {
	uint64_t length;                /* tokens of a window */
	uint64_t n;                     /* windows of an epoch */
	struct shard_windows *shard;
	size_t nshard;
};

/* Divide the stream into adjacent windows; `beyond` tokens are read after each.
 * Fails if a shard is shorter than a window. */
ckr_status windows_open(struct token_windows *, const struct dataset *,
                        const struct array *stream, uint64_t length,
                        uint64_t beyond, struct err *);
void windows_close(struct token_windows *);
/* First token of window k of the stream. */
uint64_t windows_nth(const struct token_windows *, uint64_t k);
/* First token of sample i, a function of i and the seed alone.  Each epoch has
 * every window once, in its own random order, and shifts the windows of each
 * shard by a random part of the slack. */
uint64_t windows_at(const struct token_windows *, uint64_t seed, uint64_t i);

#endif
