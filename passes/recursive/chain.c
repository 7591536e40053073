/* A forward graph as a chain of parts, and sequences that go through it.
 *
 * what    parts of the forward graph between storages at which a single
 *         activation crosses ("cuts"); a builder of sequences out of sweeps
 *         that make a cut from an earlier one and of the backward of parts
 * method  a sweep makes its targets again with all that they miss and forgets
 *         the rest.  Backward of a part makes what is missing before each
 *         node, as the storages' flags say.  Values that cross parts without
 *         depending on parameters (masks, tables) are "far": held throughout,
 *         or made again for each part.
 * needs   the backward of parts in falling order; where it is not, values are
 *         made again on demand and only the costs are misjudged
 */
#include "passes/recursive/chain.h"

#include <string.h>

/* ---- parts ---- */

static bool
may_drop(const struct chain *c, int32_t s)
{
	return c->r->store[s].candidate && c->constraint[s] != 'k';
}

static bool
ends_part(const struct chain *c, int32_t s)
{
	return c->part_of[s] >= 0 && c->cut[c->part_of[s]] == s;
}

/* Cuts that are neither to be kept nor to be dropped in any case; no more of
 * them than there may be parts. */
static int32_t
choose_cuts(struct chain *c, int32_t *cut, NodeId *behind, Arena *a)
{
	int32_t n = remat_cuts(c->r, a, cut, behind), kept = 0, every;

	for (int32_t i = 0; i < n; i++)
		if (may_drop(c, cut[i]) && !c->constraint[cut[i]]) {
			cut[kept] = cut[i];
			behind[kept++] = behind[i];
		}
	every = kept / CHAIN_PARTS + 1;
	n = kept;
	kept = 0;
	for (int32_t i = every - 1; i < n; i += every) {
		cut[kept] = cut[i];
		behind[kept++] = behind[i];
	}
	return kept;
}

static void
assign_parts(struct chain *c, const NodeId *behind, Arena *a)
{
	const struct remat *r = c->r;
	int32_t *of_node = arena_array(a, r->nnode, 4), part = 0;

	for (NodeId i = 1; i < r->nnode; i++) {
		const struct rnode *n = &r->node[i];

		if (n->backward)
			continue;
		while (part + 1 < c->npart && i > behind[part])
			part++;
		of_node[i] = part;
		for (int k = 0; k < n->nwrite; k++)
			c->part_of[n->write[k]] = part;
		for (int k = 0; k < n->nread; k++) {
			int32_t s = n->read[k], p = c->part_of[s];

			c->far[s] |= p >= 0 && p != part
				&& !(c->cut[p] == s && part == p + 1);
		}
	}
	/* a cut that is made before its part begins ends it all the same */
	for (int32_t i = 0; i + 1 < c->npart; i++)
		c->part_of[c->cut[i]] = i;
}

static void
list_stores(struct chain *c, Arena *a)
{
	const struct remat *r = c->r;
	int32_t *at;

	c->store_at = at = arena_array(a, (size_t)c->npart + 2, 4);
	c->store = arena_array(a, (size_t)r->nstore + 1, 4);
	for (int32_t s = 0; s < r->nstore; s++)
		if (c->part_of[s] >= 0)
			at[c->part_of[s] + 1]++;
	for (int32_t i = 0; i < c->npart; i++)
		at[i + 1] += at[i];
	for (int32_t s = 0; s < r->nstore; s++)
		if (c->part_of[s] >= 0)
			c->store[at[c->part_of[s]]++] = s;
	for (int32_t i = c->npart; i > 0; i--)
		at[i] = at[i - 1];
	at[0] = 0;
}

/* Backward nodes belong to the earliest part that was read so far. */
static void
assign_backward(struct chain *c)
{
	const struct remat *r = c->r;
	int32_t part = c->npart - 1;

	for (NodeId i = 1; i < r->nnode; i++) {
		const struct rnode *n = &r->node[i];

		if (!n->backward)
			continue;
		if (!c->begin)
			c->begin = i;
		for (int k = 0; k < n->nread; k++) {
			int32_t s = n->read[k], p = c->part_of[s];

			if (p < 0)
				continue;
			c->last[s] = i;
			if (c->far[s])
				continue;
			p += ends_part(c, s);
			part = p < part ? p : part;
		}
		c->backward_part[i] = part;
	}
}

struct chain *
chain_new(const struct remat *r, const uint8_t *constraint,
          struct step_list *out, Arena *a)
{
	struct chain *c = arena_alloc(a, sizeof *c);
	size_t n = (size_t)r->nstore + 1, m = r->nnode;
	NodeId *behind = arena_array(a, m + 1, sizeof *behind);

	c->r = r;
	c->constraint = constraint;
	rerun_open(&c->run, r, out, a);
	c->trial = schedule_new(r, a);
	c->cut = arena_array(a, m + 1, 4);
	c->npart = choose_cuts(c, c->cut, behind, a) + 1;
	if (c->npart < 3)
		return NULL;
	c->cut[c->npart - 1] = -1;
	c->part_of = arena_array(a, n, 4);
	memset(c->part_of, -1, n * 4);
	c->flag = arena_array(a, n, 1);
	c->far = arena_array(a, n, 1);
	c->backward_part = arena_array(a, m, 4);
	c->last = arena_array(a, n, sizeof *c->last);
	c->cost = arena_array(a, (size_t)c->npart, sizeof *c->cost);
	assign_parts(c, behind, a);
	list_stores(c, a);
	assign_backward(c);
	for (int32_t s = 0; s < r->nstore; s++)
		if (constraint[s] == 'r')
			c->flag[s] = CHAIN_DROP;
	return c;
}

/* ---- building ---- */

bool
chain_on_tape(const struct chain *c, int32_t s)
{
	return may_drop(c, s) && c->last[s] && c->flag[s] == CHAIN_HOLD
		&& !c->far[s] && !ends_part(c, s);
}

/* Outputs that are missing and that backward reads later. */
static uint32_t
outputs_read_later(void *data, const struct rnode *n)
{
	const struct chain *c = data;
	uint32_t makes = 0;

	for (int i = 0; i < n->nwrite; i++) {
		int32_t s = n->write[i];

		if (!c->run.here[s] && c->last[s] >= c->next
		    && c->flag[s] != CHAIN_AGAIN)
			makes |= (uint32_t)1 << i;
	}
	return makes;
}

void
chain_begin(struct chain *c)
{
	const struct remat *r = c->r;

	c->run.ok = true;
	c->run.out->n = c->run.nmade = 0;
	c->next = c->begin;
	for (NodeId i = 1; i < c->begin; i++)
		rerun_first(&c->run, i);
	for (int32_t s = 0; s < r->nstore; s++)
		c->run.here[s] = !may_drop(c, s)
			|| (c->far[s] && c->flag[s] == CHAIN_HOLD);
}

void
chain_hold_cut(struct chain *c, int32_t part)
{
	if (c->cut[part] >= 0)
		c->run.here[c->cut[part]] = true;
}

void
chain_hold_tape(struct chain *c, int32_t part)
{
	for (int32_t k = c->store_at[part]; k < c->store_at[part + 1]; k++)
		if (chain_on_tape(c, c->store[k]))
			c->run.here[c->store[k]] = true;
	chain_hold_cut(c, part);
}

/* Forget what was made on the way. */
static void
keep_only(struct chain *c, int32_t part, bool tape)
{
	for (int32_t k = 0; k < c->run.nmade; k++) {
		int32_t s = c->run.made[k];

		if (s != c->cut[part] && !(tape && c->part_of[s] == part
		                           && chain_on_tape(c, s)))
			c->run.here[s] = false;
	}
	c->run.nmade = 0;
}

void
chain_sweep(struct chain *c, int32_t part)
{
	rerun_begin(&c->run);
	if (c->cut[part] >= 0)
		rerun_want(&c->run, c->cut[part]);
	rerun_missing(&c->run, NULL, NULL);
	keep_only(c, part, false);
}

void
chain_sweep_tape(struct chain *c, int32_t part, bool cut)
{
	rerun_begin(&c->run);
	for (int32_t k = c->store_at[part]; k < c->store_at[part + 1]; k++)
		if (chain_on_tape(c, c->store[k]))
			rerun_want(&c->run, c->store[k]);
	if (cut && c->cut[part] >= 0)
		rerun_want(&c->run, c->cut[part]);
	rerun_missing(&c->run, NULL, NULL);
	keep_only(c, part, true);
}

/* One node of backward, what it misses first. */
static void
run_backward_node(struct chain *c, NodeId i)
{
	const struct rnode *n = &c->r->node[i];
	int32_t from = c->run.nmade;

	rerun_begin(&c->run);
	for (int k = 0; k < n->nread; k++)
		rerun_want(&c->run, n->read[k]);
	rerun_missing(&c->run, outputs_read_later, c);
	rerun_first(&c->run, i);
	for (int32_t k = from; k < c->run.nmade;) {
		int32_t s = c->run.made[k];

		if (c->flag[s] == CHAIN_AGAIN) {
			c->run.here[s] = false;
			c->run.made[k] = c->run.made[--c->run.nmade];
		} else {
			k++;
		}
	}
}

void
chain_backward(struct chain *c, int32_t part)
{
	NodeId n = c->r->nnode;

	for (; c->run.ok && c->next < n && (part == 0
	       || c->backward_part[c->next] >= part); c->next++)
		run_backward_node(c, c->next);
	for (int32_t k = 0; k < c->run.nmade; k++)
		c->run.here[c->run.made[k]] = false;
	c->run.nmade = 0;
	for (int32_t k = c->store_at[part]; k < c->store_at[part + 1]; k++) {
		int32_t s = c->store[k];

		if (may_drop(c, s) && !(c->far[s] && c->flag[s] == CHAIN_HOLD))
			c->run.here[s] = false;
	}
}
