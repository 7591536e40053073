/* Messages about sharding strategies: replicated ops with the reason, and the
 * numbers of ranks that work.
 */
#include "passes/tensor_parallel/strategies.h"

#include <stdio.h>

enum { RANKS_MAX = 16, SHOWN = 8 };

/* ---- matrices ---- */

static bool
is_shardable(const struct shard *s, ValId v)
{
	for (int i = 0; i < s->source[v].n; i++)
		if (s->source[v].strategy[i].at[0].kind == PLACEMENT_SHARD)
			return true;
	return false;
}

/* The fraction of the bytes in matrices that can be sharded. */
static double
shardable_fraction(const struct shard *s)
{
	double all = 0, sharded = 0;

	FOR_VALS (v, s->g)
		if (shard_is_matrix(v)) {
			double bytes = (double)val_data_bytes(v);

			all += bytes;
			sharded += is_shardable(s, val_id(s->g, v)) ? bytes : 0;
		}
	return all > 0 ? sharded / all : 0;
}

/* Numbers of ranks, given as bits, in words: "2, 4 to 8"; NULL: none. */
static const char *
ranks_text(Arena *arena, uint32_t works, const char *between)
{
	const char *text = NULL, *sep = "";

	for (int t = 2, end; t <= RANKS_MAX; t = end + 1) {
		for (end = t; works >> end & 1; end++)
			;
		if (end == t)
			continue;
		text = end - t < 3
			? arena_printf(arena, "%s%s%d", text ? text : "", sep,
			               t)
			: arena_printf(arena, "%s%s%d to %d", text ? text : "",
			               sep, t, end - 1);
		if (end - t < 3)
			end = t;
		sep = between;
	}
	return text;
}

/* A matrix that cannot be sharded over --tp ranks. */
struct unsharded_matrix {
	ValId v;
	uint32_t works[MAX_RANK];       /* by axis: valid numbers of ranks */
};

/* The first such matrices; *n: their total number. */
static struct unsharded_matrix *
find_unsharded(const struct shard *s, int *n)
{
	struct unsharded_matrix *list = arena_array(s->tmp, SHOWN,
	                                            sizeof *list);

	*n = 0;
	FOR_VALS (v, s->g) {
		if (!shard_is_matrix(v) || is_shardable(s, val_id(s->g, v)))
			continue;
		if (*n < SHOWN)
			list[*n].v = val_id(s->g, v);
		++*n;
	}
	return list;
}

/* Record the axes that strategies of s shard over s->ranks ranks. */
static void
record_axes(const struct shard *s, struct unsharded_matrix *list, int n)
{
	for (int i = 0; i < n; i++) {
		const struct strategy_set *c = &s->source[list[i].v];

		for (int k = 0; k < c->n; k++)
			if (c->strategy[k].at[0].kind == PLACEMENT_SHARD)
				list[i].works[c->strategy[k].at[0].axis]
					|= 1u << s->ranks;
	}
}

static void
list_unsharded(const struct shard *s, const struct unsharded_matrix *list,
               int n)
{
	for (int i = 0; i < n; i++) {
		const Val *v = &s->g->val[list[i].v];
		const char *axes = NULL;
		char text[160];

		for (int k = 0; k < v->shape.rank; k++) {
			const char *by = ranks_text(s->tmp, list[i].works[k],
			                            ", ");

			if (by)
				axes = arena_printf(s->tmp, "%s%s axis %d by "
					"%s", axes ? axes : "", axes ? ";" : "",
					k, by);
		}
		diag_more(s->pass->diag, "  %s %s:%s", v->name, shape_text(text,
		          sizeof text, v->dt, &v->shape),
		          axes ? axes : " none");
	}
}

bool
shard_check_fraction(struct shard *s)
{
	double share = shardable_fraction(s);
	struct unsharded_matrix *list;
	uint32_t works = 0;
	int n, shown;

	if (share >= 0.5)
		return true;
	list = find_unsharded(s, &n);
	shown = n < SHOWN ? n : SHOWN;
	for (int t = 2; t <= RANKS_MAX; t++) {
		struct shard other = *s;

		other.ranks = t;
		shard_find_strategies(&other);
		record_axes(&other, list, shown);
		works |= (uint32_t)(shardable_fraction(&other) >= 0.5) << t;
	}
	diag_error(s->pass->diag, "--tp %lld: only %.0f %% of the bytes in "
	           "matrices can be sharded over this many ranks, expected "
	           "half or more; numbers of ranks up to %d that the other "
	           "matrices allow:",
	           (long long)s->ranks, 100 * share, RANKS_MAX);
	list_unsharded(s, list, shown);
	if (n > shown)
		diag_more(s->pass->diag, "  and %d more", n - shown);
	if (!works)
		return diag_more(s->pass->diag, "no --tp up to %d works",
		                 RANKS_MAX);
	return diag_more(s->pass->diag, "--tp that works: %s",
	                 ranks_text(s->tmp, works, ", "));
}

/* ---- replicated nodes ---- */

static bool
is_node_sharded(const struct shard *s, NodeId id)
{
	const struct strategy_set *c = &s->node[id];
	const Node *n = &s->g->node[id];

	for (int p = 0; p < n->nin + n->nout; p++)
		if (c->strategy[c->chosen].at[p].kind == PLACEMENT_SHARD)
			return true;
	return false;
}

/* Whole heads on every rank, of keys too: some each, or one for several. */
static bool
divides_heads(int64_t t, int64_t heads, int64_t keys)
{
	return heads % t == 0 && (keys % t == 0 || t % keys == 0);
}

static void
note_heads(const struct shard *s)
{
	int64_t heads = 0, keys = 0;
	uint32_t works = 0;
	const char *text, *over = "";

	FOR_NODES (n, s->g)
		if (sharding_rule_of[n->op] == sharding_heads
		    && !is_node_sharded(s, node_id(s->g, n))) {
			heads = s->g->val[n->in[0]].shape.dim[1];
			keys = s->g->val[n->in[1]].shape.dim[1];
		}
	if (heads < 1 || keys < 1 || divides_heads(s->ranks, heads, keys))
		return;
	for (int t = 2; t <= heads && t <= RANKS_MAX; t++)
		works |= (uint32_t)divides_heads(t, heads, keys) << t;
	text = ranks_text(s->tmp, works, " or ");
	if (keys != heads)
		over = arena_printf(s->tmp, " and %lld key heads",
		                    (long long)keys);
	diag_note(s->pass->diag, "attention with %lld heads%s is replicated on "
	          "%lld ranks%s%s%s", (long long)heads, over,
	          (long long)s->ranks, text ? "; --tp " : "",
	          text ? text : "", text ? " divides the heads" : "");
}

/* Ops without a rule, through which a gradient passes. */
static void
note_unknown(const struct shard *s)
{
	int count[OP_COUNT] = { 0 };
	char text[256] = "";
	size_t at = 0;

	FOR_NODES (n, s->g)
		if (sharding_rule_of[n->op] == sharding_none && n->nout
		    && s->grad[n->out[0]])
			count[n->op]++;
	for (int op = 0; op < OP_COUNT && at < sizeof text - 40; op++)
		if (count[op])
			at += (size_t)snprintf(text + at, sizeof text - at,
			                       "%s%d %s", at ? ", " : "",
			                       count[op], op_info[op].text);
	if (at)
		diag_note(s->pass->diag, "replicated on every rank, because "
		          "these ops have no sharding rule: %s", text);
}

void
shard_note_replicated(struct shard *s)
{
	note_heads(s);
	note_unknown(s);
}
