/* The classifier end over cut classes, a chunk of rows after the other.
 *
 * A rank has the logits of its own classes only, and their adjoint waits for
 * what the others found in the same rows.  Chunk by chunk:
 *
 *   z = x w + b;  stats = vocab_stats(z), gathered;  loss, lse = sce(stats)
 *   dz = sce_grad(z, lse);  dx = dz w;  dw += dz x;  db += sum dz
 *
 * The divisor of a mean counts labels, so it is there before the first chunk.
 * One chunk's logits exist at a time, and 12 bytes a row travel.
 */
#include "passes/fuse/classifier.h"

#include <string.h>

enum { CHUNKS_MAX = 64 };               /* of nodes, not of memory */

struct classifier_unroll {
	struct classifier_end *c;
	struct edit *e;
	Graph *g;
	ValId x, w, bias, labels;
	ValId seed;                     /* of a sum of losses */
	ValId denom;                    /* of a mean; 0 */
	ValId loss, dw, db;             /* so far; 0: nothing yet */
	ValId dx[CHUNKS_MAX];
	bool failed;
};

static ValId
placed_value(struct classifier_unroll *u, ValId v)
{
	u->failed |= !v;
	if (v)
		edit_place(u->e, u->g->val[v].def, u->c->grad);
	return v;
}

/* A node's first result; 0 once something failed. */
static ValId
emit_unrolled(struct classifier_unroll *u, Op op, int nin, const ValId *in,
              const Attr *attr)
{
	for (int k = 0; k < nin; k++)
		u->failed |= !in[k] && (op != OP_SCE || k != 2);
	if (u->failed)
		return 0;
	return placed_value(u, emit_op(u->g, u->e->p->diag, op, nin, in, attr,
	                               u->c->grad));
}

static ValId
convert_rows(struct classifier_unroll *u, ValId v, DType to)
{
	Attr a = attr_cast(to);

	return !v || u->g->val[v].dt == to
	               ? v
	               : emit_unrolled(u, OP_CAST, 1, &v, &a);
}

static ValId
slice_rows(struct classifier_unroll *u, ValId v, int64_t start, int64_t n)
{
	int64_t from[MAX_RANK] = { start }, extent[MAX_RANK];

	if (u->failed || n == u->g->val[v].shape.dim[0])
		return v;
	memcpy(extent, u->g->val[v].shape.dim, sizeof extent);
	extent[0] = n;
	v = emit_slice(u->g, u->e->p->diag, v, from, extent, u->c->grad);
	return placed_value(u, v);
}

static ValId
emit_chunk_matmul(struct classifier_unroll *u, ValId a, ValId b, ValId bias,
                  int ta, int tb)
{
	ValId in[3] = { a, b, bias };
	Attr attr = attr_default(OP_MATMUL);

	attr.MATMUL.ta = ta;
	attr.MATMUL.tb = tb;
	return emit_unrolled(u, OP_MATMUL, bias ? 3 : 2, in, &attr);
}

static ValId
emit_sum(struct classifier_unroll *u, ValId sum, ValId v)
{
	return sum ? emit_unrolled(u, OP_ADD, 2, (ValId[]){ sum, v }, NULL) : v;
}

static ValId
column_sum(struct classifier_unroll *u, ValId v)
{
	Attr a = attr_default(OP_REDUCE_SUM);

	a.REDUCE_SUM.axes = (IntList){ .n = 1 };
	a.REDUCE_SUM.keepdims = 0;
	return emit_unrolled(u, OP_REDUCE_SUM, 1, &v, &a);
}

/* How many labels count, as the loss's divisor. */
static ValId
count_used_labels(struct classifier_unroll *u, int64_t rows)
{
	int64_t ignore = u->g->node[u->c->sce].attr.SCE.ignore;
	Attr a = attr_default(OP_REDUCE_SUM);
	ValId in[2] = { u->labels, 0 }, v;

	if (ignore == INT64_MIN)
		return val_scalar(u->g, DT_F32, (double)rows);
	in[1] = val_scalar(u->g, u->g->val[u->labels].dt, (double)ignore);
	v = emit_unrolled(u, OP_EQ, 2, in, NULL);
	v = emit_unrolled(u, OP_NOT, 1, &v, NULL);
	v = convert_rows(u, v, DT_F32);
	a.REDUCE_SUM.keepdims = 0;
	return emit_unrolled(u, OP_REDUCE_SUM, 1, &v, &a);
}

static ValId
over_denom(struct classifier_unroll *u, ValId v)
{
	return u->denom ? emit_unrolled(u, OP_DIV, 2, (ValId[]){ v, u->denom },
	                                NULL)
	                : v;
}

/* The sum of the rows' losses; *lse and *denom are what the gradient reads. */
static ValId
chunk_loss(struct classifier_unroll *u, ValId z, ValId labels, ValId *lse,
           ValId *denom)
{
	const Node *old = &u->g->node[u->c->sce];
	Attr sce = old->attr, stats = u->g->node[u->c->stats].attr;
	Attr gather = u->g->node[u->c->gather].attr;
	ValId in[4] = { z, labels, 0, 0 }, v;

	v = emit_unrolled(u, OP_VOCAB_STATS, 2, in, &stats);
	in[3] = emit_unrolled(u, OP_ALL_GATHER, 1, &v, &gather);
	sce.SCE.reduction = 2;
	v = emit_unrolled(u, OP_SCE, 4, in, &sce);
	if (v) {
		const Node *n = &u->g->node[u->g->val[v].def];

		*lse = n->out[1];
		*denom = n->out[2];
	}
	return v;
}

static void
emit_chunk(struct classifier_unroll *u, int i, int64_t start, int64_t n)
{
	Graph *g = u->g;
	const struct classifier_end *c = u->c;
	bool tb = g->node[c->product].attr.MATMUL.tb;
	Attr grad = g->node[c->grad].attr;
	ValId x = slice_rows(u, u->x, start, n);
	ValId labels = slice_rows(u, u->labels, start, n);
	ValId z = emit_chunk_matmul(u, x, u->w, u->bias, 0, tb), in[5] = { 0 },
	      dz;
	DType dt = g->val[u->x].dt;

	in[0] = u->seed;
	in[1] = convert_rows(u, z, DT_F32);  /* chunks' losses are summed */
	in[2] = labels;
	u->loss = emit_sum(u, u->loss,
	                   chunk_loss(u, in[1], labels, &in[3], &in[4]));
	grad.SCE_GRAD.reduction = 2;
	dz = convert_rows(u, emit_unrolled(u, OP_SCE_GRAD, 5, in, &grad), dt);
	if (c->dx)
		u->dx[i] = emit_chunk_matmul(u, dz, u->w, 0, 0, !tb);
	if (c->dw)
		u->dw = emit_sum(u, u->dw,
		                 tb ? emit_chunk_matmul(u, dz, x, 0, 1, 0)
		                : emit_chunk_matmul(u, x, dz, 0, 1, 0));
	if (c->db)
		u->db = emit_sum(u, u->db, column_sum(u, dz));
}

/* Node `old` wrote what v now stands for. */
static void
move_output(struct classifier_unroll *u, NodeId old, ValId v)
{
	Graph *g = u->g;
	Node *n;

	if (u->failed || !old)
		return;
	n = &g->node[g->val[v].def];
	n->out[g->val[v].result_index] = g->node[old].out[0];
	edit_claim(g, n);
}

static ValId
join_chunks(struct classifier_unroll *u, int n)
{
	Attr a = attr_default(OP_CONCAT);

	a.CONCAT.axis = 0;
	return n > 1 ? emit_unrolled(u, OP_CONCAT, n, u->dx, &a) : u->dx[0];
}

bool
unroll_classifier(struct classifier_end *c)
{
	Graph *g = c->e->g;
	const Node *m = &g->node[c->product], *sce = &g->node[c->sce];
	struct classifier_unroll u = { .c = c, .e = c->e, .g = g, .x = m->in[0],
		.w = m->in[1], .bias = m->nin > 2 ? m->in[2] : 0,
		.labels = sce->in[1] };
	DType loss = g->val[sce->out[0]].dt;
	const Shape *s = &g->val[m->out[0]].shape;
	int64_t rows = s->dim[0], most = (rows - 1) / CHUNKS_MAX + 1;
	int64_t step = c->target->classifier_rows(rows, s->dim[1],
		dtype_is_half(g->val[m->out[0]].dt));
	bool mean = sce->attr.SCE.reduction == 1;
	int n = 0;

	step = step < most ? most : step;
	u.denom = mean ? count_used_labels(&u, rows) : 0;
	u.seed = over_denom(&u,
	                    convert_rows(&u, g->node[c->grad].in[0], DT_F32));
	for (int64_t at = 0; at < rows; at += step, n++)
		emit_chunk(&u, n, at, at + step < rows ? step : rows - at);
	u.loss = over_denom(&u, u.loss);
	move_output(&u, c->sce, convert_rows(&u, u.loss, loss));
	move_output(&u, c->dx, c->dx ? join_chunks(&u, n) : 0);
	move_output(&u, c->dw, u.dw);
	move_output(&u, c->db, u.db);
	c->e->dead[c->grad] = true;
	return !u.failed;
}
