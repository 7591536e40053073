/* Boolean masks that an exporter turned into numbers.
 *
 * PyTorch's scaled_dot_product_attention gives zeros for a row that may attend
 * to nothing.  Its exporter adds the lowest float to masked scores, so that all
 * scores of such a row are equal and the row attends to all keys evenly.  A
 * check for NaN after the softmax, which never triggers, distinguishes these
 * files from modules that add large numbers themselves.
 *
 * Only a mask that depends on inputs and differs between rows can have such a
 * row.  Padding alone hides whole samples; with a causal mask it may hide all
 * keys of a row.  Masks are safe if each row sees the first key, as with
 * lengths and a causal mask, or itself, as with packed documents.
 *
 * cost   linear in the nodes, and again for each mask; examines at most
 *        MOST_STEPS nodes behind a mask
 */
#include "frontend/lint/lint_context.h"

#include <math.h>
#include <string.h>

enum { MOST_HOPS = 12, MOST_MASKS = 64, MOST_STEPS = 1000 };

/* Whether n changes only axes or type of operand 0. */
static bool
is_move(const struct flat_node *n)
{
	return is_op_among(n, "Cast CastLike Expand Identity Reshape Squeeze "
	                   "Unsqueeze Not Slice");
}

/* The value behind v that no node merely moved. */
static int
root_of(const struct flat *f, int v)
{
	const struct flat_node *n = producer_of(f, v);

	for (int i = 0; i < MOST_HOPS && is_move(n); i++) {
		v = node_input(n, 0);
		n = producer_of(f, v);
	}
	return v;
}

/* The node behind v that does more than move its operand; NULL: none. */
static const struct flat_node *
compute_node(const struct flat *f, int v)
{
	return producer_of(f, root_of(f, v));
}

/* The number that v holds; 0: none, or not a number. */
static double
scalar_value(struct flat *f, int v)
{
	const struct flat_node *n = compute_node(f, v);
	const Onnx__AttributeProto *a = is_op_type(n, "Constant")
		? attr_find(n, "value_float") : NULL;
	Val x;

	if (a)
		return (double)a->f;
	return flat_load(f, flat_tensor(f, root_of(f, v)), &x) == 1
		? val_float(&x, 0) : 0;
}

/* Whether x is the lowest float of 16 or more bits.  -inf is not: a NaN check
 * finds its rows. */
static bool
is_lowest(double x)
{
	return x <= -65504 && !isinf(x);
}

/* The Where with the lowest float whose result is added to the scores of a
 * softmax; NULL: none. */
static const struct flat_node *
find_where(struct lint_context *s, const struct flat_node *softmax)
{
	const struct flat_node *add = compute_node(s->f,
	                                           node_input(softmax, 0));

	for (int i = 0; is_op_type(add, "Add") && i < 2; i++) {
		const struct flat_node *w = compute_node(s->f,
		                                         node_input(add, i));

		if (is_op_type(w, "Where")
		    && (is_lowest(scalar_value(s->f, node_input(w, 1)))
		        || is_lowest(scalar_value(s->f, node_input(w, 2)))))
			return w;
	}
	return NULL;
}

/* ---- rows ---- */

enum witness { SEES_FIRST, SEES_ITSELF };

struct mask_query {
	struct flat *f;
	enum witness who;
	int steps;                      /* remaining steps */
};

enum { MOST_RANK = 31 };

/* Axes along which a value may vary, as bits counted from the last axis; bits
 * beyond its rank are 0. */
struct axes {
	unsigned bits;
	int rank;                       /* -1: unknown */
};

static const struct axes any_axes = { ~0u >> 1, -1 };

static struct axes axes_of(struct mask_query *, int v);

/* Axes of a stored tensor or an input with extents other than 1. */
static struct axes
declared_axes(const struct flat *f, int v)
{
	const Onnx__TypeProto *t = declared_type(f, v);
	const Onnx__TensorShapeProto *s = t && t->tensor_type
		? t->tensor_type->shape : NULL;
	const Onnx__TensorProto *p = flat_tensor(f, v);
	struct axes a = { 0, (int)(p ? p->n_dims : s ? s->n_dim : 0) };

	if ((!p && !s) || a.rank > MOST_RANK)
		return any_axes;
	for (int i = 0; i < a.rank; i++)
		if (p ? p->dims[a.rank - 1 - i] != 1
		    : s->dim[a.rank - 1 - i]->dim_value != 1)
			a.bits |= 1u << i;
	return a;
}

/* Read the integers of a constant; -1: not constant, or more than `most`. */
static int
whole_numbers(const struct flat *f, int v, int64_t *x, int most)
{
	Val c;
	int64_t n = flat_load(f, flat_tensor(f, v), &c);

	if (n < 0 || n > most || c.dt != DT_I64)
		return -1;
	memcpy(x, c.data, (size_t)n * sizeof *x);
	return (int)n;
}

static struct axes
unsqueezed_axes(struct mask_query *w, const struct flat_node *n)
{
	struct axes a = axes_of(w, node_input(n, 0));
	int64_t at[MOST_RANK];
	int k = whole_numbers(w->f, node_input(n, 1), at, MOST_RANK);
	unsigned new = 0;

	for (int i = 0; i < k; i++) {
		int64_t end = at[i] < 0 ? -1 - at[i] : a.rank + k - 1 - at[i];

		if ((at[i] >= 0 && a.rank < 0) || end < 0 || end >= MOST_RANK)
			return any_axes;
		new |= 1u << end;
	}
	if (k < 0)
		return any_axes;
	for (int i = 0; i < MOST_RANK; i++)
		if (new >> i & 1)
			a.bits = (a.bits & ((1u << i) - 1))
				| (a.bits & ~0u << i) << 1;
	a.rank += a.rank < 0 ? 0 : k;
	return a;
}

static struct axes
transposed_axes(struct mask_query *w, const struct flat_node *n)
{
	const Onnx__AttributeProto *p = attr_find(n, "perm");
	struct axes from = axes_of(w, node_input(n, 0)), a = { 0, 0 };

	if (!p || p->n_ints > MOST_RANK)
		return any_axes;
	a.rank = (int)p->n_ints;
	for (int i = 0; i < a.rank; i++) {
		int64_t k = a.rank - 1 - p->ints[a.rank - 1 - i];

		if (k < 0 || k >= a.rank)
			return any_axes;
		a.bits |= (from.bits >> k & 1) << i;
	}
	return a;
}

/* Axes along which the result of an element-wise op varies. */
static struct axes
joined_axes(struct mask_query *w, const struct flat_node *n)
{
	struct axes all = { 0, 0 };

	for (int i = 0; i < n->nin; i++) {
		struct axes a = axes_of(w, n->in[i]);

		all.bits |= a.bits;
		all.rank = all.rank < 0 || a.rank < 0 ? -1
			: a.rank > all.rank ? a.rank : all.rank;
	}
	return all;
}

static struct axes
axes_of(struct mask_query *w, int v)
{
	const struct flat_node *n = producer_of(w->f, v);
	struct axes a = any_axes;

	if (!v || --w->steps < 0)
		return any_axes;
	if (!n || flat_tensor(w->f, v))
		return declared_axes(w->f, v);
	if (is_op_among(n, "Constant ConstantOfShape"))
		return (struct axes){ 0, -1 };
	if (is_op_among(n, "And Or Xor Where Equal Less LessOrEqual Greater "
	                "GreaterOrEqual Add Sub Mul Div Mod Max Min Concat"))
		return joined_axes(w, n);
	if (is_op_type(n, "Range"))
		return (struct axes){ 1, 1 };
	if (is_op_type(n, "Unsqueeze"))
		return unsqueezed_axes(w, n);
	if (is_op_type(n, "Transpose"))
		return transposed_axes(w, n);
	if (is_op_type(n, "Expand")) {
		a = axes_of(w, node_input(n, 0));
		a.rank = -1;
	} else if (is_op_type(n, "GatherND")) {
		a = axes_of(w, node_input(n, 1));
		a.bits >>= 1;
		a.rank -= a.rank > 0;
	} else if (is_op_type(n, "Trilu")) {
		a.rank = axes_of(w, node_input(n, 0)).rank;
	} else if (is_move(n) && !is_op_among(n, "Reshape Squeeze")) {
		a = axes_of(w, node_input(n, 0));
	}
	return a;
}

/* Mark the values that v depends on; returns whether one is an input. */
static bool
mark_sources(const struct flat *f, int v, bool *from)
{
	bool input = false;

	from[v] = true;
	for (int i = f->val[v].def; i >= 0; i--) {
		const struct flat_node *n = &f->node[i];
		bool hit = false;

		for (int k = 0; k < n->nout; k++)
			hit |= n->out[k] && from[n->out[k]];
		if (!hit || is_op_type(n, "Shape"))
			continue;
		for (int k = 0; k < n->nin; k++)
			from[n->in[k]] = n->in[k] != 0;
	}
	for (int i = 0; i < f->ninput; i++)
		input |= from[f->input[i]] && !f->val[f->input[i]].init;
	return input;
}

/* Whether v hides different keys in different rows.  A value without inputs and
 * equal for all keys hides none: q >= 0 for each row q. */
static bool
has_rows(struct mask_query *w, int v, bool *from)
{
	const struct flat_node *n = producer_of(w->f, v);
	struct axes a = axes_of(w, v);

	if (!(a.bits & 2))
		return false;
	if (is_op_type(n, "And"))
		return has_rows(w, node_input(n, 0), from)
			|| has_rows(w, node_input(n, 1), from);
	if (is_op_type(n, "Expand"))
		return has_rows(w, node_input(n, 0), from);
	memset(from, 0, (size_t)w->f->nval * sizeof *from);
	return a.bits & 1 || mark_sources(w->f, v, from);
}

/* ---- a key that each row sees ---- */

/* Whether a constant equals `want` at that key in each row. */
static bool
shows_constant(const struct mask_query *w, const Onnx__TensorProto *p,
               bool want)
{
	Val v;
	int64_t n = flat_load(w->f, p, &v), cols, rows;

	if (n <= 0 || dtype_info[v.dt].cls == 'f')
		return false;
	cols = v.shape.rank > 0 ? v.shape.dim[v.shape.rank - 1] : 1;
	rows = v.shape.rank > 1 ? v.shape.dim[v.shape.rank - 2] : 1;
	for (int64_t i = 0; i < n / cols; i++) {
		int64_t k = w->who == SEES_FIRST ? 0 : i % rows;

		if (k >= cols || (val_int(&v, i * cols + k) != 0) != want)
			return false;
	}
	return true;
}

/* Whether two values are the same number or computation, up to the order in
 * which a Gather reads them. */
static bool
same_computation(struct mask_query *w, int a, int b)
{
	const struct flat_node *n = compute_node(w->f, a);
	const struct flat_node *m = compute_node(w->f, b);
	int nin;

	if (root_of(w->f, a) == root_of(w->f, b))
		return true;
	if (!n || !m || --w->steps < 0 || strcmp(n->type, m->type) != 0
	    || n->nin != m->nin)
		return false;
	if (n->nin == 0)
		return scalar_value(w->f, a) == scalar_value(w->f, b);
	nin = strncmp(n->type, "Gather", 6) == 0 ? 1 : n->nin;
	for (int i = 0; i < nin; i++)
		if (!same_computation(w, n->in[i], m->in[i]))
			return false;
	return true;
}

/* The value behind v to which an integer was added. */
static int
strip_offset(const struct mask_query *w, int v, int64_t *by)
{
	const struct flat_node *n = compute_node(w->f, v);
	int64_t x;

	for (int i = 0; i < MOST_HOPS; i++) {
		bool sub = is_op_type(n, "Sub");

		if ((!sub && !is_op_type(n, "Add"))
		    || whole_numbers(w->f, node_input(n, 1), &x, 1) != 1
		    || x < -INT32_MAX || x > INT32_MAX)
			break;
		*by += sub ? -x : x;
		v = node_input(n, 0);
		n = compute_node(w->f, v);
	}
	return v;
}

/* Whether low < high, or low <= high, holds at that key in each row: for key
 * numbers compared with a length, which is above 0, or with the row number. */
static bool
shows_order(struct mask_query *w, int low, int high, bool equal)
{
	int64_t at = 0, end = 0;
	int from = strip_offset(w, low, &at), to = strip_offset(w, high, &end);
	const struct flat_node *keys = compute_node(w->f, from);
	const struct flat_node *bound = compute_node(w->f, to);

	if (w->who == SEES_ITSELF)
		return at < end + equal && same_computation(w, from, to);
	return at == 0 && end >= 0 && is_op_type(keys, "Range")
		&& scalar_value(w->f, node_input(keys, 0)) == 0
		&& axes_of(w, low).bits == 1
		&& (bound ? is_op_type(bound, "Range") && end + equal > 0
		    : !flat_tensor(w->f, root_of(w->f, to)));
}

/* Whether Trilu keeps the part on and below the diagonal, or above it. */
static bool
shows_triangle(struct mask_query *w, const struct flat_node *n, bool want)
{
	const Onnx__AttributeProto *a = attr_find(n, "upper");
	bool upper = !a || a->i != 0;
	double k = scalar_value(w->f, node_input(n, 1));

	return want ? !upper && k >= 0 : upper && k >= 1;
}

/* Whether v equals `want` at that key in each row. */
static bool
shows_key(struct mask_query *w, int v, bool want)
{
	const struct flat_node *n = producer_of(w->f, v);
	const Onnx__TensorProto *p = flat_tensor(w->f, v);
	int a = node_input(n, 0), b = node_input(n, 1);

	if (--w->steps < 0)
		return false;
	if (p)
		return shows_constant(w, p, want);
	if (is_op_type(n, want ? "And" : "Or"))
		return shows_key(w, a, want) && shows_key(w, b, want);
	if (is_op_type(n, want ? "Or" : "And"))
		return shows_key(w, a, want) || shows_key(w, b, want);
	if (is_op_type(n, want ? "Less" : "GreaterOrEqual"))
		return shows_order(w, a, b, false);
	if (is_op_type(n, want ? "LessOrEqual" : "Greater"))
		return shows_order(w, a, b, true);
	if (is_op_type(n, want ? "Greater" : "LessOrEqual"))
		return shows_order(w, b, a, false);
	if (is_op_type(n, want ? "GreaterOrEqual" : "Less"))
		return shows_order(w, b, a, true);
	if (is_op_type(n, "Equal"))
		return want && w->who == SEES_ITSELF
			&& same_computation(w, a, b);
	if (is_op_type(n, "Trilu"))
		return shows_triangle(w, n, want);
	if (is_op_type(n, "Constant"))  /* value_float, of ones */
		return (scalar_value(w->f, v) != 0) == want;
	return is_move(n)
		&& shows_key(w, a, is_op_type(n, "Not") ? !want : want);
}

/* Whether the module itself tests which rows see a key: mask.any(-1). */
static bool
is_asked(const struct flat *f, const bool *from)
{
	FOR_FLAT_NODES (n, f) {
		int v = node_input(n, 0);

		if (!n->needed || strncmp(n->type, "Reduce", 6) != 0)
			continue;
		for (int k = 0; k < MOST_HOPS && !from[v]
		     && is_move(producer_of(f, v)); k++)
			v = node_input(producer_of(f, v), 0);
		if (from[v] && v)
			return true;
	}
	return false;
}

/* hidden: the mask is true at hidden keys. */
static bool
may_mask_row(struct lint_context *s, int mask, bool hidden)
{
	bool *from = arena_array(s->arena, (size_t)s->f->nval, sizeof *from);
	struct mask_query first = { s->f, SEES_FIRST, MOST_STEPS };
	struct mask_query self = { s->f, SEES_ITSELF, MOST_STEPS };
	struct mask_query rows = { s->f, SEES_FIRST, MOST_STEPS };
	bool *room = arena_array(s->arena, (size_t)s->f->nval, sizeof *room);

	return mark_sources(s->f, mask, from) && !is_asked(s->f, from)
		&& has_rows(&rows, mask, room)
		&& !shows_key(&first, mask, !hidden)
		&& !shows_key(&self, mask, !hidden);
}

void
lint_masks(struct lint_context *s)
{
	bool *checked = arena_array(s->arena, (size_t)s->f->nval,
	                            sizeof *checked);
	struct lint_group g = { 0 };
	int last = 0, masks = 0;        /* layers share their mask */
	bool dead = false;

	FOR_FLAT_NODES (n, s->f)
		if (is_op_type(n, "IsNaN"))
			checked[node_input(n, 0)] = true;
	FOR_FLAT_NODES (n, s->f) {
		const struct flat_node *w = NULL;

		if (masks < MOST_MASKS && n->needed
		    && is_op_type(n, "Softmax") && checked[n->out[0]])
			w = find_where(s, n);
		if (!w || !node_input(w, 0))
			continue;
		if (w->in[0] != last) {
			last = w->in[0];
			dead = may_mask_row(s, last, is_lowest(
				scalar_value(s->f, node_input(w, 1))));
			masks++;
		}
		if (dead)
			group_add_name(s, &g, n->name);
	}
	add_warning(s, &g,
	    "{subject}: the exporter masks with the lowest float instead of "
	    "-inf: a fully masked row, e.g. of left padding with a causal "
	    "mask, attends to all keys evenly, but gives zeros in PyTorch; "
	    "export with opset_version=23, or multiply the attention's output "
	    "by mask.any(-1, keepdim=True)");
}
