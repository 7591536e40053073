/* Shape rules: element-wise ops, loops, reductions. */
#include "ir/infer/rules.h"

/* ---- element-wise ---- */

bool
infer_bcast(struct infer *c)
{
	Shape s;

	return rule_same_type(c, 0, 1) && rule_broadcast(c, 0, 2, &s)
	       && rule_result(c, 0, in(c, 0)->dt ? in(c, 0)->dt : in(c, 1)->dt,
			      s);
}

bool
infer_pow(struct infer *c)
{
	Shape s;

	return rule_broadcast(c, 0, 2, &s) && rule_shape(c, s);
}

bool
infer_pred(struct infer *c)
{
	Shape s;

	return (c->n->nin < 2 || rule_same_type(c, 0, 1))
	       && rule_broadcast(c, 0, c->n->nin, &s)
	       && rule_result(c, 0, DT_BOOL, s);
}

bool
infer_where(struct infer *c)
{
	Shape s;

	return rule_want_class(c, 0, "b", "bool") && rule_same_type(c, 1, 2)
	       && rule_broadcast(c, 0, 3, &s)
	       && rule_result(c, 0, in(c, 1)->dt ? in(c, 1)->dt : in(c, 2)->dt,
			      s);
}

bool
infer_cast(struct infer *c)
{
	int64_t to = c->n->attr.CAST.to;

	if (to <= DT_NONE || to >= DT_COUNT || dtype_is_blocks((DType)to))
		return rule_fail(c, "missing dtype of the cast");
	return rule_result(c, 0, (DType)to, shape_of(c, 0));
}

bool
infer_dequantize(struct infer *c)
{
	int64_t to = c->n->attr.DEQUANTIZE.to;

	if (to <= DT_NONE || to >= DT_COUNT || dtype_info[to].cls != 'f'
	    || to == DT_F64)
		return rule_fail(c, "expected a float type of at most 32 bits");
	return rule_want_class(c, 0, "q", "blocks of quantised weights")
	       && rule_want_rank(c, 0, 1)
	       && rule_result(c, 0, (DType)to, val_weights_shape(in(c, 0)));
}

bool
infer_cast_like(struct infer *c)
{
	return rule_result(c, 0, in(c, 1)->dt, shape_of(c, 0));
}

/* Output like operand 0; an element-wise op broadcasts all that are not
 * static. */
bool
infer_same(struct infer *c)
{
	const struct op_info *info = &op_info[c->n->op];
	Shape s = shape_of(c, 0);

	for (int i = 1; i < c->n->nin && i < info->nstat; i++) {
		bool fits = info->flags & F_EW
				    ? rule_broadcast(c, 0, i + 1, &s)
				    : rule_want_shape(c, i, &s,
						      "second operand");

		if (!fits || !rule_same_type(c, 0, i))
			return false;
	}
	return rule_shape(c, s);
}

static bool
check_axis(struct infer *c, int64_t axis)
{
	int fixed, rank = in(c, 0)->shape.rank;

	return rank < 0 || rule_axis(c, axis, rank, &fixed);
}

/* log_softmax has the same attribute. */
bool
infer_softmax(struct infer *c)
{
	return check_axis(c, c->n->attr.SOFTMAX.axis) && infer_same(c);
}

bool
infer_cumsum(struct infer *c)
{
	return (rule_operand(c, 1) != ABSENT
	        || check_axis(c, c->n->attr.CUMSUM.axis)) && infer_same(c);
}

bool
infer_trilu(struct infer *c)
{
	return rule_want_rank(c, 0, 2) && infer_same(c);
}

/* Type of scalar op i's result, from its arguments'. */
static DType
scalar_op_type(const struct infer *c, const struct body *b, int i)
{
	const struct scalar_op *m = &b->op[i];
	DType arg[3] = {DT_NONE, DT_NONE, DT_NONE};

	for (int k = 0; k < m->narg; k++)
		arg[k] = m->arg[k] < 0 ? b->op[~m->arg[k]].dt
				       : in(c, m->arg[k])->dt;
	return op_type(m->op, &m->attr, arg);
}

static bool
check_body(struct infer *c)
{
	const struct body *b = c->n->body;

	if (!b)
		return rule_fail(c, "loop without a body");
	for (int i = 0; i < b->nop; i++) {
		const struct scalar_op *m = &b->op[i];

		if (m->op <= OP_NONE || m->op >= OP_COUNT || m->op == OP_LOOP
		    || !(op_info[m->op].flags & F_EW))
			return rule_fail(c, "scalar op %d: not an "
			                 "element-wise op", i);
		if (m->narg < 1 || m->narg > 3 || m->narg < op_info[m->op].min
		    || m->narg > op_info[m->op].max
		    || (op_info[m->op].nstat != NOSTAT
			&& m->narg > op_info[m->op].nstat))
			return rule_fail(c, "scalar op %d (%s): wrong number "
			                 "of operands: %d", i,
			                 op_info[m->op].text, m->narg);
		for (int k = 0; k < m->narg; k++)
			if (m->arg[k] < 0 ? ~m->arg[k] >= i
					  : !has(c, m->arg[k]))
				return rule_fail(c, "scalar op %d (%s): "
				                 "operand %d does not exist", i,
				                 op_info[m->op].text, k);
		if (m->op == OP_CAST
		    && (m->attr.CAST.to <= DT_NONE
			|| m->attr.CAST.to >= DT_COUNT))
			return rule_fail(c, "scalar op %d: missing dtype of "
			                 "the cast", i);
	}
	for (int i = 0; i < c->n->nout; i++)
		if (b->result[i] < 0 || b->result[i] >= b->nop)
			return rule_fail(c, "output %d: scalar op %d does not "
			                 "exist", i, b->result[i]);
	return true;
}

/* The shape known of an output may exceed that of the inputs: a loop writes
 * the broadcast of what it reads to what its consumers want. */
bool
infer_loop(struct infer *c)
{
	const struct body *b = c->n->body;
	Shape s;

	if (!check_body(c) || !rule_broadcast(c, 0, c->n->nin, &s))
		return false;
	for (int i = 0; i < b->nop; i++) {
		DType dt = scalar_op_type(c, b, i);

		if (b->op[i].dt == DT_NONE)
			b->op[i].dt = dt;
		else if (dt != DT_NONE && b->op[i].dt != dt)
			return rule_fail(c, "scalar op %d (%s): expected %s, "
			                 "found %s", i,
			                 op_info[b->op[i].op].text,
			                 dtype_info[dt].text,
			                 dtype_info[b->op[i].dt].text);
	}
	for (int k = 0; k < c->n->nout; k++) {
		const Val *y = &c->g->val[c->n->out[k]];
		Shape wide = s;

		if (c->n->out[k] && y->shape.rank >= 0
		    && shape_broadcast(&wide, &y->shape))
			s = wide;
	}
	for (int k = 0; k < c->n->nout; k++)
		if (!rule_result(c, k, b->op[b->result[k]].dt, s))
			return false;
	return true;
}

/* ---- reductions ---- */

static Shape
reduced_shape(const Shape *x, const bool set[MAX_RANK], bool keepdims)
{
	Shape s = {.rank = 0};

	for (int i = 0; i < x->rank; i++)
		if (!set[i] || keepdims)
			s.dim[s.rank++] = set[i] ? 1 : x->dim[i];
	return s;
}

bool
infer_arg(struct infer *c)
{
	Shape x = shape_of(c, 0);
	bool set[MAX_RANK] = {false};
	int axis;

	if (x.rank < 0)
		return rule_result(c, 0, DT_I64, x);
	if (!rule_axis(c, c->n->attr.ARGMAX.axis, x.rank, &axis))
		return false;
	set[axis] = true;
	return rule_result(c, 0, DT_I64,
			   reduced_shape(&x, set,
			                 c->n->attr.ARGMAX.keepdims != 0));
}

/* All five reduce ops have the same attributes in the same order. */
bool
infer_reduce(struct infer *c)
{
	IntList l = c->n->attr.REDUCE_SUM.axes;
	bool keepdims = c->n->attr.REDUCE_SUM.keepdims != 0;
	Shape x = shape_of(c, 0);
	bool set[MAX_RANK];

	if (x.rank < 0)
		return rule_shape(c, x);
	if (rule_operand(c, 1) == COMPUTED) {
		int64_t n = keepdims ? 0 : rule_length(c, 1);

		return rule_result(
			c, 0, in(c, 0)->dt,
			unknown(n < 0 || n > x.rank ? -1 : x.rank - (int)n));
	}
	if (!rule_axes(c, 1, &l, x.rank, set))
		return false;
	if (l.n == 0 && !c->n->attr.REDUCE_SUM.noop)
		for (int i = 0; i < x.rank; i++)
			set[i] = true;
	return rule_shape(c, reduced_shape(&x, set, keepdims));
}

/* ---- updates ---- */

/* Outputs are like what they are written over. */
static bool
update_in_place(struct infer *c)
{
	Op op = c->n->op;
	Shape one = shape_scalar(), p = shape_of(c, 0);

	if (op_info[op].flags & F_UPDATE
	    && !rule_want_shape(c, op_norm(op), &one, "norm"))
		return false;
	if (op_info[op].flags & F_COPY
	    && !rule_want_shape(c, op_info[op].max - 1, &p, "copy"))
		return false;
	for (int k = 0; k < c->n->nout; k++) {
		int i = op_overwrites(op, k);

		if (has(c, i)
		    && !rule_result(c, k, in(c, i)->dt, shape_of(c, i)))
			return false;
	}
	return true;
}

/* What there must be, parameter or accumulator, gradient and state, is of one
 * shape. */
bool
infer_update(struct infer *c)
{
	Shape p = shape_of(c, 0);

	for (int i = 1; i < op_info[c->n->op].min; i++)
		if (!rule_want_shape(c, i, &p, "gradient or state"))
			return false;
	return update_in_place(c);
}

/* What rows and columns are taken of. */
static Shape
factored(const struct infer *c)
{
	const Val *x = in(c, 0);

	return x->shard ? x->shard->shape : x->shape;
}

/* Operands of Adafactor up to the means of columns. */
static bool
check_factor_shapes(struct infer *c)
{
	Shape p = shape_of(c, 0), row = p, col = p;
	bool factors = p.rank >= 2;

	if (!rule_want_shape(c, 1, &p, "gradient"))
		return false;
	if (p.rank < 0)
		return true;
	for (int i = 3; i <= 5; i++)
		if (factors ? i == 3 && !has(c, i) : has(c, i))
			return rule_fail(c, "operand %d: a parameter of rank "
			                 "%d %s", i, p.rank, factors
			                 ? "needs column means"
			                 : "has no column means");
	if (has(c, 4) != has(c, 5))
		return rule_fail(c, "operands 4 and 5: expected both row means "
		                 "and column means, or neither");
	if (factors) {
		row = shape_without(factored(c), 1);
		col = shape_without(factored(c), 2);
	}
	return rule_want_shape(c, 2, &row, "row means")
	       && rule_want_shape(c, 3, &col, "column means")
	       && rule_want_shape(c, 4, &row, "new row means")
	       && rule_want_shape(c, 5, &col, "new column means");
}

bool
infer_adafactor(struct infer *c)
{
	Shape two = SHAPE(2);

	return check_factor_shapes(c)
	       && rule_want_shape(c, 6, &two, "two mean squares")
	       && update_in_place(c);
}

bool
infer_adafactor_means(struct infer *c)
{
	Shape g = factored(c), one = shape_scalar();

	if (g.rank < 0)
		return true;
	return rule_want_rank(c, 0, 2)
	       && rule_want_shape(c, op_norm(c->n->op), &one, "norm")
	       && rule_result(c, 0, DT_F32, shape_without(g, 1))
	       && rule_result(c, 1, DT_F32, shape_without(g, 2));
}

bool
infer_adafactor_squares(struct infer *c)
{
	Shape one = shape_scalar();

	return check_factor_shapes(c)
	       && rule_want_shape(c, op_norm(c->n->op), &one, "norm")
	       && rule_result(c, 0, DT_F32, SHAPE(2));
}
