/* Scatters that overwrite because an exporter lost their reduction.
 *
 * The dynamo exporter notes scatter_reduce('mean') beside a plain scatter.
 * TorchScript's writes index_put(accumulate=True), index_add, and below opset
 * 16 scatter_add, as a scatter into zeros that is added to the rest.  Neither
 * damages calls that overwrite in PyTorch.
 *
 * If all indices differ, no reduction is needed.  This is proven for results of
 * TopK, NonZero and Range, for constants, for extents of one, and for moved
 * copies of these.  Updates that are all equal need no proof.
 *
 * cost   at most MOST_STEPS nodes behind the indices of a scatter; sorts at
 *        most MOST_INDICES constant indices over all scatters
 */
#include "frontend/lint/lint_context.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STEPS = 1000, MOST_HOPS = 8, MOST_INDICES = 1 << 22 };

struct proof {
	struct flat *f;
	bool rows;                      /* ScatterND: indices are rows */
	int64_t axis;
	int steps;                      /* remaining steps */
	int64_t *indices;               /* remaining indices, of all scatters */
};

/* Ops that only move, negate or repeat operand 0, and those that also convert
 * it. */
#define MOVES "Identity Unsqueeze Squeeze Reshape Flatten Transpose Expand " \
	"Slice Neg"
#define CASTS "Cast CastLike"
#define SUMS "Add Sub Mul"

static int64_t
int_attr(const struct flat_node *n, const char *name, int64_t otherwise)
{
	const Onnx__AttributeProto *a = attr_find(n, name);

	return a ? a->i : otherwise;
}

/* ---- constants ---- */

static int
by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* FNV-1a (Fowler, Noll, Vo 1991), by words. */
static uint64_t
hash_word(uint64_t hash, int64_t word)
{
	return ((hash ^ (uint64_t)word) * 1099511628211u) ^ hash >> 29;
}

/* Hash of a key that must be unique: a row, or element i with its coordinates
 * on all axes but one.  Equal hashes of different keys prevent the proof. */
static uint64_t
index_key(const struct proof *p, const Val *v, int64_t i, int64_t width)
{
	int64_t at = i, inner = 1, extent, axis = p->axis;
	uint64_t hash = 14695981039346656037u;

	if (p->rows) {
		for (int64_t k = 0; k < width; k++)
			hash = hash_word(hash, val_int(v, i * width + k));
		return hash;
	}
	for (int k = v->shape.rank - 1; k > axis; k--)
		inner *= v->shape.dim[k];
	extent = v->shape.dim[axis];
	hash = hash_word(hash, at % inner);
	return hash_word(hash_word(hash, at / inner / extent), val_int(v, i));
}

/* Whether no index of a constant occurs twice; plain: the constant is the
 * operand itself, not moved. */
static bool
all_differ(struct proof *p, const Onnx__TensorProto *t, bool plain)
{
	struct proof q = *p;
	int64_t n, width = 1;
	uint64_t *key;
	bool differ = true, negative;
	Val v;

	n = flat_load(p->f, t, &v);
	if (n < 2 || n > *p->indices || dtype_info[v.dt].cls != 'i')
		return false;
	*p->indices -= n;
	/* -1 may alias the last index */
	negative = val_int(&v, 0) < 0;
	for (int64_t i = 1; i < n; i++)
		if ((val_int(&v, i) < 0) != negative)
			return false;
	q.rows &= plain;
	if (q.rows)
		width = v.shape.dim[v.shape.rank - 1];
	q.axis += q.axis < 0 ? v.shape.rank : 0;
	if (!plain || q.axis < 0 || q.axis >= v.shape.rank) {
		v.shape = SHAPE(n);
		q.axis = 0;
	}
	n /= width;
	key = arena_array(p->f->arena, (size_t)n, sizeof *key);
	for (int64_t i = 0; i < n; i++)
		key[i] = index_key(&q, &v, i, width);
	qsort(key, (size_t)n, sizeof *key, by_value);
	for (int64_t i = 1; differ && i < n; i++)
		differ = key[i] != key[i - 1];
	return differ;
}

/* ---- one index ---- */

/* Extent `axis` of v as the file declares it; -1: undeclared. */
static int64_t
declared_extent(const struct flat *f, int v, int64_t axis)
{
	const Onnx__TypeProto *t = declared_type(f, v);
	const Onnx__TensorShapeProto *s = t && t->tensor_type
		? t->tensor_type->shape : NULL;

	axis += axis < 0 && s ? (int64_t)s->n_dim : 0;
	return s && axis >= 0 && axis < (int64_t)s->n_dim
		&& s->dim[axis]->value_case
		   == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE
		? s->dim[axis]->dim_value : -1;
}

/* Whether n names the axis; may: or could, because an axis counts from the
 * other end or is unknown. */
static bool
names_axis(const struct flat *f, const struct flat_node *n, int64_t axis,
           bool may)
{
	const Onnx__AttributeProto *a = attr_find(n, "axes");
	Val v;
	int64_t count = a ? (int64_t)a->n_ints
		: flat_load(f, flat_tensor(f, node_input(n, 1)), &v);

	if (count < 0 || (!a && dtype_info[v.dt].cls != 'i'))
		return may;
	for (int64_t i = 0; i < count; i++) {
		int64_t x = a ? a->ints[i] : val_int(&v, i);

		if (x == axis || (may && (x ^ axis) < 0))
			return true;
	}
	return false;
}

/* Whether v has one element along the axis. */
static bool
is_one_along(struct proof *p, int v, int64_t axis)
{
	for (int hops = 0; v && hops < MOST_HOPS; hops++) {
		const struct flat_node *n = producer_of(p->f, v), *shape;

		if (declared_extent(p->f, v, axis) == 1)
			return true;
		if (!n)
			return false;
		if (is_op_type(n, "Unsqueeze"))
			return names_axis(p->f, n, axis, false);
		if (strncmp(n->type, "Arg", 3) == 0)
			return int_attr(n, "axis", 0) == axis
				&& int_attr(n, "keepdims", 1);
		if (is_op_type(n, "Expand")) {
			shape = producer_of(p->f, node_input(n, 1));
			v = is_op_type(shape, "Shape") ? node_input(shape, 0)
				: 0;
		} else if (is_op_among(n, "Identity Cast")) {
			v = node_input(n, 0);
		} else {
			return false;
		}
	}
	return false;
}

/* Whether v is one number, perhaps repeated. */
static bool
is_one_number(struct proof *p, int v)
{
	while (v && p->steps-- > 0) {
		const Onnx__TensorProto *t = flat_tensor(p->f, v);
		const struct flat_node *n = producer_of(p->f, v);
		int64_t count = 0;

		if (t)
			return onnx_tensor_bytes(t, &count) && count == 1;
		if (!n)
			return false;
		if (is_op_type(n, "Constant"))
			return attr_find(n, "value_int")
				|| attr_find(n, "value_float");
		if (is_op_type(n, "ConstantOfShape"))
			return true;
		/* an extent, which a Gather takes out of a shape */
		if (is_op_type(n, "Gather"))
			return is_op_type(producer_of(p->f, node_input(n, 0)),
			                  "Shape");
		if (!is_op_among(n, MOVES " " CASTS))
			return false;
		v = node_input(n, 0);
	}
	return false;
}

/* ---- indices ---- */

static bool indices_differ(struct proof *, int v, bool plain);

/* Whether the rows differ in one column; the other columns must be known. */
static bool
columns_differ(struct proof *p, const struct flat_node *n)
{
	bool any = false;

	for (int i = 0; i < n->nin; i++) {
		if (indices_differ(p, n->in[i], false))
			any = true;
		else if (!is_one_number(p, n->in[i]))
			return false;
	}
	return any;
}

/* Whether v is a constant number other than 0. */
static bool
is_factor(struct proof *p, int v)
{
	Val x;

	return flat_load(p->f, flat_tensor(p->f, v), &x) == 1
		&& dtype_info[x.dt].cls == 'i' && val_int(&x, 0) != 0;
}

/* Whether n shifts or scales distinct indices by one number.  Sums of two lists
 * of distinct numbers may have duplicates. */
static bool
is_uniform_shift(struct proof *p, const struct flat_node *n)
{
	bool mul = is_op_type(n, "Mul");

	if (!is_op_among(n, SUMS))
		return false;
	for (int i = 0; i < 2; i++) {
		int by = node_input(n, 1 - i);

		if (mul ? is_factor(p, by) : is_one_number(p, by))
			return indices_differ(p, node_input(n, i), false);
	}
	return false;
}

/* i < 0 ? i + n : i */
static bool
is_index_wrap(struct proof *p, const struct flat_node *n)
{
	const struct flat_node *add = producer_of(p->f, node_input(n, 1));
	int i = node_input(n, 2);

	return is_op_type(add, "Add")
		&& (node_input(add, 0) == i || node_input(add, 1) == i)
		&& is_uniform_shift(p, add);
}

/* Whether the file declares v as integers. */
static bool
is_integer(struct proof *p, int v)
{
	for (int hops = 0; v && hops < MOST_HOPS; hops++) {
		const Onnx__TypeProto *d = declared_type(p->f, v);
		const Onnx__TensorProto *t = flat_tensor(p->f, v);
		const struct flat_node *n = producer_of(p->f, v);
		int64_t type = t ? t->data_type : d && d->tensor_type
			? d->tensor_type->elem_type
			: is_op_type(n, "Cast") ? int_attr(n, "to", 0) : 0;
		DType dt = type > 0 && type < 99 ? onnx_dtype((int)type)
			: DT_NONE;

		if (type || !n)
			return dt != DT_NONE && dtype_info[dt].cls == 'i';
		if (is_op_among(n, "NonZero Shape Size")
		    || strncmp(n->type, "Arg", 3) == 0
		    || (is_op_type(n, "TopK") && n->out[0] != v))
			return true;
		/* the limit of a Range, often an extent */
		v = node_input(n, is_op_type(n, "Range")
		               || is_op_type(n, "Where"));
	}
	return false;
}

/* Whether v is known to have an extent other than 1 along the axis, so that an
 * Expand repeats nothing there. */
static bool
keeps_axis(struct proof *p, int v)
{
	const Onnx__TensorProto *t = flat_tensor(p->f, v);
	const struct flat_node *n = producer_of(p->f, v);
	int64_t at = p->axis + (t && p->axis < 0 ? (int64_t)t->n_dims : 0);
	int first = is_op_type(n, "Where"), nin = 1;

	if (p->steps-- <= 0)
		return false;
	if (t)
		return at >= 0 && at < (int64_t)t->n_dims && t->dims[at] > 1;
	if (declared_extent(p->f, v, p->axis) > 1)
		return true;
	if (!n)
		return false;
	if (is_op_type(n, "Unsqueeze"))
		return !names_axis(p->f, n, p->axis, true)
			&& !is_one_along(p, node_input(n, 0), p->axis);
	if (first || is_op_among(n, SUMS))
		nin = n->nin;
	else if (!is_op_among(n, "Identity Cast Neg"))
		return false;
	for (int i = first; i < nin; i++)
		if (keeps_axis(p, node_input(n, i)))
			return true;
	return false;
}

/* Whether distinct elements of operand 0 stay distinct.  Casts truncate
 * fractions; in a row of indices another column may number the copies. */
static bool
keeps_distinct(struct proof *p, const struct flat_node *n)
{
	if (is_op_type(n, "Cast"))
		return is_integer(p, node_input(n, 0))
			&& is_integer(p, n->out[0]);
	if (is_op_type(n, "Expand"))
		return p->rows || keeps_axis(p, node_input(n, 0));
	return is_op_among(n, MOVES);
}

static bool
indices_differ(struct proof *p, int v, bool plain)
{
	const Onnx__TensorProto *t = flat_tensor(p->f, v);
	const struct flat_node *n = producer_of(p->f, v);

	if (p->steps-- <= 0)
		return false;
	if (t)
		return all_differ(p, t, plain);
	if (!n)
		return false;
	if (is_op_among(n, "Range NonZero"))
		return true;
	if (is_op_type(n, "TopK"))
		return n->nout > 1 && n->out[1] == v;
	if (is_op_type(n, "Concat") && p->rows)
		return columns_differ(p, n);
	if (is_op_type(n, "Where"))
		return is_index_wrap(p, n);
	return is_uniform_shift(p, n)
		|| (keeps_distinct(p, n)
		    && indices_differ(p, node_input(n, 0),
		                      plain && is_op_type(n, "Identity")));
}

/* ---- scatters ---- */

static bool
is_overwriting_scatter(const struct flat_node *n)
{
	const Onnx__AttributeProto *a = attr_find(n, "reduction");

	return !*n->domain && strncmp(n->type, "Scatter", 7) == 0
		&& n->nin == 3 && (!a || (a->s.len == 4
		                          && memcmp(a->s.data, "none", 4)
		                             == 0));
}

static bool
is_proven(struct flat *f, const struct flat_node *n, int64_t *indices)
{
	struct proof p = { .f = f, .steps = MOST_STEPS, .indices = indices,
	                   .rows = is_op_type(n, "ScatterND"),
	                   .axis = int_attr(n, "axis", 0) };

	return is_one_number(&p, n->in[2]) || indices_differ(&p, n->in[1], true)
		|| (p.rows ? is_one_number(&p, n->in[1])
		    : is_one_along(&p, n->in[1], p.axis));
}

enum lost { LOST_MEAN, LOST_NEW_MEAN, LOST_SUM, LOST_PUT, LOST_UNKNOWN, LOSTS };

/* Whether v is all zeros. */
static bool
is_zeros(struct flat *f, int v)
{
	const Onnx__TensorProto *p = flat_tensor(f, v);
	const struct flat_node *n = producer_of(f, v);
	const Onnx__AttributeProto *a = is_op_type(n, "ConstantOfShape")
		? attr_find(n, "value") : NULL;
	Val x;
	int64_t count, i = 0;

	if (is_op_type(n, "ConstantOfShape") && !a)
		return true;
	count = flat_load(f, a ? a->t : p, &x);
	while (i < count && val_float(&x, i) == 0)
		i++;
	return i == count;
}

/* The reduction that an overwriting scatter lost; LOSTS: none.  reader: the
 * last reader of each value. */
static enum lost
lost_of(struct flat *f, const struct flat_node *n,
        const struct flat_node *const *reader)
{
	bool with_self;

	if (lost_mean(n, &with_self))
		return with_self ? LOST_MEAN : LOST_NEW_MEAN;
	if (notes_overwriting(n))
		return LOSTS;
	if (f->val[n->out[0]].nuse == 1 && is_op_type(reader[n->out[0]], "Add")
	    && is_zeros(f, n->in[0]))
		return is_op_type(n, "ScatterND") ? LOST_PUT : LOST_SUM;
	/* TorchScript names nodes by module paths */
	return is_pytorch(f) && n->name[0] == '/' ? LOSTS : LOST_UNKNOWN;
}

#define ONE_KEPT "only one of the values with the same index is kept; "
#define MEAN "z.scatter_add(0, i, x) / ones_like(z).scatter_add(0, i, " \
	"ones_like(x))"

void
lint_scatters(struct lint_context *s)
{
	static const char *const text[LOSTS] = {
		[LOST_MEAN] = "the exporter dropped scatter_reduce's 'mean': "
			ONE_KEPT "try: " MEAN,
		[LOST_NEW_MEAN] = "the exporter dropped scatter_reduce's "
			"'mean', include_self=False: " ONE_KEPT "try: n = "
			"zeros_like(z).scatter_add(0, i, ones_like(x)); "
			"where(n > 0, zeros_like(z).scatter_add(0, i, x) / "
			"n.clamp(min=1), z)",
		[LOST_SUM] = "the exporter dropped the sum of index_add or "
			"scatter_add: " ONE_KEPT "export with dynamo=True, or "
			"write scatter_add and export with opset_version=16",
		[LOST_PUT] = "the exporter dropped the sum of "
			"index_put(accumulate=True): " ONE_KEPT "export with "
			"dynamo=True",
		[LOST_UNKNOWN] = "no reduction, and indices may repeat: "
			ONE_KEPT "exporters lose scatter_reduce('mean') in "
			"this way; for a mean, try: " MEAN,
	};
	struct lint_group g[LOSTS] = { { 0 } };
	const struct flat_node **reader = arena_array(s->arena,
		(size_t)s->f->nval, sizeof *reader);
	int64_t indices = MOST_INDICES;

	FOR_FLAT_NODES (n, s->f)
		for (int k = 0; k < n->nin; k++)
			reader[n->in[k]] = n;
	FOR_FLAT_NODES (n, s->f) {
		enum lost lost = n->needed && is_overwriting_scatter(n)
			? lost_of(s->f, n, reader) : LOSTS;

		if (lost < LOSTS && !is_proven(s->f, n, &indices))
			group_add_name(s, &g[lost], n->name);
	}
	for (int i = 0; i < LOSTS; i++)
		add_warning(s, &g[i], "{subject}: %s", text[i]);
}
