/* Calls of the optimizers' kernels. */
#include "codegen/rules/target_emitter.h"
#include "ir/placement.h"

/* updated: the parameter, or a copy of it, or of a replica's shard of it. */
static ValId
updated_param(const struct emit *e, ValId updated)
{
	const Node *def = &e->g->node[e->g->val[updated].def];
	ValId param = op_info[def->op].flags & F_COMM ? def->in[0]
		: val_param_of(e->g, updated);

	return param ? param : updated;
}

/* Streams of random words, one per parameter, that dropout does not use. */
static int64_t
rounding_stream(const struct emit *e, ValId updated)
{
	ValId param = updated_param(e, updated);
	const Graph *g = e->whole ? e->whole : e->g;
	int64_t n = 0x80000000;

	if (e->whole)
		param = val_find(g, e->g->val[param].name);
	for (ValId i = 1; i < param; i++)
		n += g->val[i].kind == V_PARAM;
	return n;
}

/* Declare "shard": how a rank's shard of v, or a replica's shard of that, lies
 * in the whole. */
static void
emit_shard(struct emit *e, const Val *v)
{
	const Shape *shape = v->shard ? &v->shard->shape : &v->shape;
	Placement s = v->shard ? v->shard->placement : v->placement;
	int64_t nshard;

	if (s.kind != PLACEMENT_SHARD) {    /* one shard for all ranks */
		s = placement_over_replicas(shape);
		s.replication = e->g->ranks > 0 ? e->g->ranks : 1;
	}
	nshard = e->g->ranks > 0 ? e->g->ranks / s.replication : 1;
	out_line(e->out, "const struct ckr_shard shard = {");
	out_line(e->out, ".first = %lld * (int64_t)%s,",
	         v->shard ? (long long)val_nelem(v) : 0LL,
	         emit_shard_number(e, v->shard && v->shard->rows));
	out_line(e->out, ".shard = env->rank / %lld, .inner = %lld, "
	         ".local = %lld,", (long long)s.replication,
	         (long long)shape_span(shape, s.axis + 1, shape->rank),
	         (long long)shape_span(shape, s.first_axis, s.axis + 1));
	out_line(e->out, ".nsegment = %d, .segment = {", s.nsegment);
	for (int i = 0; i < s.nsegment; i++)
		out_line(e->out, "%lld,", (long long)s.segment[i]);
	out_line(e->out, "}, .size = {");
	for (int i = 0; i < s.nsegment; i++)
		out_line(e->out, "%lld,",
		         (long long)((s.segment[i] + nshard - 1) / nshard));
	out_line(e->out, "} };");
}

/* The 16-bit copy of the new parameter; NULL: none. */
static const Val *
copy_output(const struct emit *e, const Node *n)
{
	return op_info[n->op].flags & F_COPY
	     ? emit_out(e, n, op_info[n->op].nout - 1) : NULL;
}

/* States, between the gradient and the norm, have one type; DT_F32 if there
 * are none. */
static DType
type_of_states(const struct emit *e, const Node *n)
{
	bool any = op_info[n->op].flags & F_UPDATE && op_norm(n->op) > 2;
	const Val *v = any ? emit_in(e, n, 2) : NULL;

	return v ? v->dt : DT_F32;
}

/* Declare "types": those of y, g and the states, and if some have 16 bits how
 * they are rounded.  False after a diagnostic: they are floats of at most 32
 * bits. */
static bool
emit_types(struct emit *e, const Node *n, const Val *y, const Val *g)
{
	const Val *copy = copy_output(e, n);
	const DType dt[] = { y->dt, g->dt, type_of_states(e, n) };
	bool sharded = y->placement.kind == PLACEMENT_SHARD || y->shard;
	bool half = copy;

	for (int i = 0; i < 3; i++) {
		half |= dtype_is_half(dt[i]);
		if (dt[i] != DT_F32 && !dtype_is_half(dt[i]))
			return emit_unsupported(e, n, dt[i]);
	}
	emit_include(e, "update");
	sharded &= half;
	if (sharded)
		emit_shard(e, y);
	out_line(e->out, "const struct ckr_update_types types = { %s, %s, %s, "
	         "(uint32_t)%s, %s, %s };", tables_dtype(dt[0]),
	         tables_dtype(dt[1]), tables_dtype(dt[2]),
	         half ? emit_const(e, rounding_stream(e, n->in[0])) : "0",
	         sharded ? "&shard" : "NULL",
	         tables_dtype(copy ? copy->dt : DT_NONE));
	return true;
}

/* Add the squares of operands 0 .. end-1 to s. */
static bool
emit_sum_squares_of(struct emit *e, const Node *n, int end)
{
	for (int i = 0; i < end; i++) {
		const Val *g = emit_in(e, n, i);

		if (!g)
			continue;
		if (dtype_is_half(g->dt)) {
			out_line(e->out, "s += ckr_half_norm_part(p[%d], %s, "
			         "%lld, env);", i, tables_dtype(g->dt),
			         (long long)shape_nelem(&g->shape));
			continue;
		}
		if (g->dt != DT_F32)
			return emit_unsupported(e, n, g->dt);
		out_line(e->out, "s += ckr_norm_part(p[%d], %lld, env);", i,
		         (long long)shape_nelem(&g->shape));
	}
	return true;
}

/* Zero unless gradients are clipped. */
static void
open_norm(struct emit *e, const Node *n)
{
	emit_shapes(e, n);
	emit_include(e, "update");
	out_line(e->out, "float *y = p[%d];", n->nin);
	out_line(e->out, "double s = 0;");
	out_line(e->out, "*y = 0.0f;");
	out_line(e->out, "if (!(env->clip > 0))");
	out_line(e->out, "\treturn;");
}

bool
emit_grad_norm(struct emit *e, const Node *n)
{
	int sums = n->nin - (int)n->attr.GRAD_NORM.sums;

	open_norm(e, n);
	if (!emit_sum_squares_of(e, n, sums))
		return false;
	for (int i = sums; i < n->nin; i++)
		out_line(e->out, "s += (double)*(const float *)p[%d];", i);
	out_line(e->out, "*y = (float)(sqrt(s) * (double)env->unscale);");
	return true;
}

bool
emit_sum_squares(struct emit *e, const Node *n)
{
	open_norm(e, n);
	if (!emit_sum_squares_of(e, n, n->nin))
		return false;
	out_line(e->out, "*y = (float)s;");
	return true;
}

/* accumulate and ema: kernels that overwrite operand 0. */
bool
emit_accumulate(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 1);

	emit_shapes(e, n);
	if (!emit_types(e, n, emit_in(e, n, 0), x))
		return false;
	out_line(e->out, "ckr_%s(%s, %s, %s, types, %lld, env);",
	         op_info[n->op].text, p_out(e, n, 0), p_in(e, n, 0),
	         p_in(e, n, 1), (long long)shape_nelem(&x->shape));
	return true;
}

/* An argument for each of two states; its type if there is none, too. */
static const char *
state_args(struct emit *e, const Node *n,
           const char *arg(const struct emit *, const Node *, int), int first)
{
	const char *none = "(float *)NULL";
	int states = op_norm(n->op) - 2;

	return arena_printf(e->arena, "%s, %s",
	                    states > 0 ? arg(e, n, first) : none,
	                    states > 1 ? arg(e, n, first + 1) : none);
}

/* The formula that is called as the op, for all elements. */
bool
emit_update(struct emit *e, const Node *n)
{
	const Val *y = emit_in(e, n, 0);

	emit_shapes(e, n);
	if (!emit_types(e, n, y, emit_in(e, n, 1)))
		return false;
	out_line(e->out, "ckr_update(ckr_%s, %s, %s, %s,", op_info[n->op].text,
	         p_out(e, n, 0), state_args(e, n, p_out, 1),
	         p_out(e, n, op_info[n->op].nout - 1));
	out_line(e->out, "           %s, %s, %s, %s, types, %lld, %d, %d, "
	         "env);", p_in(e, n, 0), p_in(e, n, 1),
	         state_args(e, n, p_in, 2), p_in(e, n, op_norm(n->op)),
	         (long long)val_nelem(y), n->attr.SGD.decay != 0,
	         n->attr.SGD.coupled != 0);
	return true;
}

/* Results and operands of a factored update as arguments, the norm last. */
static const char *
factored_operands(struct emit *e, const Node *n)
{
	const char *s = p_out(e, n, 0);

	for (int i = 1; i < op_info[n->op].nout; i++)
		s = arena_printf(e->arena, "%s, %s", s, p_out(e, n, i));
	for (int i = 0; i <= op_norm(n->op); i++)
		s = arena_printf(e->arena, "%s, %s", s, p_in(e, n, i));
	return s;
}

/* "a", how v, or the tensor that v is a shard of, is factored; types have been
 * declared. */
static void
emit_factors(struct emit *e, const Val *v, int64_t decay)
{
	const Placement *split = v->shard ? &v->shard->placement
					  : &v->placement;
	Shape whole = val_whole(v), s = v->shard ? v->shard->shape : v->shape;
	int64_t n = val_nelem(v);
	int r = s.rank;

	if (r < 2)              /* by elements: one row, of those at hand */
		s = SHAPE(1, n);
	out_line(e->out, "const struct ckr_adafactor a = {");
	out_line(e->out, ".matrices = %lld, .rows = %lld, .cols = %lld,",
	         (long long)shape_span(&s, 0, s.rank - 2),
	         (long long)s.dim[s.rank - 2], (long long)s.dim[s.rank - 1]);
	out_line(e->out, ".first = %lld * (int64_t)%s, .n = %lld,",
	         v->shard && r >= 2 ? (long long)n : 0LL,
	         emit_shard_number(e, v->shard && v->shard->rows),
	         (long long)n);
	out_line(e->out, ".all_rows = %lld, .all_cols = %lld, .all = %lld,",
	         r < 2 ? 1LL : (long long)whole.dim[r - 2],
	         r < 1 ? 1LL : (long long)whole.dim[r - 1],
	         (long long)shape_nelem(&whole));
	out_line(e->out, ".by_cols = %d, .decay = %d, .types = types };",
	         r >= 2 && split->kind == PLACEMENT_SHARD
	                 && split->axis == r - 2,
	         decay != 0);
}

/* Types are arguments of the kernel. */
static bool
emit_factored(struct emit *e, const Node *n, int64_t decay)
{
	const Val *y = emit_in(e, n, 0), *row = emit_in(e, n, 2);

	if (row->dt != DT_F32)
		return emit_unsupported(e, n, row->dt);
	emit_shapes(e, n);
	if (!emit_types(e, n, y, emit_in(e, n, 1)))
		return false;
	emit_include(e, "adafactor");
	emit_factors(e, y, decay);
	out_line(e->out, "ckr_%s(&a, %s,", op_info[n->op].text,
	         factored_operands(e, n));
	out_line(e->out, "              %s, env);", p_workspace(e, n));
	return true;
}

bool
emit_adafactor(struct emit *e, const Node *n)
{
	return emit_factored(e, n, n->attr.ADAFACTOR.decay);
}

bool
emit_adafactor_squares(struct emit *e, const Node *n)
{
	return emit_factored(e, n, 0);
}

bool
emit_adafactor_means(struct emit *e, const Node *n)
{
	const Val *g = emit_in(e, n, 0);

	emit_shapes(e, n);
	if (g->dt != DT_F32 && !dtype_is_half(g->dt))
		return emit_unsupported(e, n, g->dt);
	emit_include(e, "adafactor");
	out_line(e->out, "const struct ckr_update_types types = { CKR_F32, %s, "
	         "CKR_F32, 0, NULL, CKR_NONE };", tables_dtype(g->dt));
	emit_factors(e, g, 0);
	out_line(e->out, "ckr_adafactor_means(&a, %s, env);",
	         factored_operands(e, n));
	return true;
}
