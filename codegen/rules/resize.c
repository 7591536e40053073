/* Resampling of one axis as a sparse matrix, computed here and written into
 * the kernel as tables.
 *
 * Output element o lies at x in the input's coordinates (ONNX's coordinate
 * transformation modes); its value is the sum of nearby elements with weights
 * from a kernel function of the distance: a triangle (linear), Keys' cubic,
 * or the nearest one.  With antialias the kernel is stretched when shrinking.
 * Positions outside count as the element at the edge.
 */
#include "codegen/rules/target_emitter.h"

#include <math.h>

enum { MAX_ENTRIES = 1 << 22 };

struct resize_table {
	Arena *arena;
	int64_t *row, *col;             /* of entry i, rows ascending */
	double *weight;
	size_t n, cap_row, cap_col, cap_weight;
};

static void
add_table_entry(struct resize_table *t, int64_t row, int64_t col, double weight)
{
	t->row = arena_grow(t->arena, t->row, t->n, &t->cap_row, t->n + 1,
	                    sizeof *t->row);
	t->col = arena_grow(t->arena, t->col, t->n, &t->cap_col, t->n + 1,
	                    sizeof *t->col);
	t->weight = arena_grow(t->arena, t->weight, t->n, &t->cap_weight,
	                       t->n + 1, sizeof *t->weight);
	t->row[t->n] = row;
	t->col[t->n] = col;
	t->weight[t->n++] = weight;
}

static double
scale_of(const Attr *a)
{
	return a->RESIZE.scale > 0 ? a->RESIZE.scale
		: (double)a->RESIZE.extent_out
		  / (double)a->RESIZE.extent_in;
}

/* Coordinate in the input of output o. */
static double
source_position(const Attr *a, int64_t o)
{
	double from = (double)a->RESIZE.extent_in;
	double to = (double)a->RESIZE.extent_out;
	double scale = scale_of(a), x = (double)o, half;

	half = (x + 0.5) / scale - 0.5;
	switch (a->RESIZE.coord) {
	case 1:
		return a->RESIZE.extent_out > 1 ? half : 0;
	case 2: /* ends on ends: PyTorch, ONNX Runtime and ONNX's text have it
	         * so, ONNX's tests divide by a scaled extent with a fraction */
		return to != 1 ? x * (from - 1) / (to - 1) : 0;
	case 3:
		return x / scale;
	case 4:
		if (a->RESIZE.extent_out > 1)
			return a->RESIZE.first * (from - 1) + x
				* (a->RESIZE.last - a->RESIZE.first)
				* (from - 1) / (to - 1);
		return 0.5 * (a->RESIZE.first + a->RESIZE.last) * (from - 1);
	case 5:
		return from / 2 * (1 - to / (scale * from)) + half;
	case 6:
		return (x + 0.5) / scale;
	default:
		return half;
	}
}

/* Scales and regions are decimal fractions that became floats: a position that
 * misses a half or a whole by no more than that is there. */
static double
snap_position(const Attr *a, double x)
{
	double half = rint(2 * x) / 2;
	bool given = a->RESIZE.scale > 0 || a->RESIZE.coord == 4;

	return given && fabs(x - half) <= 7e-8 * (1 + fabs(x)) ? half : x;
}

static double
round_position(double x, int64_t round)
{
	switch (round) {
	case 0: return ceil(x - 0.5);
	case 1: return floor(x + 0.5);
	case 2: return floor(x);
	default: return ceil(x);
	}
}

/* The kernel function at distance d. */
static double
kernel_response(const Attr *a, double d)
{
	double c = a->RESIZE.cubic;

	d = fabs(d);
	if (a->RESIZE.mode == 1)
		return d < 1 ? 1 - d : 0;
	if (d <= 1)
		return ((c + 2) * d - (c + 3)) * d * d + 1;
	if (d < 2)
		return ((c * d - 5 * c) * d + 8 * c) * d - 4 * c;
	return 0;
}

static int64_t
clamp(int64_t i, int64_t n)
{
	return i < 0 ? 0 : i >= n ? n - 1 : i;
}

/* The entries of row o: taps around x, ascending. */
static void
row_entries(struct resize_table *t, const Attr *a, int64_t o, double x)
{
	double s = scale_of(a), sum = 0, support = a->RESIZE.mode == 1 ? 1 : 2;
	int64_t from = a->RESIZE.extent_in, low, n;
	bool inside = a->RESIZE.exclude != 0;

	s = a->RESIZE.antialias && s < 1 ? s : 1;
	low = (int64_t)floor(-support / s) + 1;
	n = 2 - 2 * low;
	low += (int64_t)ceil(x) - 1;
	for (int64_t i = low; i < low + n; i++)
		if (!inside || (i >= 0 && i < from))
			sum += kernel_response(a, s * ((double)i - x));
	for (int64_t i = low; i < low + n; i++) {
		double w = kernel_response(a, s * ((double)i - x)) / sum;

		if (w != 0 && (!inside || (i >= 0 && i < from)))
			add_table_entry(t, o, clamp(i, from), w);
	}
}

static bool
build_table(struct resize_table *t, const Attr *a)
{
	for (int64_t o = 0; o < a->RESIZE.extent_out; o++) {
		double x = snap_position(a, source_position(a, o));

		/* nothing can come from further away than the edge */
		if (!(fabs(x) < 1e15))
			x = x < 0 ? -1 : (double)a->RESIZE.extent_in;
		if (a->RESIZE.coord == 4
		    && (x < 0 || x > (double)(a->RESIZE.extent_in - 1)))
			continue;
		if (a->RESIZE.mode == 0)
			add_table_entry(t, o, clamp((int64_t)
				round_position(x, a->RESIZE.round),
				a->RESIZE.extent_in), 1);
		else
			row_entries(t, a, o, x);
		if (t->n > MAX_ENTRIES)
			return false;
	}
	return true;
}

/* Swap rows and columns; a stable counting sort, so rows ascend again. */
static void
transpose_table(struct resize_table *t, int64_t ncol)
{
	size_t *first = arena_array(t->arena, (size_t)ncol + 1,
	                            sizeof *first);
	struct resize_table u = { .arena = t->arena, .n = t->n };

	u.row = arena_array(t->arena, t->n + 1, sizeof *u.row);
	u.col = arena_array(t->arena, t->n + 1, sizeof *u.col);
	u.weight = arena_array(t->arena, t->n + 1, sizeof *u.weight);
	for (size_t i = 0; i < t->n; i++)
		first[t->col[i] + 1]++;
	for (int64_t c = 0; c < ncol; c++)
		first[c + 1] += first[c];
	for (size_t i = 0; i < t->n; i++) {
		size_t k = first[t->col[i]]++;

		u.row[k] = t->col[i];
		u.col[k] = t->row[i];
		u.weight[k] = t->weight[i];
	}
	*t = u;
}

/* A list of numbers, several to a line. */
static void
emit_column(struct emit *e, const char *type, const char *name, size_t n,
          const char *(*text)(struct emit *, const struct resize_table *,
                              size_t),
          const struct resize_table *t)
{
	enum { PER_LINE = 8 };

	out_line(e->out, "static const %s %s[] = {", type, name);
	for (size_t i = 0; i < n || i == 0; i += PER_LINE) {
		const char *line = i < n ? text(e, t, i) : "0";

		for (size_t k = i + 1; k < n && k < i + PER_LINE; k++)
			line = arena_printf(e->arena, "%s, %s", line,
			                    text(e, t, k));
		out_line(e->out, "%s,", line);
	}
	out_line(e->out, "};");
}

static const char *
column_text(struct emit *e, const struct resize_table *t, size_t i)
{
	return arena_printf(e->arena, "%lld", (long long)t->col[i]);
}

static const char *
weight_text(struct emit *e, const struct resize_table *t, size_t i)
{
	return emit_float(e->arena, t->weight[i]);
}

/* First entry of row i. */
static const char *
first_entry_text(struct emit *e, const struct resize_table *t, size_t i)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->row[mid] < (int64_t)i)
			low = mid + 1;
		else
			high = mid;
	}
	return arena_printf(e->arena, "%zu", low);
}

bool
resize_tables(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	const Attr *a = &n->attr;
	struct resize_table t = { .arena = e->arena };

	if (!e->emitter->takes(x->dt))
		return emit_unsupported(e, n, x->dt);
	if (!build_table(&t, a))
		return diag_error(e->diag, "resize of '%s' needs too many "
		                  "weights", x->name);
	if (a->RESIZE.bwd)
		transpose_table(&t, a->RESIZE.extent_in);
	emit_column(e, "int32_t", "first",
	            (size_t)y->shape.dim[a->RESIZE.axis] + 1, first_entry_text,
	            &t);
	emit_column(e, "int32_t", "at", t.n, column_text, &t);
	emit_column(e, "float", "weight", t.n, weight_text, &t);
	return true;
}

bool
emit_resize(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *y = emit_out(e, n, 0);
	const Attr *a = &n->attr;
	int axis = (int)a->RESIZE.axis;

	emit_include(e, "pool");
	emit_shapes(e, n);
	if (shape_nelem(&y->shape) == 0)
		return true;
	if (!resize_tables(e, n))
		return false;
	out_line(e->out, "static const struct ckr_resize r = {");
	EMIT_MEMBERS(e, "outer from to inner", shape_span(&x->shape, 0, axis),
	             x->shape.dim[axis], y->shape.dim[axis],
	             shape_span(&x->shape, axis + 1, x->shape.rank));
	out_line(e->out, ".first = first, .at = at, .weight = weight, "
	         ".fill = %s,", emit_float(e->arena, a->RESIZE.bwd ? 0
	                                   : a->RESIZE.fill));
	out_line(e->out, "};");
	out_line(e->out, "ckr_resize(&r, p[1], p[0], env);");
	return true;
}
