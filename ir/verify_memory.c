/* The verifier: memory.  Whether values lie within their owners, and owners in
 * the arena.
 *
 * in      a graph without faults of structure
 * out     faults; or what a graph shows of its layout
 */
#include "ir/verify.h"

enum { ALIGN = 64 };

/* Repeated nodes may take sums of sizes above what layout allows, but nowhere
 * near 2^62. */
static const int64_t most = 4 * GRAPH_BYTES_MAX;

static void
check_laid_out(struct verify *c, const Val *v)
{
	const Graph *g = c->g;
	const Val *owner = v->base ? &g->val[v->base] : v;
	int size = dtype_info[v->dt].nbytes;
	int64_t first, last;

	if (!v->laid_out) {
		bad(c, NULL, v, "is not laid out");
		return;
	}
	if (owner->base || !owner->laid_out || !is_live(owner)) {
		bad(c, NULL, v, "lies in %s, which is no owner", owner->name);
		return;
	}
	if (dtype_info[owner->dt].nbytes != size)
		bad(c, NULL, v, "lies in %s of another element size",
		    owner->name);
	if (!v->base && (v->nbytes < 0 || v->nbytes % ALIGN))
		bad(c, NULL, v, "occupies %lld bytes, not a multiple of %d",
		    (long long)v->nbytes, ALIGN);
	if (val_nelem(v) == 0)
		return;
	if (!val_reach(v, &first, &last) || first < 0
	    || last >= owner->nbytes / size)
		bad(c, NULL, v, "elements %lld..%lld leave %s of %lld bytes",
		    (long long)first, (long long)last, owner->name,
		    (long long)owner->nbytes);
}

static bool
overflows(int64_t *total, int64_t nbytes)
{
	return nbytes > 0 && (!add_ok(*total, nbytes, total) || *total > most);
}

/* Sums of sizes are not checked one by one later on. */
static void
check_total(struct verify *c)
{
	int64_t total = 0, scratch = 0;

	FOR_VALS (v, c->g)
		if (v->laid_out && !v->base && overflows(&total, v->nbytes)) {
			bad(c, NULL, v, "the values up to it take more than "
			    "2^62 bytes");
			return;
		}
	FOR_NODES (n, c->g)
		if (overflows(&scratch, n->workspace)) {
			bad(c, n, NULL, "scratch memory up to it is above "
			    "2^62 bytes");
			return;
		}
}

static bool
in_arena(const Val *v)
{
	return v->kind == V_TEMP && v->def && !v->base && !v->resident;
}

/* Values that are read or written, and those that stay for themselves. */
static bool *
used_values(Arena *tmp, const Graph *g)
{
	bool *used = arena_array(tmp, g->nval, sizeof *used);

	FOR_VALS (v, g)
		used[val_id(g, v)] = v->def || v->output;
	FOR_NODES (n, g)
		for (int i = 0; i < n->nin; i++)
			used[n->in[i]] = true;
	used[0] = false;
	return used;
}

void
verify_layout(struct verify *c)
{
	const bool *used = used_values(c->tmp, c->g);

	FOR_VALS (v, c->g)
		if (used[val_id(c->g, v)] && val_data_bytes(v) >= 0)
			check_laid_out(c, v);
	check_total(c);
}

static bool
is_place(int64_t at)
{
	return at >= 0 && at % ALIGN == 0 && at <= most;
}

void
verify_placed(struct verify *c)
{
	FOR_VALS (v, c->g)
		if (in_arena(v) && !is_place(v->offset))
			bad(c, NULL, v, "lies at %lld", (long long)v->offset);
	FOR_NODES (n, c->g)
		if (n->workspace > 0 && !is_place(n->workspace_at))
			bad(c, n, NULL, "scratch memory lies at %lld",
			    (long long)n->workspace_at);
}

uint32_t
verify_memory_props(const Graph *g)
{
	Arena *tmp = arena_new();
	const bool *used = used_values(tmp, g);
	uint32_t props = g->nnode > 1 ? P_LAYOUT | P_PLACED : 0;

	FOR_VALS (v, g) {
		if (used[val_id(g, v)] && !v->laid_out)
			props = 0;
		if (in_arena(v) && v->offset < 0)
			props &= ~(uint32_t)P_PLACED;
	}
	FOR_NODES (n, g)
		if (n->workspace > 0 && n->workspace_at < 0)
			props &= ~(uint32_t)P_PLACED;
	arena_free(tmp);
	return props;
}
