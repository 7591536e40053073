/* Inline: a loop takes in the body of the loop whose result it reads.
 *
 * what    the rewrite for one pair; the planner decides whether it pays
 * method  scalar ops of the first loop, then those of the reader, whose
 *         arguments point at the former where they were operands
 * needs   P_FUSED; results of the reader are the same bits, because a loop
 *         computes every element by itself
 * refuses shapes that differ; 16-bit floats, whose results are rounded when
 *         they are stored; more than LOOP_OPS_MAX scalar ops or
 *         LOOP_INPUTS_MAX operands
 */
#include "ir/loop.h"

#include <assert.h>
#include <string.h>

static int
operand_slot(const ValId *list, int n, ValId v)
{
	for (int i = 0; i < n; i++)
		if (list[i] == v)
			return i;
	return -1;
}

/* Index of v among the outputs of n; -1: none. */
static int
output_of(const Node *n, ValId v)
{
	return v ? operand_slot(n->out, n->nout, v) : -1;
}

bool
inline_fits(const Graph *g, const Node *first, const Node *reader)
{
	const Shape *shape;
	bool reads = false;

	if (first->op != OP_LOOP || reader->op != OP_LOOP || reader->nout == 0
	    || !reader->out[0]
	    || first->body->nop + reader->body->nop > LOOP_OPS_MAX
	    || first->nin + reader->nin > LOOP_INPUTS_MAX)
		return false;
	shape = &g->val[reader->out[0]].shape;
	for (int i = 0; i < first->nout; i++) {
		const Val *v = &g->val[first->out[i]];

		if (!first->out[i])
			continue;
		if (!shape_eq(&v->shape, shape) || v->dt == DT_F16
		    || v->dt == DT_BF16)
			return false;
	}
	for (int i = 0; i < reader->nin; i++)
		reads |= output_of(first, reader->in[i]) >= 0;
	return reads;
}

int
inline_operands(const Node *first, ValId *in, int nin)
{
	int n = 0;

	for (int i = 0; i < nin; i++)
		if (output_of(first, in[i]) < 0)
			in[n++] = in[i];
	for (int i = 0; i < first->nin; i++)
		if (operand_slot(in, n, first->in[i]) < 0)
			in[n++] = first->in[i];
	return n;
}

/* Scalar ops with arguments: operand i is arg[i], results of scalar ops move
 * back by `shift`. */
static void
append_scalar_ops(struct body *to, const struct body *from, const int *arg,
              int shift)
{
	for (int i = 0; i < from->nop; i++) {
		struct scalar_op *m = &to->op[to->nop++];

		*m = from->op[i];
		for (int k = 0; k < m->narg; k++)
			m->arg[k] = m->arg[k] < 0 ? ~(~m->arg[k] + shift)
				: arg[m->arg[k]];
	}
}

void
inline_loop(Graph *g, NodeId reader, NodeId first)
{
	Node *n = &g->node[reader];
	const Node *f = &g->node[first];
	const struct body *own = n->body;
	struct body *b = arena_alloc(g->arena, sizeof *b);
	int arg[LOOP_INPUTS_MAX];
	ValId *in = arena_array(g->arena, (size_t)(n->nin + f->nin),
	                        sizeof *in);
	NodeId *inlined = arena_array(g->arena, (size_t)n->ninlined + 1,
	                              sizeof *inlined);
	int nin;

	assert(n->nin + f->nin <= LOOP_INPUTS_MAX);
	memcpy(in, n->in, (size_t)n->nin * sizeof *in);
	nin = inline_operands(f, in, n->nin);
	b->op = arena_array(g->arena, (size_t)(f->body->nop
	                       + own->nop), sizeof *b->op);
	b->result = arena_array(g->arena, (size_t)n->nout, sizeof *b->result);
	for (int i = 0; i < f->nin; i++)
		arg[i] = operand_slot(in, nin, f->in[i]);
	append_scalar_ops(b, f->body, arg, 0);
	for (int i = 0; i < n->nin; i++) {
		int made = output_of(f, n->in[i]);

		arg[i] = made < 0 ? operand_slot(in, nin, n->in[i])
			: ~f->body->result[made];
	}
	append_scalar_ops(b, own, arg, f->body->nop);
	for (int i = 0; i < n->nout; i++)
		b->result[i] = own->result[i] + f->body->nop;
	inlined[0] = first;
	for (int i = 0; i < n->ninlined; i++)
		inlined[i + 1] = n->inlined[i];
	n->body = b;
	n->in = in;
	n->nin = nin;
	n->inlined = inlined;
	n->ninlined++;
}
