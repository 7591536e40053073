/* What the steps of a schedule cost: lifetimes, bytes shared in place, live
 * bytes per step, seconds of clones, size of the arena once placed.
 *
 * method  Lifetimes, sharing of bytes in place and scratch follow the rules of
 *         passes inplace and place.
 * cost    linear in the operands of the schedule
 */
#include "ir/loop.h"
#include "passes/remat_model/remat_host.h"
#include "passes/place/place.h"

#include <string.h>

/* Clones inlined into step k stand right before it; how many. */
static int
count_inlined(const struct schedule *w, int32_t k)
{
	int n = 0;

	while (k - n > 0 && w->step[k - n - 1].inlined)
		n++;
	return n;
}

/* Is storage s made by one of the clones in steps `from` to `to`? */
static bool
is_made_between(const struct schedule *w, int32_t from, int32_t to, int32_t s)
{
	for (int32_t k = from; k < to; k++) {
		const struct rnode *rn = &w->r->node[w->step[k].node];

		for (int j = 0; j < rn->nwrite; j++)
			if (rn->write[j] == s)
				return true;
	}
	return false;
}

/* Step k reads what its node and the n clones inlined into it read, but for
 * what a clone before makes: one does not see what a later one makes beside
 * what it is there for. */
static void
record_reads(struct schedule *w, int32_t k, int n)
{
	for (int i = 0; i <= n; i++) {
		const struct rnode *rn = &w->r->node[w->step[k - i].node];

		for (int j = 0; j < rn->nread; j++)
			if (!is_made_between(w, k - n, k - i, rn->read[j])) {
				w->last[w->now[rn->read[j]]] = k;
				if (w->r->host)
					pauses_used(w, w->now[rn->read[j]], k);
			}
	}
}

/* Whether instance y is the first result of a clone that a kernel made. */
static bool
is_always(const struct schedule *w, int32_t y)
{
	const struct rnode *n = &w->r->node[w->step[w->first[y]].node];

	return n->always >= 0 && n->write[n->always] == w->of_inst[y];
}

int32_t
remat_in_passing(const struct remat *r, const struct rstep *t)
{
	const struct rnode *n = &r->node[t->node];

	return t->makes && n->always >= 0 && !(t->makes >> n->always & 1)
		? n->write[n->always] : -1;
}

/* With w->only the first instance stands for all that others make; it gives no
 * bytes away, see find_last. */
static int32_t
first_instance(struct schedule *w)
{
	if (!w->only)
		return 0;
	memset(w->now, 0, (size_t)w->r->nstore * sizeof *w->now);
	w->of_inst[0] = w->block[0] = 0;
	w->first[0] = -1;
	return 1;
}

/* The pairs of step k, which has taken in n loops. */
static int
pairs_with(const struct schedule *w, int32_t k, int n, int32_t *list)
{
	const Graph *g = w->r->g;
	Node loop = g->node[w->step[k].node];
	ValId in[LOOP_INPUTS_MAX];

	memcpy(in, loop.in, (size_t)loop.nin * sizeof *in);
	for (int i = 1; i <= n; i++)
		loop.nin = inline_operands(&g->node[w->step[k - i].node], in,
		                           loop.nin);
	loop.in = in;
	return remat_storage_pairs(w->r, &loop, list);
}

static void
reserve_overlays(struct schedule *w, int n)
{
	struct overlay *old = w->overlay;

	if (w->noverlay + n <= w->overlay_cap)
		return;
	w->overlay_cap = 2 * (w->noverlay + n);
	w->overlay = arena_array(w->arena, (size_t)w->overlay_cap, sizeof *old);
	if (old)
		memcpy(w->overlay, old, (size_t)w->noverlay * sizeof *old);
}

/* What step k, which has taken in n loops, may write over its operands. */
static void
record_overlays(struct schedule *w, int32_t k, int n)
{
	const struct rnode *rn = &w->r->node[w->step[k].node];
	int32_t merged[2 * REMAT_PAIRS], *pair = rn->pair;
	int npair = rn->npair;

	if (n) {
		pair = merged;
		npair = pairs_with(w, k, n, merged);
	}
	reserve_overlays(w, npair);
	for (int i = 0; i < npair; i++) {
		int32_t y = w->now[pair[2 * i]];

		/* else this clone does not make it */
		if (y < w->ninst && w->of_inst[y] == pair[2 * i])
			w->overlay[w->noverlay++] = (struct overlay){ k, y,
				w->now[pair[2 * i + 1]] };
	}
}

static void
find_last(struct schedule *w)
{
	const struct remat *r = w->r;

	w->ninst = first_instance(w);
	w->noverlay = 0;
	if (r->host)
		pauses_open(w);
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rstep *t = &w->step[k];
		const struct rnode *n = &r->node[t->node];
		int inlined;

		if (t->inlined)         /* done by the step that follows */
			continue;
		inlined = count_inlined(w, k);
		record_reads(w, k, inlined);
		for (int i = 0; i < n->nwrite; i++)
			if (remat_writes(t, i)) {
				int32_t y = w->ninst++;

				w->now[n->write[i]] = y;
				w->of_inst[y] = n->write[i];
				w->first[y] = w->last[y] = k;
				if (r->host)
					pauses_made(w, y, k);
			}
		if (n->npair || inlined)
			record_overlays(w, k, inlined);
	}
	if (w->only)
		w->last[0] = INT32_MAX; /* dies at no step */
	for (int32_t y = w->only != NULL; y < w->ninst; y++) {
		if (r->store[w->of_inst[y]].output)     /* never dies */
			w->last[y] = w->nstep;
		else if (w->last[y] == w->first[y]
		         && w->step[w->first[y]].clone && !is_always(w, y))
			w->first[y] = -1;       /* so it is not made */
		w->block[y] = y;
	}
}

/* Outputs that a step may write over operands; more than a loop has. */
enum { REMAT_OUTPUTS = 16 };

/* Outputs over dying operands, in order of execution. */
static void
overlay_outputs(struct schedule *w)
{
	int32_t given[REMAT_OUTPUTS];   /* bytes given away by a step */
	int ngiven = 0;

	for (int32_t i = 0; i < w->noverlay; i++) {
		int32_t k = w->overlay[i].step, y = w->overlay[i].out;
		int32_t x = w->block[w->overlay[i].in];
		bool taken;

		if (i == 0 || w->overlay[i - 1].step != k)
			ngiven = 0;
		taken = ngiven == REMAT_OUTPUTS;
		for (int j = 0; j < ngiven; j++)
			taken |= given[j] == x;
		if (taken || w->first[y] != k || w->block[y] != y
		    || w->last[x] != k)
			continue;
		w->block[y] = x;
		w->last[x] = w->last[y];
		given[ngiven++] = x;
	}
}

/* First step at which the bytes of instance y are free again. */
static inline int32_t
free_step(const struct schedule *w, int32_t y)
{
	return w->last[y] < w->nstep ? w->last[y] + 1 : w->nstep;
}

/* ---- slots ---- */

/* The last step of forward, or of forward and backward. */
static int32_t
boundary_step(const struct schedule *w, bool backward)
{
	int32_t k = w->nstep - 1;

	while (k >= 0 && (w->step[k].clone
	                  || (backward ? w->r->node[w->step[k].node].late
	                      : w->r->node[w->step[k].node].backward)))
		k--;
	return k;
}

static struct pack_slots
slots_of_steps(const struct schedule *w)
{
	const struct remat *r = w->r;

	return (struct pack_slots){ boundary_step(w, false), r->slots,
		r->weight_slots ? boundary_step(w, true) : 0,
		r->through_slots, r->weight_slots, r->more_slots };
}

/* Bytes of a slot of each pool. */
static void
slot_bytes(const struct schedule *w, const struct pack_slots *slots,
           int64_t bytes[POOLS])
{
	memset(bytes, 0, POOLS * sizeof *bytes);
	for (int32_t y = 0; y < w->ninst; y++) {
		enum pack_pool pool = pack_pool_of(slots, w->first[y],
		                                   w->last[y]);

		if (w->block[y] == y && w->first[y] >= 0 && pool != POOL_NONE)
			bytes[pool] += w->r->store[w->of_inst[y]].size;
	}
}

/* Bytes of all slots but those of the micro-batch that runs. */
static int64_t
other_slot_bytes(const struct schedule *w)
{
	struct pack_slots slots = slots_of_steps(w);
	int64_t bytes[POOLS];

	slot_bytes(w, &slots, bytes);
	return pack_other_slots(&slots, bytes);
}

int64_t
schedule_slot_bytes(const struct schedule *w)
{
	struct pack_slots slots = slots_of_steps(w);
	int64_t bytes[POOLS];

	slot_bytes(w, &slots, bytes);
	return bytes[POOL_FIRST];
}

/* Bytes of the arena by step. */
static void
sum_live_bytes(struct schedule *w)
{
	const struct remat *r = w->r;
	int64_t live = 0;

	memset(w->live, 0, ((size_t)w->nstep + 1) * sizeof *w->live);
	for (int32_t y = 0; y < w->ninst; y++) {
		int64_t size = r->store[w->of_inst[y]].size;

		if (w->block[y] != y || w->first[y] < 0)
			continue;
		w->live[w->first[y]] += size;
		w->live[free_step(w, y)] -= size;
	}
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rnode *n = &r->node[w->step[k].node];
		int32_t passing = remat_in_passing(r, &w->step[k]);

		live += w->live[k];
		w->live[k] = live + (w->step[k].inlined ? 0 : n->workspace)
			+ (passing < 0 ? 0 : r->store[passing].size);
	}
	if (r->host)
		pauses_take(w);
}

static struct remat_cost
memory_profile(struct schedule *w)
{
	const struct remat *r = w->r;
	struct remat_cost c = { 0, 0, 0, 0 };

	sum_live_bytes(w);
	for (int32_t k = 0; k < w->nstep; k++) {
		const struct rnode *n = &r->node[w->step[k].node];
		int64_t all = w->live[k] + w->other_slots;

		if (all > w->target)
			c.over += (double)(all - w->target);
		if (all > c.live) {
			c.live = all;
			c.tight = k;
		}
		if (w->step[k].clone)
			c.sec += w->step[k].inlined ? n->least_sec : n->sec;
	}
	return c;
}

struct remat_cost
schedule_measure(struct schedule *w)
{
	find_last(w);
	overlay_outputs(w);
	w->other_slots = (w->r->slots > 1 || w->r->weight_slots
	                  || w->r->more_slots) && !w->only
		? other_slot_bytes(w) : 0;
	w->cost = memory_profile(w);
	return w->cost;
}

/* ---- placing ---- */

int64_t
schedule_packed(const struct schedule *w, Arena *scratch)
{
	const struct remat *r = w->r;
	size_t n = 0, most = 2 * (size_t)w->nstep + (size_t)w->ninst;
	struct buffer *b = arena_array(scratch, most + 1, sizeof *b);

	if (r->host)                    /* whoever offloads places it */
		return w->cost.live;
	for (int32_t y = 0; y < w->ninst; y++)
		if (w->block[y] == y && w->first[y] >= 0)
			b[n++] = (struct buffer){
				w->first[y], free_step(w, y),
				r->store[w->of_inst[y]].size, 0 };
	for (int32_t k = 0; k < w->nstep; k++) {
		int64_t bytes = r->node[w->step[k].node].workspace;
		int32_t passing = remat_in_passing(r, &w->step[k]);

		if (bytes > 0 && !w->step[k].inlined)
			b[n++] = (struct buffer){ k, k + 1, bytes, 0 };
		if (passing >= 0)
			b[n++] = (struct buffer){
				k, k + 1, r->store[passing].size, 0 };
	}
	return pack_with_slots(b, n, slots_of_steps(w),
		&(struct pack_limit){ .work = PACK_WORK, .stop = r->watch },
		scratch);
}
