/* Element-wise loop nests: loop, and single element-wise ops. */
#include "codegen/rules/emit.h"

#include <assert.h>

const char *
nest_literal(struct emit *e, const struct nest_operand *op)
{
	const char *s;

	if (op->dt == DT_F64)
		s = emit_double(e->arena, op->value);
	else if (dtype_info[op->dt].cls == 'f')
		s = emit_float(e->arena, op->value);
	else
		s = arena_printf(e->arena, "(%s)%lld", emit_ctype(op->dt),
		                 (long long)op->value);
	return s[0] == '-' ? arena_printf(e->arena, "(%s)", s) : s;
}

void
nest_strides(const Val *v, const Shape *shape, int64_t *stride)
{
	int skip = shape->rank - v->shape.rank;

	for (int i = 0; i < shape->rank; i++)
		stride[i] = i < skip || v->shape.dim[i - skip] == 1
		          ? 0 : v->stride[i - skip];
}

static struct nest_operand
operand_of(struct emit *e, ValId id, int arg, const Shape *shape, bool read)
{
	const Val *v = &e->g->val[id];
	struct nest_operand op = { .dt = v->dt, .arg = arg, .base = v->start };

	nest_strides(v, shape, op.stride);
	if (read && val_is_const(v) && val_splat(e->g, id, &op.value))
		op.scalar = dtype_info[v->dt].cls == 'f' ||
		            (op.value > -1e15 && op.value < 1e15);
	return op;
}

/* A loop's shape: that of its outputs. */
static bool
emit_body_nest(struct emit *e, const Node *n, const struct body *body)
{
	int nout = 0;
	struct loop_nest nest = { .body = body };
	struct body kept = *body;
	const Val *first = NULL;

	nest.in = arena_array(e->arena, (size_t)n->nin + 1, sizeof *nest.in);
	nest.out = arena_array(e->arena, (size_t)n->nout + 1,
	                       sizeof *nest.out);
	kept.result = arena_array(e->arena, (size_t)n->nout + 1, sizeof(int));
	for (int i = 0; i < n->nout && !first; i++)
		first = emit_out(e, n, i);
	if (!first)
		return diag_internal(e->diag, "codegen: loop without output");
	nest.shape = first->shape;
	nest.split = &first->placement;
	for (int i = 0; i < n->nin; i++)
		if (n->in[i])
			nest.in[i] = operand_of(e, n->in[i], i, &nest.shape,
			                        true);
		else
			nest.in[i] = (struct nest_operand){ .dt = DT_F32,
				.scalar = true };
	for (int i = 0; i < n->nout; i++)
		if (n->out[i]) {
			nest.out[nout] = operand_of(e, n->out[i], n->nin + i,
			                            &nest.shape, false);
			kept.result[nout++] = body->result[i];
		}
	nest.nin = n->nin;
	nest.nout = nout;
	nest.body = &kept;
	return emit_nest(e, &nest);
}

bool
emit_loop(struct emit *e, const Node *n)
{
	emit_shapes(e, n);
	return emit_body_nest(e, n, n->body);
}

/* A single element-wise op is a loop with one scalar op. */
bool
emit_ew(struct emit *e, const Node *n)
{
	struct scalar_op m = { .op = n->op, .narg = n->nin, .attr = n->attr };
	int result = 0;
	struct body body = { 1, &m, &result };

	if (n->op == OP_DROPOUT)
		m.narg = 1;
	assert(m.narg <= 3 && n->out[0]);
	for (int i = 0; i < m.narg; i++)
		m.arg[i] = i;
	m.dt = e->g->val[n->out[0]].dt;
	emit_shapes(e, n);
	return emit_body_nest(e, n, &body);
}
