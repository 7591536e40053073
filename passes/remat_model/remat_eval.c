/* What a sequence of steps costs: lifetimes, bytes shared in place, live bytes
 * per step, seconds of clones, size of the arena once placed.
 *
 * method  Lifetimes, sharing of bytes in place and scratch follow the rules of
 *         passes inplace and place.
 * cost    linear in the operands of the schedule
 */
#include "ir/loop.h"
#include "passes/remat_model/remat_model.h"
#include "passes/place/place.h"

#include <string.h>

/* Clones inlined into step k stand right before it; how many. */
static int
count_inlined(const struct remat *r, int32_t k)
{
	int n = 0;

	while (k - n > 0 && r->step[k - n - 1].inlined)
		n++;
	return n;
}

/* Is storage s made by one of the clones in steps `from` to `to`? */
static bool
is_made_between(const struct remat *r, int32_t from, int32_t to, int32_t s)
{
	for (int32_t k = from; k < to; k++) {
		const struct rnode *rn = &r->node[r->step[k].node];

		for (int j = 0; j < rn->nwrite; j++)
			if (rn->write[j] == s)
				return true;
	}
	return false;
}

/* Step k reads what its node and the clones inlined into it read, but for what
 * a clone before makes: one does not see what a later one makes beside what
 * it is there for. */
static void
record_reads(struct remat *r, int32_t k)
{
	int n = count_inlined(r, k);

	for (int i = 0; i <= n; i++) {
		const struct rnode *rn = &r->node[r->step[k - i].node];

		for (int j = 0; j < rn->nread; j++)
			if (!is_made_between(r, k - n, k - i, rn->read[j]))
				r->last[r->now[rn->read[j]]] = k;
	}
}

/* Whether instance y is the first result of a clone that a kernel made. */
static bool
is_always(const struct remat *r, int32_t y)
{
	const struct rnode *n = &r->node[r->step[r->first[y]].node];

	return n->always >= 0 && n->write[n->always] == r->of_inst[y];
}

int32_t
remat_in_passing(const struct remat *r, const struct rstep *t)
{
	const struct rnode *n = &r->node[t->node];

	return t->makes && n->always >= 0 && !(t->makes >> n->always & 1)
		? n->write[n->always] : -1;
}

/* With r->only the first instance stands for all that others make. */
static int32_t
first_instance(struct remat *r)
{
	if (!r->only)
		return 0;
	memset(r->now, 0, (size_t)r->nstore * sizeof *r->now);
	r->of_inst[0] = r->block[0] = 0;
	r->first[0] = -1;
	r->last[0] = INT32_MAX;         /* gives nothing away */
	return 1;
}

static void
find_last(struct remat *r)
{
	r->ninst = first_instance(r);
	for (int32_t k = 0; k < r->nstep; k++) {
		const struct rstep *t = &r->step[k];
		const struct rnode *n = &r->node[t->node];

		if (t->inlined)         /* done by the step that follows */
			continue;
		record_reads(r, k);
		for (int i = 0; i < n->nwrite; i++)
			if (remat_writes(t, i)) {
				int32_t y = r->ninst++;

				r->now[n->write[i]] = y;
				r->of_inst[y] = n->write[i];
				r->first[y] = r->last[y] = k;
			}
	}
	for (int32_t y = r->only != NULL; y < r->ninst; y++) {
		if (r->store[r->of_inst[y]].output)     /* never dies */
			r->last[y] = r->nstep;
		else if (r->last[y] == r->first[y]
		         && r->step[r->first[y]].clone && !is_always(r, y))
			r->first[y] = -1;       /* so it is not made */
		r->block[y] = y;
	}
}

/* Outputs that a step may write over operands; more than a loop has. */
enum { REMAT_OUTPUTS = 16 };

/* The pairs of step k, which has taken in n loops; like fill_node. */
static int
pairs_with(const struct remat *r, int32_t k, int n, int32_t *list)
{
	const Graph *g = r->g;
	Node loop = g->node[r->step[k].node];
	struct inplace_pair pair[REMAT_PAIRS];
	ValId in[LOOP_INPUTS_MAX];
	int count;

	memcpy(in, loop.in, (size_t)loop.nin * sizeof *in);
	for (int i = 1; i <= n; i++)
		loop.nin = inline_operands(&g->node[r->step[k - i].node], in,
		                           loop.nin);
	loop.in = in;
	count = inplace_pairs(g, &loop, pair, REMAT_PAIRS);
	for (int i = 0; i < count; i++) {
		list[2 * i] = r->of_val[loop.out[pair[i].out]];
		list[2 * i + 1] = r->of_val[in[pair[i].in]];
	}
	return count;
}

static void
share_bytes(struct remat *r, int32_t k)
{
	const struct rnode *rn = &r->node[r->step[k].node];
	int32_t given[REMAT_OUTPUTS];   /* bytes given away here */
	int32_t merged[2 * REMAT_PAIRS], *pair = rn->pair;
	int ngiven = 0, npair = rn->npair, n = count_inlined(r, k);

	if (n) {
		pair = merged;
		npair = pairs_with(r, k, n, merged);
	}
	for (int i = 0; i < npair; i++) {
		int32_t y = r->now[pair[2 * i]];
		int32_t x = r->block[r->now[pair[2 * i + 1]]];
		bool taken = ngiven == REMAT_OUTPUTS;

		for (int j = 0; j < ngiven; j++)
			taken |= given[j] == x;
		if (taken || r->first[y] != k || r->block[y] != y
		    || r->last[x] != k)
			continue;
		r->block[y] = x;
		r->last[x] = r->last[y];
		given[ngiven++] = x;
	}
}

/* Outputs over dying operands, in order of execution. */
static void
overlay_outputs(struct remat *r)
{
	int32_t ninst = first_instance(r);

	for (int32_t k = 0; k < r->nstep; k++) {
		const struct rnode *n = &r->node[r->step[k].node];

		for (int i = 0; i < n->nwrite; i++)
			if (remat_writes(&r->step[k], i))
				r->now[n->write[i]] = ninst++;
		if (!r->step[k].inlined && (n->npair || count_inlined(r, k)))
			share_bytes(r, k);
	}
}

/* First step at which the bytes of instance y are free again. */
static inline int32_t
free_step(const struct remat *r, int32_t y)
{
	return r->last[y] < r->nstep ? r->last[y] + 1 : r->nstep;
}

static struct remat_cost
memory_profile(struct remat *r)
{
	struct remat_cost c = { 0, 0, 0, 0 };
	int64_t live = 0;

	memset(r->live, 0, ((size_t)r->nstep + 1) * sizeof *r->live);
	for (int32_t y = 0; y < r->ninst; y++) {
		int64_t size = r->store[r->of_inst[y]].size;

		if (r->block[y] != y || r->first[y] < 0)
			continue;
		r->live[r->first[y]] += size;
		r->live[free_step(r, y)] -= size;
	}
	for (int32_t k = 0; k < r->nstep; k++) {
		const struct rnode *n = &r->node[r->step[k].node];
		bool inlined = r->step[k].inlined;
		int32_t passing = remat_in_passing(r, &r->step[k]);

		live += r->live[k];
		r->live[k] = live + (inlined ? 0 : n->workspace)
			+ (passing < 0 ? 0 : r->store[passing].size);
		if (r->live[k] > r->target)
			c.over += (double)(r->live[k] - r->target);
		if (r->live[k] > c.live) {
			c.live = r->live[k];
			c.tight = k;
		}
		if (r->step[k].clone)
			c.sec += inlined ? n->least_sec : n->sec;
	}
	return c;
}

struct remat_cost
remat_evaluate(struct remat *r)
{
	find_last(r);
	overlay_outputs(r);
	return memory_profile(r);
}

/* ---- placing ---- */

int64_t
remat_packed(struct remat *r, Arena *scratch)
{
	size_t n = 0, most = 2 * (size_t)r->nstep + (size_t)r->ninst;

	if (most > r->buffer_cap) {
		r->buffer = arena_array(r->arena, most, sizeof *r->buffer);
		r->buffer_cap = most;
	}
	for (int32_t y = 0; y < r->ninst; y++)
		if (r->block[y] == y && r->first[y] >= 0)
			r->buffer[n++] = (struct buffer){
				r->first[y], free_step(r, y),
				r->store[r->of_inst[y]].size, 0 };
	for (int32_t k = 0; k < r->nstep; k++) {
		int64_t w = r->node[r->step[k].node].workspace;
		int32_t passing = remat_in_passing(r, &r->step[k]);

		if (w > 0 && !r->step[k].inlined)
			r->buffer[n++] = (struct buffer){ k, k + 1, w, 0 };
		if (passing >= 0)
			r->buffer[n++] = (struct buffer){
				k, k + 1, r->store[passing].size, 0 };
	}
	return pack_within(r->buffer, n, &(struct pack_limit){
		.work = PACK_WORK, .stop = r->watch }, scratch).height;
}
