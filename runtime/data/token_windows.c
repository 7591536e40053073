#include "runtime/data/token_windows.h"

#include <stdlib.h>

#include "runtime/base/rng.h"

ckr_status
windows_open(struct token_windows *w, const struct dataset *s,
             const struct array *stream, uint64_t length, uint64_t beyond,
             struct err *e)
{
	const struct data_column *c = dataset_column(s, stream);

	*w = (struct token_windows){ .length = length, .nshard = c->n };
	w->shard = calloc(c->n + 1, sizeof(*w->shard));
	if (!w->shard)
		return err_no_memory(e);
	for (size_t i = 0; i < c->n; i++) {
		uint64_t tokens = c->shard[i].array->nelem;

		if (tokens < length + beyond)
			return err_set(e, CKR_EARG, "%s: %llu tokens are too "
			               "few for windows of %llu tokens",
			               c->shard[i].file->path,
			               (unsigned long long)tokens,
			               (unsigned long long)(length + beyond));
		w->n += (tokens - beyond) / length;
		w->shard[i] = (struct shard_windows){ c->shard[i].first,
			(tokens - beyond) % length, w->n };
	}
	return CKR_OK;
}

void
windows_close(struct token_windows *w)
{
	free(w->shard);
	*w = (struct token_windows){ 0 };
}

/* The shard of window k. */
static size_t
find_window_shard(const struct token_windows *w, uint64_t k)
{
	size_t lo = 0, hi = w->nshard - 1;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (k < w->shard[mid].upto)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Window k, after `skip` tokens of its shard. */
static uint64_t
window_start(const struct token_windows *w, size_t shard, uint64_t k,
             uint64_t skip)
{
	k -= shard ? w->shard[shard - 1].upto : 0;
	return w->shard[shard].first + skip + k * w->length;
}

uint64_t
windows_nth(const struct token_windows *w, uint64_t k)
{
	return window_start(w, find_window_shard(w, k), k, 0);
}

uint64_t
windows_at(const struct token_windows *w, uint64_t seed, uint64_t i)
{
	uint64_t epoch = i / w->n;
	uint64_t k = rng_shuffled(seed, epoch, i % w->n, w->n);
	size_t at = find_window_shard(w, k);
	uint64_t slack = w->shard[at].slack;

	return window_start(w, at, k, rng_below(seed, RNG_WINDOW,
	                                        epoch * w->nshard + at,
	                                        slack + 1));
}
