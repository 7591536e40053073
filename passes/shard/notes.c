/* What the user is told of a layout: what stays whole and why, which numbers
 * of ranks would do.
 */
#include "passes/shard/shard.h"

#include <stdio.h>
#include <string.h>

enum { RANKS_MAX = 16, SHOWN = 5 };

static const char *const rule_of[OP_COUNT] = {
	[OP_NONE] = "none",
#define OP(id, text, sig, attr, rules, emit) [OP_##id] = rules,
#define RULES(shape, eval, lanes, cost, grad, shard) #shard
#include "ir/ops.h"
};

/* ---- matrices ---- */

static bool
can_cut(const struct shard *s, ValId v)
{
	for (int i = 0; i < s->source[v].n; i++)
		if (s->source[v].way[i].at[0].kind == SPLIT_S)
			return true;
	return false;
}

/* The share of the bytes in matrices that can be cut. */
static double
cut_share(const struct shard *s)
{
	double all = 0, cut = 0;

	FOR_VALS (v, s->g)
		if (shard_is_matrix(v)) {
			double bytes = (double)val_data_bytes(v);

			all += bytes;
			cut += can_cut(s, val_id(s->g, v)) ? bytes : 0;
		}
	return all > 0 ? cut / all : 0;
}

static void
list_whole(const struct shard *s)
{
	int shown = 0, more = 0;

	FOR_VALS (v, s->g) {
		char text[160];

		if (!shard_is_matrix(v) || can_cut(s, val_id(s->g, v)))
			continue;
		if (shown++ >= SHOWN) {
			more++;
			continue;
		}
		shape_text(text, sizeof text, v->dt, &v->shape);
		diag_more(s->pass->diag, "  %s %s: none of its axes, as it is "
		          "read, is cut into %lld", v->name, text,
		          (long long)s->ranks);
	}
	if (more)
		diag_more(s->pass->diag, "  and %d more", more);
}

bool
shard_check_share(struct shard *s)
{
	double share = cut_share(s);
	char works[128] = "";
	size_t at = 0;

	if (share >= 0.5)
		return true;
	diag_error(s->pass->diag, "--tp %lld: only %.0f %% of the bytes in "
	           "matrices can be cut over so many ranks, expected half or "
	           "more", (long long)s->ranks, 100 * share);
	list_whole(s);
	for (int64_t t = 2; t <= RANKS_MAX; t++) {
		struct shard other = *s;

		other.ranks = t;
		shard_find_ways(&other);
		if (cut_share(&other) >= 0.5 && at < sizeof works - 16)
			at += (size_t)snprintf(works + at, sizeof works - at,
			                       "%s%lld", at ? ", " : "",
			                       (long long)t);
	}
	return diag_more(s->pass->diag, at ? "--tp that works: %s"
	                 : "no --tp up to 16 works%s", works);
}

/* ---- what runs whole ---- */

static bool
is_cut(const struct shard *s, NodeId id)
{
	const struct choice *c = &s->node[id];
	const Node *n = &s->g->node[id];

	for (int p = 0; p < n->nin + n->nout; p++)
		if (c->way[c->chosen].at[p].kind == SPLIT_S)
			return true;
	return false;
}

static void
note_heads(const struct shard *s)
{
	int64_t heads = 0;
	char works[64] = "";
	size_t at = 0;

	FOR_NODES (n, s->g)
		if (strcmp(rule_of[n->op], "heads") == 0
		    && !is_cut(s, node_id(s->g, n)))
			heads = s->g->val[n->in[0]].shape.dim[1];
	for (int64_t t = 2; t <= heads && t <= RANKS_MAX; t++)
		if (heads % t == 0)
			at += (size_t)snprintf(works + at, sizeof works - at,
			                       "%s%lld", at ? " or " : "",
			                       (long long)t);
	if (heads && heads % s->ranks)
		diag_note(s->pass->diag, "attention of %lld heads runs whole "
		          "on each of %lld ranks: --tp %s divides them",
		          (long long)heads, (long long)s->ranks, works);
}

/* Ops without a rule, through which a gradient passes. */
static void
note_unknown(const struct shard *s)
{
	int count[OP_COUNT] = { 0 };
	char text[256] = "";
	size_t at = 0;

	FOR_NODES (n, s->g)
		if (strcmp(rule_of[n->op], "none") == 0 && n->nout
		    && s->grad[n->out[0]])
			count[n->op]++;
	for (int op = 0; op < OP_COUNT && at < sizeof text - 40; op++)
		if (count[op])
			at += (size_t)snprintf(text + at, sizeof text - at,
			                       "%s%d %s", at ? ", " : "",
			                       count[op], op_info[op].text);
	if (at)
		diag_note(s->pass->diag, "whole on every rank, since there is "
		          "no way to cut them: %s", text);
}

void
shard_note(struct shard *s)
{
	note_heads(s);
	note_unknown(s);
}
