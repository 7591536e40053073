/* Matrix products.
 *
 * Float32 products call sgemm of the run time.  Threads share a batch if its
 * products are small or many; otherwise the library runs each product with its
 * own threads.  The choice depends only on shapes.  Products with a 16-bit
 * operand call sgemm tile by tile.
 */
#include "codegen/cpu/cpu.h"
#include "codegen/cpu/tile.h"
#include "codegen/rules/product.h"

/* Products: many; each small; all together not worth threads. */
enum { BATCH_MANY = 16, BATCH_SMALL = 1 << 22, BATCH_TINY = 1 << 16 };

static void
open_batch(struct emit *e, const struct matmul_product *p, bool parallel)
{
	if (p->nbatch > 0 && parallel)
		out_line(e->out, "#pragma omp parallel for "
		         "num_threads(env->threads) collapse(%d)", p->nbatch);
	for (int i = 0; i < p->nbatch; i++)
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)p->extent[i], i);
}

static void
close_batch(struct emit *e, const struct matmul_product *p)
{
	for (int i = 0; i < p->nbatch; i++)
		out_line(e->out, "}");
}

/* Float32: the library. */
static void
emit_sgemm(struct emit *e, const Node *n, const struct matmul_product *p)
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
		emit_include(e, "gemm");
		out_line(e->out, "ckr_prefill(p[%d], %s, %s, %lld, %lld, env);",
		         n->nin, bias ? "p[2]" : "NULL", acc ? "p[3]" : "NULL",
		         (long long)(batch * p->m), (long long)p->n);
	}
	out_line(e->out, "const float *a = p[0], *b = p[1];");
	out_line(e->out, "float *y = p[%d];", n->nin);
	open_batch(e, p, parallel);
	out_line(e->out, "%s(%d, %d, %lld, %lld, %lld, %s,",
	         parallel ? "ckr_sgemm(env)" : "env->sgemm", p->a.trans,
	         p->b.trans, (long long)p->m, (long long)p->n, (long long)p->k,
	         emit_float(e->arena, n->attr.MATMUL.alpha));
	out_line(e->out, "           a%s, %lld, b%s, %lld, %s, y%s, %lld);",
	         product_offset(e, p, p->a.batch), (long long)p->a.ld,
	         product_offset(e, p, p->b.batch), (long long)p->b.ld,
	         bias || acc ? "1.0f" : "0.0f",
	         product_offset(e, p, p->out), (long long)p->n);
	close_batch(e, p);
}

static void
emit_half_operand(struct emit *e, const struct matmul_product *p,
                  const char *name, const Val *v, int arg, int64_t ld,
                  const int64_t *batch)
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
emit_half(struct emit *e, const Node *n, const struct matmul_product *p)
{
	const Val *y = emit_out(e, n, 0);
	int64_t batch = 1;
	struct product_tile t;

	for (int i = 0; i < p->nbatch; i++)
		batch *= p->extent[i];
	t = tile_product(batch, p->m, p->n, p->k);
	emit_include(e, "tiles");
	out_line(e->out, "const struct ckr_half_product product = {");
	EMIT_MEMBERS(e, "ta tb nbatch", p->a.trans, p->b.trans, p->nbatch);
	for (int i = 0; i < p->nbatch; i++)
		out_line(e->out, ".extent[%d] = %lld,", i,
		         (long long)p->extent[i]);
	EMIT_MEMBERS(e, "m n k rows cols", p->m, p->n, p->k, t.rows, t.cols);
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
	         (long long)tile_matmul(e->g, n), emit_workspace(n));
}

bool
cpu_product(struct emit *e, const Node *n, const struct matmul_product *p)
{
	if (tile_is_mixed(e->g, n))
		emit_half(e, n, p);
	else if (emit_out(e, n, 0)->dt == DT_F32)
		emit_sgemm(e, n, p);
	else
		return false;
	return true;
}
