/* All configurations of a request.
 *
 * tp      all numbers of ranks up to the devices whose prime factors are 2, 3
 *         and 5
 * dp      all numbers of replicas that divide the samples and find devices
 * zero    all stages, over all replicas and over groups
 * pp      all numbers of stages with the same prime factors, up to the
 *         micro-batches; with --zero 1 at most, without halves and host memory
 * ep      divisors of the experts and of the replicas; without stages and
 *         halves
 * batch   all divisors of a replica's samples
 *
 * Devices may stay idle, so more devices only add configurations.
 */
#include "passes/auto/auto.h"

struct list {
	const struct auto_request *r;
	struct auto_candidate *v;
	int64_t n;
	size_t cap;
	Arena *arena;
};

static int64_t
add(struct list *l, struct auto_config c, int64_t without)
{
	l->v = arena_grow(l->arena, l->v, (size_t)l->n, &l->cap,
	                  (size_t)l->n + 1, sizeof *l->v);
	l->v[l->n] = (struct auto_candidate){ .config = c, .without = without,
		.same = -1 };
	return l->n++;
}

/* With and without host memory. */
static void
add_offload(struct list *l, struct auto_config c)
{
	int64_t without = add(l, c, -1);

	if (l->r->may.offload && l->r->budget > 0 && c.pp == 1) {
		c.offload = true;
		add(l, c, without);
	}
}

static void
add_groups(struct list *l, struct auto_config c)
{
	const struct auto_request *r = l->r;

	if (!r->may.zero_group) {
		c.zero_group = c.zero ? r->fixed.zero_group : 0;
		if (!c.zero_group || c.dp % c.zero_group == 0)
			add_offload(l, c);
		return;
	}
	add_offload(l, c);
	for (int64_t g = 2; c.zero && g < c.dp; g++)
		if (c.dp % g == 0) {
			c.zero_group = g;
			add_offload(l, c);
		}
}

/* Without gradients that micro-batches accumulate, stage 2 shards what stage 1
 * does. */
static void
add_second_stage(struct list *l, struct auto_config c, int64_t first)
{
	int64_t second = l->n;

	add_groups(l, c);
	for (int64_t i = second; c.accum == 1 && i < l->n; i++)
		l->v[i].same = first + i - second;
}

static void
add_stages(struct list *l, struct auto_config c)
{
	const struct auto_request *r = l->r;
	int64_t first = 0;

	if (!r->may.zero) {
		c.zero = c.dp > 1 ? r->fixed.zero : 0;
		if (c.dp > 1 || !r->fixed.zero)
			add_groups(l, c);
		return;
	}
	for (c.zero = 0; c.zero <= (c.dp == 1 ? 0 : c.pp > 1 ? 1 : 3);
	     c.zero++) {
		if (c.zero == 2) {
			add_second_stage(l, c, first);
			continue;
		}
		first = l->n;
		add_groups(l, c);
	}
}

/* With and without sequence parallelism and halves. */
static void
add_batch_forms(struct list *l, struct auto_config c)
{
	const struct auto_free *may = &l->r->may;
	bool ranks = c.tp > 1;
	bool halves = ranks && may->halves && c.batch % 2 == 0 && c.pp == 1
		&& c.ep == 1;

	for (int sp = 0; sp <= (ranks && may->sp); sp++)
		for (int h = 0; h <= halves; h++) {
			c.sp = may->sp ? sp : ranks && l->r->fixed.sp;
			c.halves = h;
			add_stages(l, c);
		}
}

/* With and without experts that replicas share. */
static void
add_forms(struct list *l, struct auto_config c)
{
	const struct auto_request *r = l->r;

	c.ep = r->may.ep ? 1 : r->fixed.ep;
	if (c.dp % c.ep == 0)
		add_batch_forms(l, c);
	for (c.ep = 2; r->may.ep && c.pp == 1 && c.ep <= c.dp; c.ep++)
		if (r->experts % c.ep == 0 && c.dp % c.ep == 0)
			add_batch_forms(l, c);
}

/* Whether 2, 3 and 5 are its only prime factors. */
static bool
is_smooth(int64_t n)
{
	for (int64_t f = 2; f <= 5; f++)
		while (n % f == 0)
			n /= f;
	return n == 1;
}

/* With fewer micro-batches than stages, some would wait in every turn. */
static void
add_pipelines(struct list *l, struct auto_config c)
{
	const struct auto_request *r = l->r;
	int64_t most = r->devices / (c.tp * c.dp);

	if (r->chunks > 1 && most > GROUP_MAX / r->chunks)
		most = GROUP_MAX / r->chunks;
	if (!r->may.pp) {
		c.pp = r->fixed.pp;
		if (c.pp <= most && !(r->chunks > 1 && c.accum % c.pp))
			add_forms(l, c);
		return;
	}
	for (c.pp = 1; c.pp <= most && c.pp <= c.accum; c.pp++)
		if (is_smooth(c.pp) && !(r->chunks > 1 && c.accum % c.pp))
			add_forms(l, c);
}

/* Micro-batches, the largest first. */
static void
add_batches(struct list *l, struct auto_config c)
{
	const struct auto_request *r = l->r;
	int64_t own = r->samples / c.dp;

	for (c.accum = 1; c.accum <= own; c.accum++) {
		c.batch = own / c.accum;
		if (own % c.accum
		    || (!r->may.batch && c.batch != r->fixed.batch)
		    || (!r->may.accum && c.accum != r->fixed.accum))
			continue;
		add_pipelines(l, c);
	}
}

struct auto_candidate *
auto_candidates(const struct auto_request *r, int64_t *n, Arena *a)
{
	struct list l = { .r = r, .arena = a };
	struct auto_config c = { 0 };

	for (c.tp = 1; c.tp <= r->devices; c.tp++) {
		if (r->may.tp ? !is_smooth(c.tp) : c.tp != r->fixed.tp)
			continue;
		for (c.dp = 1; c.dp <= r->devices / c.tp
		     && c.dp <= r->samples; c.dp++)
			if (r->samples % c.dp == 0
			    && (r->may.dp || c.dp == r->fixed.dp))
				add_batches(&l, c);
	}
	*n = l.n;
	return l.v;
}
