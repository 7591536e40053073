/* Adafactor's means over a sharded parameter.
 *
 * Its step of an element takes means over the whole parameter: of squares of
 * the gradient over the element's row and column, of squares of the parameter
 * and of the update over all of it.  Each rank takes them of its piece,
 * divided by what the whole has, and the sums over ranks are the whole's
 * (T5X does the same, Shazeer and Stern 2018 have the formulas):
 *
 *     g -> adafactor_means -> [sum] -.
 *     p, g, states, means -> adafactor_squares -> [sum] -.
 *     p, g, states, means, squares -> adafactor -> p', states'
 *
 * Two rounds, since the update's squares follow from the new means of rows and
 * columns.  A round sends R + C numbers of a matrix of R x C at most, and two;
 * the numbers of all parameters go in one collective.  The other way, gathering
 * parameters and gradients, would send R x C of each and give up what cutting
 * them saves.
 *
 * A mean over a dim that is not cut over the ranks of a replica is complete,
 * and cut as the other dims are; so are the states of rows and columns.  Pieces
 * of replicas (optimizer_shards.c) are stretches of elements and know no rows,
 * so that replicas have all of those two states: they are R + C of R x C
 * numbers.  The state of a vector is one number per element and is cut as the
 * parameter is.
 */
#include "passes/grad/optimizer_shards.h"

/* What ranks or replicas have pieces of. */
static bool
is_sharded_update(const Graph *g, const struct update *u)
{
	return u->cut || g->val[u->param].placement.kind == PLACEMENT_SHARD;
}

/* The rank's shape tells rows and columns. */
static bool
check_factors(const Graph *g, Diag *d, const struct update *u)
{
	const Val *p = &g->val[u->param];

	return p->placement.kind != PLACEMENT_SHARD
		|| p->placement.first_axis == p->placement.axis
		|| p->shape.rank < 2
		|| diag_error(d,
	                      "trained parameter '%s': Adafactor requires a "
	                      "parameter sharded along one dim, found merged "
	                      "dims %d to %d sharded as one; try: --optimizer "
	                      "adamw",
	                      p->name, p->placement.first_axis,
	                      p->placement.axis);
}

/* x, made for that update, is a share over the group. */
static bool
is_share(const Graph *g, const struct update *u, ValId x, enum rank_group group)
{
	if (group == GROUP_RANKS)
		return x && g->val[x].placement.kind == PLACEMENT_PARTIAL;
	return x && u->cut && grad_reduce_shards(g, u) == group;
}

/* Shares of these means over ranks and replicas become means. */
static bool
complete_means(Graph *g, Diag *d, Arena *scratch, struct update *u, uint32_t n,
               int first, int end)
{
	ValId **v = arena_array(scratch, (size_t)n * FACTORS + 1, sizeof *v);
	const enum rank_group group[] = { GROUP_RANKS,
		graph_shard_group(g, false), graph_shard_group(g, true) };

	for (int j = 0; j < (group[1] == group[2] ? 2 : 3); j++) {
		int count = 0;

		for (uint32_t i = 0; i < n; i++)
			for (int k = first; k < end; k++)
				if (is_share(g, &u[i], u[i].factor[k],
				             group[j]))
					v[count++] = &u[i].factor[k];
		if (!grad_reduce_values(g, d, scratch, v, count, group[j]))
			return false;
	}
	return true;
}

/* Result k of node n: a share of means that lie as the state does, or of two
 * numbers (state 0); a summand where ranks have all of them. */
static ValId
mean_share(Graph *g, ValId param, const Node *n, int k, ValId state,
           const char *what)
{
	Val *v = &g->val[n->out[k]];
	bool cut = g->val[param].placement.kind == PLACEMENT_SHARD;

	val_rename(g, n->out[k], arena_printf(g->arena, "%s.%s",
	                                      g->val[param].name, what));
	if (state && g->val[state].placement.kind == PLACEMENT_SHARD)
		v->placement = g->val[state].placement;
	else
		v->placement.kind = cut ? PLACEMENT_PARTIAL
					: PLACEMENT_REPLICATE;
	return n->out[k];
}

static bool
add_means(Graph *g, Diag *d, struct update *u, ValId norm)
{
	ValId in[2] = { u->grad, norm };
	Node *n = node_new(g, OP_ADAFACTOR_MEANS, norm ? 2 : 1, in, 2,
	                   u->after);

	n->phase = PH_UPDATE;
	if (!shape_infer(g, d, n))
		return false;
	u->factor[FACTOR_ROW] = mean_share(g, u->param, n, 0, u->state[0],
	                                   "row_mean");
	u->factor[FACTOR_COL] = mean_share(g, u->param, n, 1, u->state[1],
	                                   "col_mean");
	return true;
}

/* Its own copy of a piece of p: until all squares are there that would be one
 * of each parameter. */
static bool
append_squares(Graph *g, Diag *d, struct update *u, ValId norm)
{
	ValId own = u->cut ? optimizer_shard_own(g, d, u) : u->param;
	ValId in[7] = { own, u->grad, u->state[0], u->state[1],
		u->factor[FACTOR_ROW], u->factor[FACTOR_COL], norm };
	Node *n;

	if (!own)
		return false;
	n = node_new(g, OP_ADAFACTOR_SQUARES, 7, in, 1, u->after);
	n->phase = PH_UPDATE;
	if (!shape_infer(g, d, n))
		return false;
	u->factor[FACTOR_SQUARES] = mean_share(g, u->param, n, 0, 0, "squares");
	return true;
}

bool
factors_add(Graph *g, Diag *d, Arena *scratch, struct update *u, uint32_t n,
            ValId norm)
{
	for (uint32_t i = 0; i < n; i++)
		if (is_sharded_update(g, &u[i]) && u[i].state[1]
		    && (!check_factors(g, d, &u[i])
		        || !add_means(g, d, &u[i], norm)))
			return false;
	if (!complete_means(g, d, scratch, u, n, FACTOR_ROW, FACTOR_SQUARES))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (is_sharded_update(g, &u[i])
		    && !append_squares(g, d, &u[i], norm))
			return false;
	return complete_means(g, d, scratch, u, n, FACTOR_SQUARES, FACTORS);
}
