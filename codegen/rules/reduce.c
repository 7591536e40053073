/* Reductions, running sums, positions of extremes.
 *
 * Floats reduced over neighbouring dims, or over the first and the last ones,
 * go to the kernels; any other shape or type is a work item per result or line,
 * with one accumulator.
 */
#include "codegen/rules/reduce.h"
#include "codegen/rules/target_emitter.h"

enum { PARALLEL = 1 << 14 };            /* elements worth waking threads for */

/* Dims of x in groups: runs of kept and of reduced ones, extent 1 left out. */
struct axis_groups {
	int n;
	bool reduced[MAX_RANK];
	int64_t extent[MAX_RANK];
};

/* All reductions have the same attributes. */
static struct axis_groups
axis_groups_of(const Shape *s, const Node *n)
{
	const IntList *axes = &n->attr.REDUCE_SUM.axes;
	struct axis_groups g = { 0 };
	bool reduced[MAX_RANK] = { false };

	for (int i = 0; i < axes->n; i++)
		reduced[emit_axis(axes->v[i], s->rank)] = true;
	for (int i = 0; i < s->rank; i++) {
		bool red = axes->n ? reduced[i] : !n->attr.REDUCE_SUM.noop;

		if (s->dim[i] == 1)
			continue;
		if (g.n == 0 || g.reduced[g.n - 1] != red) {
			g.reduced[g.n] = red;
			g.extent[g.n++] = 1;
		}
		g.extent[g.n - 1] *= s->dim[i];
	}
	return g;
}

struct reduced
reduce_extents(const Graph *g, const Node *n)
{
	const Val *x = &g->val[n->in[0]];
	struct axis_groups d = axis_groups_of(&x->shape, n);
	struct reduced e = { false, 1, 1, 1, 1 };
	int at = 0;

	if ((x->dt != DT_F32 && !dtype_is_half(x->dt))
	    || shape_nelem(&x->shape) == 0)
		return e;
	if (d.n == 3 && d.reduced[0])
		e.lead = d.extent[at++];
	if (at < d.n && !d.reduced[at])
		e.outer = d.extent[at++];
	e.fits = at < d.n && at + 2 >= d.n;
	if (e.fits)
		e.n = d.extent[at++];
	if (at < d.n)
		e.inner = d.extent[at];
	return e;
}

const char *
reduce_kernel(Op op)
{
	return op == OP_REDUCE_MAX ? "CKR_MAX" : op == OP_REDUCE_MIN
	     ? "CKR_MIN" : op == OP_REDUCE_PROD ? "CKR_MUL" : "CKR_ADD";
}

static const char *
limit_text(DType dt, bool lowest)
{
	switch (dt) {
	case DT_I64: return lowest ? "INT64_MIN" : "INT64_MAX";
	case DT_I32: return lowest ? "INT32_MIN" : "INT32_MAX";
	case DT_I16: return lowest ? "INT16_MIN" : "INT16_MAX";
	case DT_I8: return lowest ? "INT8_MIN" : "INT8_MAX";
	case DT_U64: return lowest ? "0" : "UINT64_MAX";
	case DT_U32: return lowest ? "0" : "UINT32_MAX";
	case DT_U16: return lowest ? "0" : "UINT16_MAX";
	case DT_U8: return lowest ? "0" : "UINT8_MAX";
	case DT_BOOL: return lowest ? "0" : "1";
	default: return lowest ? "-__builtin_inf()" : "__builtin_inf()";
	}
}

/* A NaN wins; integers have none, and comparing them with themselves draws a
 * warning. */
static const char *
combine_text(Op op, bool fp)
{
	switch (op) {
	case OP_REDUCE_MAX:
		return fp ? "s = s > v || s != s ? s : v;"
		          : "s = s > v ? s : v;";
	case OP_REDUCE_MIN:
		return fp ? "s = s < v || s != s ? s : v;"
		          : "s = s < v ? s : v;";
	case OP_REDUCE_PROD: return "s *= v;";
	default: return "s += v;";
	}
}

static int64_t
stride_of(const struct axis_groups *g, int i)
{
	int64_t stride = 1;

	for (int k = i + 1; k < g->n; k++)
		stride *= g->extent[k];
	return stride;
}

/* Open loops over the groups that are reduced; returns how many and appends
 * their share of x's index to *at. */
static int
open_reduced(struct emit *e, const struct axis_groups *g, const char **at)
{
	int count = 0;

	for (int i = 0; i < g->n; i++) {
		if (!g->reduced[i])
			continue;
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)g->extent[i], i);
		*at = arena_printf(e->arena, "%s + i%d * %lld", *at, i,
		                   (long long)stride_of(g, i));
		count++;
	}
	return count;
}

/* x's index of result t: kept groups, in order. */
static const char *
kept_index(struct emit *e, const struct axis_groups *g)
{
	const char *s = "0";
	int64_t inner = 1;

	for (int i = g->n - 1; i >= 0; i--) {
		if (g->reduced[i])
			continue;
		s = arena_printf(e->arena, "%s + t / %lld %% %lld * %lld", s,
		                 (long long)inner, (long long)g->extent[i],
		                 (long long)stride_of(g, i));
		inner *= g->extent[i];
	}
	return s;
}

static void
emit_plain_reduction(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	struct axis_groups g = axis_groups_of(&x->shape, n);
	bool fp = dtype_info[x->dt].cls == 'f';
	const char *type = fp ? "double" : emit_ctype(x->dt);
	const char *at = kept_index(e, &g);
	const char *start = n->op == OP_REDUCE_MAX ? limit_text(x->dt, true)
	                  : n->op == OP_REDUCE_MIN ? limit_text(x->dt, false)
	                  : n->op == OP_REDUCE_PROD ? "1" : "0";
	int64_t count = 1;
	int reduced;

	for (int i = 0; i < g.n; i++)
		if (g.reduced[i])
			count *= g.extent[i];
	emit_pointer(e, "x", x, 0, true);
	emit_pointer(e, "y", y, n->nin, false);
	emit_work_items(e, shape_nelem(&y->shape),
	                shape_nelem(&x->shape) >= PARALLEL);
	out_line(e->out, "%s s = %s;", type, start);
	reduced = open_reduced(e, &g, &at);
	if (reduced == 0)
		out_line(e->out, "{");
	out_line(e->out, "const %s v = %s;", type, ew_load(e, x->dt,
	         arena_printf(e->arena, "x[%s]", at)));
	out_line(e->out, "%s", combine_text(n->op, fp));
	for (int i = 0; i < (reduced ? reduced : 1); i++)
		out_line(e->out, "}");
	if (n->op == OP_REDUCE_MEAN)
		out_line(e->out, "s /= %lld;", (long long)count);
	out_line(e->out, "y[t] = %s;",
	         ew_store(e, y->dt, arena_printf(e->arena, "(%s)s",
	         ew_type(y->dt))));
	out_line(e->out, "}");
}

bool
emit_reduce(struct emit *e, const Node *n)
{
	struct reduced r = reduce_extents(e->g, n);

	emit_shapes(e, n);
	if (shape_nelem(&emit_out(e, n, 0)->shape) == 0)
		return true;
	if (!r.fits || !e->emitter->reduce || !e->emitter->reduce(e, n, &r))
		emit_plain_reduction(e, n);
	return true;
}

/* A work item per line along axis: where it starts; returns how far apart its
 * elements are. */
static int64_t
open_lines(struct emit *e, const Shape *s, int axis)
{
	int64_t inner = shape_span(s, axis + 1, s->rank);

	emit_work_items(e, shape_span(s, 0, axis) * inner,
	                shape_nelem(s) >= PARALLEL);
	out_line(e->out, "const int64_t o = t / %lld, i = t - o * %lld;",
	         (long long)(inner ? inner : 1), (long long)inner);
	out_line(e->out, "const int64_t at = o * %lld + i;",
	         (long long)(inner * s->dim[axis]));
	return inner;
}

bool
emit_cumsum(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	int axis = emit_axis(n->attr.CUMSUM.axis, x->shape.rank);
	long long len = x->shape.dim[axis], inner;
	bool fp = dtype_info[x->dt].cls == 'f';

	emit_shapes(e, n);
	emit_pointer(e, "x", x, 0, true);
	emit_pointer(e, "y", y, n->nin, false);
	inner = open_lines(e, &x->shape, axis);
	out_line(e->out, "%s s = %d;", fp ? "double" : emit_ctype(x->dt),
	         n->attr.CUMSUM.product != 0);
	out_line(e->out, "for (int64_t k = 0; k < %lld; k++) {", len);
	if (n->attr.CUMSUM.reverse)
		out_line(e->out, "const int64_t j = at + (%lld - k) * %lld;",
		         len - 1, inner);
	else
		out_line(e->out, "const int64_t j = at + k * %lld;", inner);
	for (int pass = 0; pass < 2; pass++)
		if ((pass == 0) != (n->attr.CUMSUM.exclusive != 0))
			out_line(e->out, "s %s= %s;",
			         n->attr.CUMSUM.product ? "*" : "+",
			         ew_load(e, x->dt, "x[j]"));
		else
			out_line(e->out, "const %s v = (%s)s;",
			         ew_type(y->dt), ew_type(y->dt));
	out_line(e->out, "y[j] = %s;", ew_store(e, y->dt, "v"));
	out_line(e->out, "}");
	out_line(e->out, "}");
	return true;
}

bool
emit_argmax(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	int axis = emit_axis(n->attr.ARGMAX.axis, x->shape.rank);
	long long inner;

	emit_shapes(e, n);
	if (shape_nelem(&x->shape) == 0)
		return true;
	emit_pointer(e, "x", x, 0, true);
	emit_pointer(e, "y", y, n->nin, false);
	inner = open_lines(e, &x->shape, axis);
	out_line(e->out, "%s best = %s;", ew_type(x->dt),
	         ew_load(e, x->dt, "x[at]"));
	out_line(e->out, "int64_t where = 0;");
	out_line(e->out, "for (int64_t k = 1; k < %lld; k++) {",
	         (long long)x->shape.dim[axis]);
	out_line(e->out, "const %s v = %s;", ew_type(x->dt), ew_load(e, x->dt,
	         arena_printf(e->arena, "x[at + k * %lld]", inner)));
	out_line(e->out, "if (v %s best) {",
	         n->attr.ARGMAX.last ? ">=" : ">");
	out_line(e->out, "best = v;");
	out_line(e->out, "where = k;");
	out_line(e->out, "}");
	out_line(e->out, "}");
	out_line(e->out, "y[o * %lld + i] = (%s)where;", inner,
	         emit_ctype(y->dt));
	out_line(e->out, "}");
	return true;
}

/* Insertion into the places of the best so far, which are all that is kept:
 * linear in the line for a small k. */
bool
emit_topk(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	const Val *idx = emit_out(e, n, 1);
	int axis = emit_axis(n->attr.TOPK.axis, x->shape.rank);
	bool fp = dtype_info[x->dt].cls == 'f', most = n->attr.TOPK.largest;
	long long k = n->attr.TOPK.k, inner;
	const char *first = most ? "v" : "w", *second = most ? "w" : "v";

	emit_shapes(e, n);
	if (k == 0 || shape_nelem(&x->shape) == 0)
		return true;
	emit_pointer(e, "x", x, 0, true);
	if (y)
		emit_pointer(e, "y", y, n->nin, false);
	if (idx)
		emit_pointer(e, "idx", idx, n->nin + 1, false);
	out_line(e->out, "int64_t *places = (int64_t *)p[%d];",
	         emit_workspace(n));
	inner = open_lines(e, &x->shape, axis);
	out_line(e->out, "int64_t *best = places + CKR_TASK_OWNER(t) * %lld, "
	         "have = 0;", k);
	out_line(e->out, "for (int64_t j = 0; j < %lld; j++) {",
	         (long long)x->shape.dim[axis]);
	out_line(e->out, "const %s v = %s;", ew_type(x->dt), ew_load(e, x->dt,
	         arena_printf(e->arena, "x[at + j * %lld]", inner)));
	out_line(e->out, "int64_t q = have;");
	out_line(e->out, "for (; q > 0; q--) {");
	out_line(e->out, "const %s w = %s;", ew_type(x->dt), ew_load(e, x->dt,
	         arena_printf(e->arena, "x[at + best[q - 1] * %lld]", inner)));
	if (fp)
		out_line(e->out, "if (!(%s > %s || (%s != %s && %s == %s)))",
		         first, second, first, first, second, second);
	else
		out_line(e->out, "if (!(%s > %s))", first, second);
	out_line(e->out, "        break;");
	out_line(e->out, "if (q < %lld)", k);
	out_line(e->out, "        best[q] = best[q - 1];");
	out_line(e->out, "}");
	out_line(e->out, "if (q < %lld)", k);
	out_line(e->out, "        best[q] = j;");
	out_line(e->out, "have += have < %lld;", k);
	out_line(e->out, "}");
	out_line(e->out, "for (int64_t q = 0; q < %lld; q++) {", k);
	if (y)
		out_line(e->out, "y[o * %lld + i + q * %lld] = "
		         "x[at + best[q] * %lld];", inner * k, inner, inner);
	if (idx)
		out_line(e->out, "idx[o * %lld + i + q * %lld] = best[q];",
		         inner * k, inner);
	out_line(e->out, "}");
	out_line(e->out, "}");
	return true;
}
