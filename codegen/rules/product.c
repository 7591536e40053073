/* A matmul as products of matrices in memory. */
#include "codegen/rules/product.h"
#include "codegen/rules/target_emitter.h"

enum { PLAIN_TINY = 1 << 16 };          /* not worth waking threads for */

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* How the operand's last two dims [rows, cols] lie, and its batch strides. */
static struct matrix
operand_matrix(const Val *v, bool trans, const Shape *out)
{
	struct matrix x = { 0 };
	int r = v->shape.rank;
	int64_t rows = v->shape.dim[r - 2], cols = v->shape.dim[r - 1];
	int64_t sr = v->stride[r - 2], sc = v->stride[r - 1];
	bool flipped = sc != 1 && cols != 1;

	x.ld = flipped ? larger(sc, rows) : larger(sr, cols);
	x.trans = trans != flipped;
	for (int i = 0; i < out->rank - 2; i++) {
		int at = i - (out->rank - r);

		x.batch[i] = at < 0 || v->shape.dim[at] == 1
		           ? 0 : v->stride[at];
	}
	return x;
}

/* The weights that blocks hold, as if they lay in memory. */
static Val
unpacked(const Val *v)
{
	Val w = *v;

	if (!val_is_blocks(v))
		return w;
	w.shape = val_weights_shape(v);
	shape_strides(&w.shape, w.stride);
	return w;
}

static struct matmul_product
as_given(const Val *a, const Val *b, const Val *y, bool ta, bool tb)
{
	struct matmul_product p = { 0 };
	int r = y->shape.rank;
	const Val w = unpacked(b);

	p.m = y->shape.dim[r - 2];
	p.n = y->shape.dim[r - 1];
	p.k = a->shape.dim[a->shape.rank - (ta ? 2 : 1)];
	p.a = operand_matrix(a, ta, &y->shape);
	p.b = operand_matrix(&w, tb, &y->shape);
	for (int i = 0; i < r - 2; i++) {
		if (y->shape.dim[i] == 1)
			continue;
		p.extent[p.nbatch] = y->shape.dim[i];
		p.a.batch[p.nbatch] = p.a.batch[i];
		p.b.batch[p.nbatch] = p.b.batch[i];
		p.out[p.nbatch++] = y->stride[i];
	}
	return p;
}

/* Lead dims into rows. */
static void
merge_rows(struct matmul_product *p)
{
	while (p->nbatch > 0) {
		int i = p->nbatch - 1;
		int64_t m;

		if (p->b.batch[i] != 0 || p->a.trans ||
		    p->a.batch[i] != p->m * p->a.ld ||
		    p->out[i] != p->m * p->n ||
		    !mul_ok(p->m, p->extent[i], &m))
			return;
		p->m = m;
		p->nbatch--;
	}
}

struct matmul_product
matmul_product_of(const Val *a, const Val *b, const Val *y, bool ta, bool tb)
{
	struct matmul_product p = as_given(a, b, y, ta, tb);

	merge_rows(&p);
	return p;
}

const char *
product_offset(struct emit *e, const struct matmul_product *p,
               const int64_t *stride)
{
	const char *s = "";

	for (int i = 0; i < p->nbatch; i++)
		if (stride[i])
			s = arena_printf(e->arena, "%s + i%d * %lld", s, i,
			                 (long long)stride[i]);
	return s;
}

/* "i0", "i1", ...: the matrix of the batch that row t is of, "i": its row. */
static void
emit_row_indices(struct emit *e, const struct matmul_product *p)
{
	int64_t inner = p->m;

	out_line(e->out, "const int64_t i = t %% %lld;", (long long)p->m);
	for (int d = p->nbatch - 1; d >= 0; d--) {
		out_line(e->out, "const int64_t i%d = t / %lld %% %lld;", d,
		         (long long)inner, (long long)p->extent[d]);
		inner *= p->extent[d];
	}
}

/* A work item per row, sums in order. */
static void
emit_plain_product(struct emit *e, const Node *n,
                   const struct matmul_product *p)
{
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *bias = emit_in(e, n, 2), *acc = emit_in(e, n, 3);
	const Val *y = emit_out(e, n, 0);
	bool fp = dtype_info[y->dt].cls == 'f';
	const char *sum = ew_type(y->dt);
	int64_t rows = p->m;

	for (int i = 0; i < p->nbatch; i++)
		rows *= p->extent[i];
	emit_pointer(e, "a", a, 0, true);
	emit_pointer(e, "b", b, 1, true);
	if (bias)
		emit_pointer(e, "bias", bias, 2, true);
	if (acc)
		emit_pointer(e, "acc", acc, 3, true);
	emit_pointer(e, "y", y, n->nin, false);
	emit_work_items(e, rows, (double)rows * (double)p->n * (double)p->k
	                > PLAIN_TINY);
	emit_row_indices(e, p);
	out_line(e->out, "for (int64_t j = 0; j < %lld; j++) {",
	         (long long)p->n);
	out_line(e->out, "%s s = 0;", sum);
	out_line(e->out, "for (int64_t k = 0; k < %lld; k++) {",
	         (long long)p->k);
	out_line(e->out, "s += %s * %s;",
	         ew_load(e, a->dt, arena_printf(e->arena,
	         p->a.trans ? "a[k * %lld + i%s]" : "a[i * %lld + k%s]",
	         (long long)p->a.ld, product_offset(e, p, p->a.batch))),
	         ew_load(e, b->dt, arena_printf(e->arena,
	         p->b.trans ? "b[j * %lld + k%s]" : "b[k * %lld + j%s]",
	         (long long)p->b.ld, product_offset(e, p, p->b.batch))));
	out_line(e->out, "}");
	if (fp && n->attr.MATMUL.alpha != 1)
		out_line(e->out, "s *= (%s)%s;", sum,
		         emit_double(e->arena, n->attr.MATMUL.alpha));
	if (bias)
		out_line(e->out, "s += %s;", ew_load(e, bias->dt, "bias[j]"));
	if (acc)
		out_line(e->out, "s += %s;", ew_load(e, acc->dt,
		         arena_printf(e->arena, "acc[i * %lld + j%s]",
		         (long long)p->n, product_offset(e, p, p->out))));
	out_line(e->out, "y[i * %lld + j%s] = %s;", (long long)p->n,
	         product_offset(e, p, p->out), ew_store(e, y->dt, "s"));
	out_line(e->out, "}");
	out_line(e->out, "}");
}

bool
emit_matmul(struct emit *e, const Node *n)
{
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	struct matmul_product p;

	emit_shapes(e, n);
	if (a->shape.rank < 2 || b->shape.rank < 2)
		return diag_internal(e->diag, "codegen: matmul of a vector");
	if (val_is_blocks(b) && !(e->target->fuses & FUSE_FROZEN))
		return emit_unsupported(e, n, b->dt);
	if (shape_nelem(&y->shape) == 0)
		return true;
	p = matmul_product_of(a, b, y, n->attr.MATMUL.ta, n->attr.MATMUL.tb);
	if (!e->emitter->product || !e->emitter->product(e, n, &p))
		emit_plain_product(e, n, &p);
	return true;
}
