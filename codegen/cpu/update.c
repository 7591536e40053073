/* Calls of the classifier and of the optimizers' kernels. */
#include "codegen/cpu/emit.h"
#include "codegen/cpu/tile.h"

/* Streams of random words, one per parameter, that dropout does not use. */
static int64_t
stream(const struct emit *e, ValId param)
{
	int64_t n = 0x80000000;

	for (ValId i = 1; i < param; i++)
		n += e->g->val[i].kind == V_PARAM;
	return n;
}

/* "cut", how a rank's piece of v lies in the whole. */
static void
emit_cut(struct emit *e, const Val *v)
{
	const Split *s = &v->split;
	int64_t pieces = e->g->ranks / s->shared;

	out_line(e->out, "const struct ckr_cut cut = {");
	out_line(e->out, ".piece = env->rank / %lld, .inner = %lld, "
	         ".local = %lld, .nstretch = %d,", (long long)s->shared,
	         (long long)emit_extent(&v->shape, s->axis + 1, v->shape.rank),
	         (long long)v->shape.dim[s->axis], s->npart);
	for (int i = 0; i < s->npart; i++)
		out_line(e->out, ".stretch[%d] = %lld, .size[%d] = %lld,", i,
		         (long long)s->part[i], i,
		         (long long)((s->part[i] + pieces - 1) / pieces));
	out_line(e->out, "};");
}

/* States, between the gradient and the norm, have one type; DT_F32 if there
 * are none. */
static DType
type_of_states(const struct emit *e, const Node *n)
{
	const Val *v = op_info[n->op].max > 3 ? emit_in(e, n, 2) : NULL;

	return v ? v->dt : DT_F32;
}

static void
emit_types(struct emit *e, const Node *n, const Val *y, const Val *g)
{
	bool cut = y->split.kind == SPLIT_S;

	if (cut)
		emit_cut(e, y);
	out_line(e->out, "const struct ckr_half_types types = { %s, %s, %s, "
	         "(uint32_t)%s, %s };", tables_dtype(y->dt),
	         tables_dtype(g->dt), tables_dtype(type_of_states(e, n)),
	         emit_const(e, stream(e, n->in[0])),
	         cut ? "&cut" : "NULL");
}

/* Parameter, gradient and states are float32 or 16-bit floats; *half: not all
 * float32. */
static bool
need_update(struct emit *e, const Node *n, bool *half)
{
	const Val *y = emit_in(e, n, 0), *g = emit_in(e, n, 1);
	const DType dt[] = { y->dt, g->dt, type_of_states(e, n) };

	emit_shapes(e, n);
	*half = false;
	for (int i = 0; i < 3; i++)
		*half |= dtype_is_half(dt[i]);
	e->need |= *half ? NEED_HALF_UPDATE : NEED_UPDATE;
	for (int i = 0; i < 3; i++)
		if (dt[i] != DT_F32 && !dtype_is_half(dt[i]))
			return emit_unsupported(e, n, dt[i]);
	if (*half)
		emit_types(e, n, y, g);
	return true;
}

/* What only products with 16-bit operands need. */
static void
emit_classifier_tiles(struct emit *e, const Node *n)
{
	int64_t tile[3][4];

	if (!tile_is_mixed(e->g, n))
		return;
	tile_classifier_products(e->g, n, tile);
	out_line(e->out, ".keep = %d,", tile_classifier_keeps(e->g, n));
	for (int i = 0; i < 3; i++)
		out_line(e->out, ".tile[%d] = { %lld, %lld, %lld, %lld },", i,
		         (long long)tile[i][0], (long long)tile[i][1],
		         (long long)tile[i][2], (long long)tile[i][3]);
}

bool
emit_classifier(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *w = emit_in(e, n, 1);
	const Val *labels = emit_in(e, n, 2), *bias = emit_in(e, n, 3);
	bool tb = n->attr.CLASSIFIER.tb;
	int64_t classes = w->shape.dim[tb ? 0 : 1], rows = x->shape.dim[0];
	int64_t ignore = n->attr.CLASSIFIER.ignore;
	const char *seed = emit_float(e->arena, n->attr.CLASSIFIER.seed);

	if (emit_in(e, n, 4))
		seed = "*(const float *)p[4]";
	e->need |= NEED_CLASSIFIER;
	emit_shapes(e, n);
	for (int i = 0; i < 2; i++) {
		DType dt = emit_in(e, n, i)->dt;

		if (dt != DT_F32 && !dtype_is_half(dt))
			return emit_unsupported(e, n, dt);
	}
	if (labels->dt != DT_I64 && labels->dt != DT_I32)
		return emit_unsupported(e, n, labels->dt);
	out_line(e->out, "const struct ckr_classifier c1 = {");
	out_line(e->out, ".rows = %lld, .classes = %lld, .dim = %lld,",
	         (long long)rows, (long long)classes,
	         (long long)x->shape.dim[1]);
	out_line(e->out, ".chunk = %lld, .tb = %d, .reduction = %d, "
	         ".seed = %s,", (long long)tile_classifier_chunk(e->g, n), tb,
	         (int)n->attr.CLASSIFIER.reduction, seed);
	out_line(e->out, ".x = %s, .w = %s, .bias = %s,", tables_dtype(x->dt),
	         tables_dtype(w->dt), tables_dtype(bias ? bias->dt : x->dt));
	emit_classifier_tiles(e, n);
	out_line(e->out, "};");
	out_line(e->out, "const struct ckr_labels labels = "
	         "{ p[2], %d, %s, %lld, NULL };", dtype_info[labels->dt].nbytes,
	         ignore == INT64_MIN ? "INT64_MIN"
	         : arena_printf(e->arena, "%lld", (long long)ignore),
	         (long long)classes);
	out_line(e->out, "ckr_classify(&c1, %s, %s, %s, %s,",
	         p_out(e, n, 0), p_out(e, n, 1), p_out(e, n, 2),
	         p_out(e, n, 3));
	out_line(e->out, "             p[0], p[1], &labels, %s, p[%d], env);",
	         p_in(e, n, 3), emit_scratch(n));
	return true;
}

/* Add the squares of operands 0 .. end-1 to s. */
static bool
add_squares(struct emit *e, const Node *n, int end)
{
	for (int i = 0; i < end; i++) {
		const Val *g = emit_in(e, n, i);

		if (!g)
			continue;
		if (dtype_is_half(g->dt)) {
			e->need |= NEED_HALF_UPDATE;
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
	e->need |= NEED_UPDATE;
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
	if (!add_squares(e, n, sums))
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
	if (!add_squares(e, n, n->nin))
		return false;
	out_line(e->out, "*y = (float)s;");
	return true;
}

bool
emit_accumulate(struct emit *e, const Node *n)
{
	const Val *g = emit_in(e, n, 1);
	bool half;

	if (!need_update(e, n, &half))
		return false;
	out_line(e->out, "%s(p[2], p[0], p[1], %s%lld, env);",
	         half ? "ckr_half_accumulate" : "ckr_accumulate",
	         half ? "types, " : "", (long long)shape_nelem(&g->shape));
	return true;
}

/* What an update writes and reads, the norm last, as arguments. */
static const char *
operands(struct emit *e, const Node *n)
{
	const char *s = p_out(e, n, 0);

	for (int i = 1; i < n->nout; i++)
		s = arena_printf(e->arena, "%s, %s", s, p_out(e, n, i));
	for (int i = 0; i < op_info[n->op].max; i++)
		s = arena_printf(e->arena, "%s, %s", s, p_in(e, n, i));
	return s;
}

/* A call of the kernel that is called as the op; more: arguments that the
 * others do not have. */
static bool
emit_step(struct emit *e, const Node *n, const char *more)
{
	bool half;

	if (!need_update(e, n, &half))
		return false;
	out_line(e->out, "ckr_%s%s(%s,", half ? "half_" : "",
	         op_info[n->op].text, operands(e, n));
	out_line(e->out, "         %s%lld, %d%s, env);",
	         half ? "types, " : "",
	         (long long)val_nelem(emit_in(e, n, 0)),
	         n->attr.SGD.decay != 0, more);
	return true;
}

bool
emit_sgd(struct emit *e, const Node *n)
{
	return emit_step(e, n, "");
}

bool
emit_sgdm(struct emit *e, const Node *n)
{
	return emit_step(e, n, "");
}

bool
emit_lion(struct emit *e, const Node *n)
{
	return emit_step(e, n, "");
}

bool
emit_adamw(struct emit *e, const Node *n)
{
	return emit_step(e, n, n->attr.ADAMW.coupled ? ", 1" : ", 0");
}

/* One kernel for all types. */
bool
emit_adafactor(struct emit *e, const Node *n)
{
	const Shape *s = &emit_in(e, n, 0)->shape;
	int r = s->rank;
	bool half;

	if (type_of_states(e, n) != DT_F32)
		return emit_unsupported(e, n, type_of_states(e, n));
	if (!need_update(e, n, &half))
		return false;
	e->need |= NEED_HALF_UPDATE | NEED_ADAFACTOR;
	if (!half)
		out_line(e->out, "const struct ckr_half_types types = "
		         "{ CKR_F32, CKR_F32, CKR_F32, 0, NULL };");
	out_line(e->out, "const struct ckr_adafactor a = { %lld, %lld, %lld, "
	         "%d, types };", (long long)emit_extent(s, 0, r - 2),
	         r < 2 ? 1LL : (long long)s->dim[r - 2],
	         r < 1 ? 1LL : (long long)s->dim[r - 1],
	         n->attr.ADAFACTOR.decay != 0);
	out_line(e->out, "ckr_adafactor(&a, %s,", operands(e, n));
	out_line(e->out, "              %s, env);",
	         r < 2 ? "NULL" : arena_printf(e->arena, "p[%d]",
	                                       emit_scratch(n)));
	return true;
}
