/* Matrix products.
 *
 * Float32 goes to the run time's sgemm; transposes, in the attributes or in
 * the strides, are folded into its arguments.  Leading dims that continue the
 * rows of `a` while `b` stays the same become rows.  What remains of them is
 * shared by the threads if the single products are small or many, otherwise
 * each product is left to the library's own threads; which of the two is
 * decided from the shapes alone.  With a 16-bit operand they go there a tile at
 * a time.  Other types are plain loops.
 */
#include "codegen/rules/emit.h"
#include "codegen/cpu/tile.h"

#include <string.h>

/* Products: many; each small; all together not worth threads. */
enum { BATCH_MANY = 16, BATCH_SMALL = 1 << 22, BATCH_TINY = 1 << 16 };

struct matrix {
	bool trans;                     /* as it lies in memory */
	int64_t ld;
	int64_t batch[MAX_RANK];        /* strides of the result's lead dims */
};

struct product {
	int nbatch;
	int64_t extent[MAX_RANK];
	int64_t m, n, k;
	struct matrix a, b;
	int64_t out[MAX_RANK];          /* result's strides of the lead dims */
};

/* How the operand's last two dims [rows, cols] lie, and its batch strides. */
static struct matrix
matrix_of(const Val *v, bool trans, const Shape *out)
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

static struct product
product_of(const Val *a, const Val *b, const Val *y, bool ta, bool tb)
{
	struct product p = { 0 };
	int r = y->shape.rank;

	p.m = y->shape.dim[r - 2];
	p.n = y->shape.dim[r - 1];
	p.k = a->shape.dim[a->shape.rank - (ta ? 2 : 1)];
	p.a = matrix_of(a, ta, &y->shape);
	p.b = matrix_of(b, tb, &y->shape);
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
merge_rows(struct product *p)
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

static const char *
batch_offset(struct emit *e, const struct product *p, const int64_t *stride)
{
	const char *s = "";

	for (int i = 0; i < p->nbatch; i++)
		if (stride[i])
			s = arena_printf(e->arena, "%s + i%d * %lld", s, i,
			                 (long long)stride[i]);
	return s;
}

static void
open_batch(struct emit *e, const struct product *p, bool parallel)
{
	if (p->nbatch > 0 && parallel)
		out_line(e->out, "#pragma omp parallel for "
		         "num_threads(env->threads) collapse(%d)", p->nbatch);
	for (int i = 0; i < p->nbatch; i++)
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)p->extent[i], i);
}

static void
close_batch(struct emit *e, const struct product *p)
{
	for (int i = 0; i < p->nbatch; i++)
		out_line(e->out, "}");
}

/* Float32: the library. */
static void
emit_sgemm(struct emit *e, const Node *n, const struct product *p)
{
	bool bias = emit_in(e, n, 2), acc = emit_in(e, n, 3);
	int64_t batch = 1;
	double each;
	bool parallel;

	for (int i = 0; i < p->nbatch; i++)
		batch *= p->extent[i];
	each = (double)p->m * (double)p->n * (double)p->k;
	parallel = (batch >= BATCH_MANY || each < BATCH_SMALL) &&
	           each * (double)batch > BATCH_TINY;
	if (bias || acc) {
		e->need |= NEED_GEMM;
		out_line(e->out, "ckr_prefill(p[%d], %s, %s, %lld, %lld, env);",
		         n->nin, bias ? "p[2]" : "NULL", acc ? "p[3]" : "NULL",
		         (long long)(batch * p->m), (long long)p->n);
	}
	out_line(e->out, "const float *a = p[0], *b = p[1];");
	out_line(e->out, "float *y = p[%d];", n->nin);
	open_batch(e, p, parallel);
	out_line(e->out, "env->sgemm(%d, %d, %lld, %lld, %lld, %s,",
	         p->a.trans, p->b.trans, (long long)p->m, (long long)p->n,
	         (long long)p->k, emit_float(e->arena, n->attr.MATMUL.alpha));
	out_line(e->out, "           a%s, %lld, b%s, %lld, %s, y%s, %lld);",
	         batch_offset(e, p, p->a.batch), (long long)p->a.ld,
	         batch_offset(e, p, p->b.batch), (long long)p->b.ld,
	         bias || acc ? "1.0f" : "0.0f",
	         batch_offset(e, p, p->out), (long long)p->n);
	close_batch(e, p);
}

static void
emit_half_operand(struct emit *e, const struct product *p, const char *name,
                  const Val *v, int arg, int64_t ld, const int64_t *batch)
{
	if (!v)
		return;
	out_line(e->out, ".%s = { p[%d], %s, %lld, {", name, arg,
	         tables_dtype(v->dt), (long long)ld);
	for (int i = 0; i < p->nbatch; i++)
		out_put(e->out, " %lld,", batch ? (long long)batch[i] : 0LL);
	out_line(e->out, " } },");
}

/* 16-bit floats, and float32 beside them: tiles of float32. */
static void
emit_half(struct emit *e, const Node *n, const struct product *p)
{
	const Val *y = emit_out(e, n, 0);
	int64_t batch = 1;
	struct product_tile t;

	for (int i = 0; i < p->nbatch; i++)
		batch *= p->extent[i];
	t = tile_product(batch, p->m, p->n, p->k);
	out_line(e->out, "const struct ckr_half_product product = {");
	out_line(e->out, ".ta = %d, .tb = %d, .nbatch = %d,", p->a.trans,
	         p->b.trans, p->nbatch);
	for (int i = 0; i < p->nbatch; i++)
		out_line(e->out, ".extent[%d] = %lld,", i,
		         (long long)p->extent[i]);
	out_line(e->out, ".m = %lld, .n = %lld, .k = %lld, .rows = %lld, "
	         ".cols = %lld,", (long long)p->m, (long long)p->n,
	         (long long)p->k, (long long)t.rows, (long long)t.cols);
	out_line(e->out, ".depth = %lld, .alpha = %s,", (long long)t.depth,
	         emit_float(e->arena, n->attr.MATMUL.alpha));
	emit_half_operand(e, p, "a", emit_in(e, n, 0), 0, p->a.ld,
	                  p->a.batch);
	emit_half_operand(e, p, "b", emit_in(e, n, 1), 1, p->b.ld,
	                  p->b.batch);
	emit_half_operand(e, p, "bias", emit_in(e, n, 2), 2, 0, NULL);
	emit_half_operand(e, p, "acc", emit_in(e, n, 3), 3, p->n, p->out);
	emit_half_operand(e, p, "y", y, n->nin, p->n, p->out);
	out_line(e->out, "};");
	out_line(e->out, "ckr_half_matmul(&product, %lld, p[%d], env);",
	         (long long)tile_matmul(e->g, n),
	         emit_scratch(n));
}

/* Any other type: rows shared by the threads, sums in order. */
static void
emit_plain(struct emit *e, const Node *n, const struct product *p)
{
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *bias = emit_in(e, n, 2), *acc = emit_in(e, n, 3);
	const Val *y = emit_out(e, n, 0);
	bool fp = dtype_info[y->dt].cls == 'f';
	const char *sum = ew_type(y->dt);

	emit_pointer(e, "a", a, 0, true);
	emit_pointer(e, "b", b, 1, true);
	if (bias)
		emit_pointer(e, "bias", bias, 2, true);
	if (acc)
		emit_pointer(e, "acc", acc, 3, true);
	emit_pointer(e, "y", y, n->nin, false);
	open_batch(e, p, false);
	if ((double)p->m * (double)p->n * (double)p->k > BATCH_TINY)
		out_line(e->out, "#pragma omp parallel for "
		         "num_threads(env->threads)");
	out_line(e->out, "for (int64_t i = 0; i < %lld; i++) {",
	         (long long)p->m);
	out_line(e->out, "for (int64_t j = 0; j < %lld; j++) {",
	         (long long)p->n);
	out_line(e->out, "%s s = 0;", sum);
	out_line(e->out, "for (int64_t k = 0; k < %lld; k++) {",
	         (long long)p->k);
	out_line(e->out, "s += %s * %s;",
	         ew_load(e, a->dt, arena_printf(e->arena,
	         p->a.trans ? "a[k * %lld + i%s]" : "a[i * %lld + k%s]",
	         (long long)p->a.ld, batch_offset(e, p, p->a.batch))),
	         ew_load(e, b->dt, arena_printf(e->arena,
	         p->b.trans ? "b[j * %lld + k%s]" : "b[k * %lld + j%s]",
	         (long long)p->b.ld, batch_offset(e, p, p->b.batch))));
	out_line(e->out, "}");
	if (fp && n->attr.MATMUL.alpha != 1)
		out_line(e->out, "s *= (%s)%s;", sum,
		         emit_double(e->arena, n->attr.MATMUL.alpha));
	if (bias)
		out_line(e->out, "s += %s;", ew_load(e, bias->dt, "bias[j]"));
	if (acc)
		out_line(e->out, "s += %s;", ew_load(e, acc->dt,
		         arena_printf(e->arena, "acc[i * %lld + j%s]",
		         (long long)p->n, batch_offset(e, p, p->out))));
	out_line(e->out, "y[i * %lld + j%s] = %s;", (long long)p->n,
	         batch_offset(e, p, p->out), ew_store(e, y->dt, "s"));
	out_line(e->out, "}");
	out_line(e->out, "}");
	close_batch(e, p);
}

bool
emit_matmul(struct emit *e, const Node *n)
{
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	struct product p;

	emit_shapes(e, n);
	if (a->shape.rank < 2 || b->shape.rank < 2)
		return diag_internal(e->diag, "codegen: matmul of a vector");
	if (shape_nelem(&y->shape) == 0)
		return true;
	p = product_of(a, b, y, n->attr.MATMUL.ta, n->attr.MATMUL.tb);
	merge_rows(&p);
	if (tile_is_mixed(e->g, n))
		emit_half(e, n, &p);
	else if (y->dt == DT_F32)
		emit_sgemm(e, n, &p);
	else
		emit_plain(e, n, &p);
	return true;
}
