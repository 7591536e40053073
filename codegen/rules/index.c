/* Calls of the indexing kernels. */
#include "codegen/rules/target_emitter.h"

/* Print the shapes; bytes of an index, or 0 after a diagnostic. */
static int
index_bytes(struct emit *e, const Node *n, int i)
{
	const Val *v = emit_in(e, n, i);

	emit_include(e, "index");
	emit_shapes(e, n);
	if (v->dt == DT_I64 || v->dt == DT_I32)
		return dtype_info[v->dt].nbytes;
	emit_unsupported(e, n, v->dt);
	return 0;
}

/* The type to combine elements in; 0: they are replaced. */
static const char *
add_dtype(const Val *v, int64_t add)
{
	return add ? tables_dtype(v->dt) : "0";
}

bool
emit_gather(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 1);
	int axis = emit_axis(n->attr.GATHER.axis, x->shape.rank);
	int nbytes = index_bytes(e, n, 1);

	if (!nbytes)
		return false;
	emit_part(e, x, axis, n->attr.GATHER.whole_extent,
	          n->attr.GATHER.all);
	out_line(e->out, "ckr_gather(p[2], p[0], p[1], %d, %lld, %lld, "
	         "%lld, %lld, part, env);", nbytes,
	         (long long)shape_span(&x->shape, 0, axis),
	         (long long)x->shape.dim[axis],
	         (long long)shape_nelem(&idx->shape),
	         (long long)shape_span(&x->shape, axis + 1, x->shape.rank) *
	         dtype_info[x->dt].nbytes);
	return true;
}

/* A gather of which the place behind the last row has zeros. */
bool
emit_take_rows(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);
	long long rows = (long long)x->shape.dim[0];
	int nbytes = index_bytes(e, n, 1);

	if (!nbytes)
		return false;
	out_line(e->out, "const struct ckr_part part = { %lld, 0, %lld };",
	         rows + 1, rows);
	out_line(e->out, "ckr_gather(p[3], p[0], p[1], %d, 1, %lld, %lld, "
	         "%lld, part, env);", nbytes, rows,
	         (long long)emit_out(e, n, 0)->shape.dim[0],
	         (long long)shape_span(&x->shape, 1, x->shape.rank)
	         * dtype_info[x->dt].nbytes);
	return true;
}

/* Column `to` of the indices is those of element `i`. */
static void
selected_column(struct emit *e, const Shape *x, const char *i, const char *to)
{
	long long all = (long long)shape_nelem(x);

	out_line(e->out, "int64_t rest = %s;", i);
	for (int d = x->rank - 1; d >= 0; d--) {
		out_line(e->out, "y[%lld + %s] = rest %% %lld;", d * all, to,
		         (long long)x->dim[d]);
		out_line(e->out, "rest /= %lld;", (long long)x->dim[d]);
	}
}

bool
emit_selected(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0);
	const char *bits = dtype_is_half(x->dt) ? " & 0x7fff" : "";
	long long all = (long long)shape_nelem(&x->shape);
	bool compact = n->attr.SELECTED.compact;

	emit_shapes(e, n);
	emit_pointer(e, "x", x, 0, true);
	emit_work_items(e, 1, false);
	out_line(e->out, "int64_t *y = (int64_t *)p[1], count = 0, first = 0;");
	out_line(e->out, "for (int64_t i = 0; i < %lld; i++) {", all);
	out_line(e->out, "if ((x[i]%s) == 0)", bits);
	out_line(e->out, "\tcontinue;");
	out_line(e->out, "first = count ? first : i;");
	selected_column(e, &x->shape, "i", compact ? "count" : "i");
	out_line(e->out, "count++;");
	out_line(e->out, "}");
	out_line(e->out, "for (int64_t i = %s; i < %lld; i++) {",
	         compact ? "count" : "0", all);
	if (!compact) {
		out_line(e->out, "if ((x[i]%s) != 0)", bits);
		out_line(e->out, "\tcontinue;");
	}
	selected_column(e, &x->shape, "first", "i");
	out_line(e->out, "}");
	if (emit_out(e, n, 1))
		out_line(e->out, "*(int64_t *)p[2] = count;");
	out_line(e->out, "}");
	return true;
}

bool
emit_scatter_add(struct emit *e, const Node *n)
{
	const Val *idx = emit_in(e, n, 0), *upd = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	int axis = emit_axis(n->attr.SCATTER_ADD.axis, y->shape.rank);
	int nbytes = index_bytes(e, n, 0);

	if (!nbytes)
		return false;
	if (!e->emitter->takes(upd->dt))
		return emit_unsupported(e, n, upd->dt);
	emit_part(e, y, axis, n->attr.SCATTER_ADD.whole_extent,
	          n->attr.SCATTER_ADD.all);
	emit_line(e, n, "ckr_scatter_add($o0, $i2, $i1, p[0], %d, %lld, "
	          "%lld, %lld, %lld, part, env);", nbytes,
	          (long long)shape_span(&y->shape, 0, axis),
	          (long long)y->shape.dim[axis],
	          (long long)shape_nelem(&idx->shape),
	          (long long)shape_span(&y->shape, axis + 1, y->shape.rank));
	return true;
}

/* The end of a call for elements of x along an axis, at the places of idx. */
static bool
emit_elements(struct emit *e, const Val *x, const Val *idx, int64_t axis,
              const char *call)
{
	int r = x->shape.rank;

	out_line(e->out, "%s, %d, %d,", call, r, emit_axis(axis, r));
	out_line(e->out, "        %s,", emit_list(e, x->shape.dim, r));
	out_line(e->out, "        %s, %lld, env);",
	         emit_list(e, idx->shape.dim, r),
	         (long long)shape_nelem(&idx->shape));
	return true;
}

bool
emit_gather_elements(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 1);
	int nbytes = index_bytes(e, n, 1);

	return nbytes && emit_elements(e, x, idx, n->attr.GATHER_ELEMENTS.axis,
		arena_printf(e->arena, "ckr_gather_elements(p[2], p[0], p[1], "
		             "%d, %d", nbytes, dtype_info[x->dt].nbytes));
}

bool
emit_scatter_elements(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 1);
	int nbytes = index_bytes(e, n, 1);

	return nbytes && emit_elements(e, x, idx, n->attr.SCATTER_ELEMENTS.axis,
		arena_printf(e->arena, "ckr_scatter_elements(p[3], p[0], %lld, "
		             "p[1], %d, p[2], %d, %s, %d",
		             (long long)shape_nelem(&x->shape), nbytes,
		             dtype_info[x->dt].nbytes,
		             add_dtype(x, n->attr.SCATTER_ELEMENTS.add),
		             (int)n->attr.SCATTER_ELEMENTS.add));
}

bool
emit_gather_nd(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 1);
	int nb = (int)n->attr.GATHER_ND.batch, ir = idx->shape.rank;
	int depth = (int)idx->shape.dim[ir - 1];
	int nbytes = index_bytes(e, n, 1);

	if (!nbytes)
		return false;
	out_line(e->out, "ckr_gather_nd(p[2], p[0], p[1], %d, %lld, %lld, %d,",
	         nbytes, (long long)shape_span(&x->shape, 0, nb),
	         (long long)shape_span(&idx->shape, nb, ir - 1), depth);
	out_line(e->out, "        %s, %lld, %lld, env);",
	         emit_list(e, x->shape.dim + nb, depth),
	         (long long)shape_span(&x->shape, nb, nb + depth),
	         (long long)shape_span(&x->shape, nb + depth, x->shape.rank) *
	         dtype_info[x->dt].nbytes);
	return true;
}

bool
emit_scatter_nd(struct emit *e, const Node *n)
{
	const Val *x = emit_in(e, n, 0), *idx = emit_in(e, n, 1);
	int ir = idx->shape.rank, depth = (int)idx->shape.dim[ir - 1];
	int nbytes = index_bytes(e, n, 1), size = dtype_info[x->dt].nbytes;

	if (!nbytes)
		return false;
	out_line(e->out, "ckr_scatter_nd(p[3], p[0], %lld, p[1], %d, p[2], "
	         "%lld, %d,", (long long)val_data_bytes(x), nbytes,
	         (long long)shape_span(&idx->shape, 0, ir - 1), depth);
	out_line(e->out, "        %s, %lld, %d, %s, %d, env);",
	         emit_list(e, x->shape.dim, depth),
	         (long long)shape_span(&x->shape, depth, x->shape.rank) *
	         size, size, add_dtype(x, n->attr.SCATTER_ND.add),
	         (int)n->attr.SCATTER_ND.add);
	return true;
}
