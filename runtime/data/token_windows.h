/* Windows of a stream of tokens, sampled without replacement. */
#ifndef RUNTIME_DATA_TOKEN_WINDOWS_H
#define RUNTIME_DATA_TOKEN_WINDOWS_H

#include "runtime/data/dataset.h"

/* Those of one shard; none goes over its end. */
struct shard_windows {
	uint64_t first;                 /* its first token */
	uint64_t slack;                 /* tokens that windows leave over */
	uint64_t upto;                  /* windows to its end */
};

struct token_windows {
	uint64_t length;                /* of one, in tokens */
	uint64_t n;                     /* in an epoch */
	struct shard_windows *shard;
	size_t nshard;
};

/* Cut the stream into windows that lie side by side, `beyond` tokens being read
 * behind each.  To be closed; shards without room for one are refused. */
ckr_status windows_open(struct token_windows *, const struct dataset *,
                        const struct array *stream, uint64_t length,
                        uint64_t beyond, struct err *);
void windows_close(struct token_windows *);
/* Where window k of the stream begins. */
uint64_t windows_nth(const struct token_windows *, uint64_t k);
/* Where sample number i begins: a function of it and the seed alone.  Each
 * epoch has every window once, in an order of its own, and begins to cut each
 * shard at another of the tokens that are left over. */
uint64_t windows_at(const struct token_windows *, uint64_t seed, uint64_t i);

#endif
