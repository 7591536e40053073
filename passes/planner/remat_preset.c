/* Presets, --keep and --recompute-values as sets of dropped storages.
 *
 * what    none: keep everything but what is gathered from other ranks, which is
 *         gathered again, and copies of weights, which are made again.
 *         full: keep the inputs of layers only.
 *         every=K: of every K-th layer.  selective: recompute the core of
 *         attention (the attention node, or softmax and what has its shape).
 *         Globs on names of ONNX nodes and values force single storages.
 */
#include "passes/remat_model/remat_model.h"

#include <string.h>

static void
drop_all_but(const struct remat *r, int64_t k, uint8_t *drop)
{
	for (int32_t s = 0; s < r->nstore; s++)
		drop[s] = r->store[s].candidate;
	for (int32_t i = 0; i < r->nlayer; i++)
		if (i % k == 0) {
			drop[r->layer[i]] = 0;
			if (r->layer_other[i] >= 0)
				drop[r->layer_other[i]] = 0;
		}
}

/* What was gathered from all ranks is no activation: its piece is, and from
 * that it is gathered again.  Neither is a weight in another type. */
static void
drop_copies(const struct remat *r, uint8_t *drop)
{
	for (int32_t s = 0; s < r->nstore; s++) {
		ValId v = r->store[s].owner;
		const Node *n = &r->g->node[r->g->val[v].def];
		int32_t piece = n->op == OP_ALL_GATHER ? r->of_val[n->in[0]]
			: -1;

		if (!r->store[s].candidate || drop[s]
		    || (piece < 0 && !val_param_of(r->g, v)))
			continue;
		drop[s] = 1;
		if (piece >= 0)
			drop[piece] = 0;
	}
}

/* Softmax outputs, and values as large as they are, exist per pair of
 * positions. */
static void
drop_core(const struct remat *r, Arena *arena, uint8_t *drop)
{
	const Graph *g = r->g;
	const Shape **core = arena_array(arena, g->nnode, sizeof *core);
	int32_t n = 0;

	for (NodeId i = 1; i < g->nnode && !r->node[i].backward; i++) {
		const Shape *s = &g->val[g->node[i].out[0]].shape;

		if (g->node[i].op == OP_SOFTMAX
		    && (n == 0 || !shape_eq(core[n - 1], s)))
			core[n++] = s;
	}
	for (int32_t s = 0; s < r->nstore; s++) {
		const Val *v = &g->val[r->store[s].owner];
		bool is = g->node[v->def].op == OP_ATTENTION;

		for (int32_t i = 0; v->shape.rank >= 3 && i < n && !is; i++)
			is = shape_eq(core[i], &v->shape);
		if (r->store[s].candidate && is)
			drop[s] = 1;
	}
}

void
remat_preset(const struct remat *r, const uint8_t *constraint,
             enum remat_mode mode, int64_t every, uint8_t *drop)
{
	Arena *arena = arena_new();

	remat_keep_all(r, constraint, drop);
	drop_copies(r, drop);
	switch (mode) {
	case REMAT_FULL:
	case REMAT_EVERY:
		drop_all_but(r, mode == REMAT_FULL || every < 1 ? 1 : every,
		             drop);
		break;
	case REMAT_SELECTIVE:
		drop_core(r, arena, drop);
		break;
	default:
		break;
	}
	for (int32_t s = 0; s < r->nstore; s++)
		if (constraint[s])
			drop[s] = constraint[s] == 'r';
	arena_free(arena);
}

/* ---- the user's constraints ---- */

static bool
names_storage(const struct remat *r, const char *glob, int32_t s)
{
	const Graph *g = r->g;
	const Node *n = &g->node[r->store[s].def];

	for (int i = 0; i < n->norigin; i++)
		if (glob_match(glob, g->origin[n->origin[i]].name))
			return true;
	FOR_VALS (v, g)
		if (r->of_val[val_id(g, v)] == s && v->def
		    && g->node[v->def].phase == PH_FORWARD
		    && (glob_match(glob, v->name)
		        || (v->onnx && glob_match(glob, v->onnx))))
			return true;
	return false;
}

/* Whether a forward node of the graph, or a result of one, has such a name. */
static bool
names_forward(const Graph *g, const char *glob)
{
	bool any = false;

	FOR_NODES (n, g)
		for (int i = 0; i < n->norigin && n->phase == PH_FORWARD; i++)
			any |= glob_match(glob, g->origin[n->origin[i]].name);
	FOR_VALS (v, g)
		any |= v->def && g->node[v->def].phase == PH_FORWARD
			&& (glob_match(glob, v->name)
			    || (v->onnx && glob_match(glob, v->onnx)));
	return any;
}

/* whole: what the graph is a stage of; NULL: it is none. */
static bool
apply_constraint(Diag *d, const struct remat *r, const Graph *whole,
                 const char *flag, const char *glob, uint8_t what,
                 uint8_t *constraint)
{
	int matched = 0, possible = 0;

	for (int32_t s = 0; s < r->nstore; s++) {
		if (r->node[r->store[s].def].backward
		    || (whole && node_is_message(&r->g->node[r->store[s].def]))
		    || !names_storage(r, glob, s))
			continue;
		matched++;
		if (constraint[s] && constraint[s] != what)
			return diag_error(d, "%s '%s': value '%s' cannot be "
			                  "both kept and recomputed",
			                  flag, glob,
			                  r->g->val[r->store[s].owner].name);
		if (what == 'r' && !r->store[s].candidate)
			continue;
		possible++;
		if (r->store[s].candidate)
			constraint[s] = what;
	}
	if (!matched && whole && names_forward(whole, glob))
		return true;            /* on another stage */
	if (!matched)
		return diag_error(d, "%s '%s' matches no value that the "
		                  "forward pass stores, and no node that "
		                  "computes one", flag, glob);
	if (!possible)
		return diag_error(d, "%s '%s' matches only values that cannot "
		                  "be recomputed: they are outputs of the "
		                  "step, or their ops update state",
		                  flag, glob);
	return true;
}

/* What is computed again is not offloaded, too. */
static bool
check_offloaded(Diag *d, const struct remat *r, const char *glob,
                const uint8_t *constraint)
{
	for (int32_t s = 0; s < r->nstore; s++)
		if (constraint[s] == 'r' && names_storage(r, glob, s))
			return diag_error(d, "--offload-values '%s': value "
			                  "'%s' cannot be both offloaded and "
			                  "recomputed", glob,
			                  r->g->val[r->store[s].owner].name);
	return true;
}

bool
remat_constraints(Pass *p, const struct remat *r, uint8_t *constraint)
{
	const struct name_list *keep = &p->opt->keep;
	const struct name_list *recompute = &p->opt->recompute;
	const struct name_list *offload = &p->opt->offload_values;
	bool ok = true;

	for (int i = 0; i < keep->n; i++)
		ok &= apply_constraint(p->diag, r, p->whole, "--keep",
		                       keep->v[i], 'k', constraint);
	for (int i = 0; i < recompute->n; i++)
		ok &= apply_constraint(p->diag, r, p->whole,
		                       "--recompute-values", recompute->v[i],
		                       'r', constraint);
	for (int i = 0; i < offload->n && ok; i++)
		ok &= check_offloaded(p->diag, r, offload->v[i], constraint);
	return ok;
}
