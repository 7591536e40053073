/* Tensor and sequence parallelism: shard a forward graph over ranks.
 *
 * what    one rank's graph, the same for all: the paper's f and g become
 *         conversions between placements, and autodiff makes their duals
 * needs   P_CANON, P_LOSS
 * gives   P_SHARD: Graph.ranks, Val.placement
 * method  strategies by the ops' rules, a 0-1 program over them
 *         (strategy_ilp.c)
 * refuses where less than half of the matrices' bytes can be sharded
 * source  Shoeybi et al. 2019 and Korthikanti et al. 2023 for the result, Zheng
 *         et al. 2022 (Alpa) for the program
 */
#include "passes/tensor_parallel/tensor_parallel.h"

#include "passes/data_parallel/data_parallel.h"
#include "passes/tensor_parallel/strategies.h"

/* ---- biases apart ---- */

/* The bias of channels, dim 1, as it broadcasts to y. */
static ValId
reshape_bias(Graph *g, Diag *d, ValId bias, const Shape *y, NodeId like)
{
	Shape s = { y->rank - 1, { y->dim[1] } };
	Attr a;

	if (s.rank == 1)
		return bias;
	for (int i = 1; i < s.rank; i++)
		s.dim[i] = 1;
	a = attr_reshape(&s);
	return emit_op(g, d, OP_RESHAPE, 1, &bias, &a, like);
}

/* A product or a convolution that is summed over ranks must add its bias once,
 * after the sum.  So each bias becomes an add.  If no sum comes between them,
 * apply.c joins the two again. */
static void
split_bias_add(Graph *g, Diag *d, NodeId id)
{
	Node *m = &g->node[id], *add;
	ValId y = m->out[0], in[2], fresh;
	const Shape shape = g->val[y].shape;
	const char *name = arena_printf(g->arena, "%s.product",
	                                g->val[y].name);

	in[1] = reshape_bias(g, d, m->in[2], &shape, id);
	in[0] = val_new(g, V_TEMP, name, g->val[y].dt, shape);
	add = node_new(g, OP_ADD, 2, in, 1, id);
	fresh = add->out[0];
	add->out[0] = y;
	g->val[fresh].def = 0;
	g->val[y].def = node_id(g, add);
	m = &g->node[id];
	m->nin = 2;
	m->out[0] = in[0];
	g->val[in[0]].def = id;
	g->val[in[0]].result_index = 0;
}

static void
split_bias_adds(Graph *g, Diag *d, Arena *tmp)
{
	uint32_t old = g->nnode, n = 0;
	NodeId *end = arena_array(tmp, old, sizeof *end), *order, next = old;

	for (NodeId id = 1; id < old; id++) {
		const Node *m = &g->node[id];

		if (op_info[m->op].flags & F_BIAS2 && m->nin == 3 && m->in[2]
		    && (m->op != OP_MATMUL
		        || g->val[m->out[0]].shape.rank == 2))
			split_bias_add(g, d, id);
		end[id] = g->nnode;
	}
	order = arena_array(tmp, g->nnode, sizeof *order);
	for (NodeId id = 1; id < old; id++) {
		order[n++] = id;
		while (next < end[id])
			order[n++] = next++;
	}
	graph_reorder(g, order, n);
}

/* ---- matrices ---- */

/* Half the square of the width of the largest matrix. */
static int64_t
large_matrix_elements(const Graph *g)
{
	int64_t most = 0, width = 1;

	FOR_VALS (v, g) {
		int64_t n = val_nelem(v);

		if (!shard_is_matrix(v) || n <= most)
			continue;
		most = n;
		width = v->shape.dim[v->shape.rank - 1];
		for (int i = 0; i < v->shape.rank; i++)
			if (v->shape.dim[i] < width && v->shape.dim[i] > 1)
				width = v->shape.dim[i];
	}
	return (width * width + 1) / 2;
}

bool
pass_shard(Pass *p, Graph *g)
{
	struct shard s = { .pass = p, .g = g, .tmp = p->scratch,
		.ranks = p->opt->tp };

	if (s.ranks <= 1 || g->ranks)
		return true;
	split_bias_adds(g, p->diag, s.tmp);
	s.large = large_matrix_elements(g);
	s.grad = sharding_requires_grad(g, s.tmp);
	shard_find_strategies(&s);
	if (!shard_check_constraints(&s) || !shard_check_fraction(&s)
	    || !shard_choose_strategies(&s))
		return false;
	if (p->opt->explain)
		shard_find_runner_up(&s);
	if (!p->opt->quiet)
		shard_note_replicated(&s);
	if (!shard_apply(&s))
		return false;
	if (g->adds)
		count_pass_order(g, s.tmp);
	graph_dce(g);
	return true;
}
