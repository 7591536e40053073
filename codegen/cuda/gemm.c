/* Matrix products on a GPU: one call of the run time's library for each but
 * the last dim of a batch.
 */
#include "codegen/cuda/cuda.h"
#include "codegen/rules/product.h"

static long long
last(const struct product *p, const int64_t *stride)
{
	return p->nbatch ? stride[p->nbatch - 1] : 0;
}

static const char *
type_of(const Val *v)
{
	return v ? tables_dtype(v->dt) : "CKR_NONE";
}

/* Where an operand begins: the dims of the batch that loops walk. */
static const char *
start(struct emit *e, const struct product *p, const Val *v, int at,
      const int64_t *stride, bool constant)
{
	struct product outer = *p;

	if (!v)
		return "NULL";
	outer.nbatch -= outer.nbatch > 0;
	return arena_printf(e->arena, "(%s%s *)p[%d]%s",
	                    constant ? "const " : "", emit_ctype(v->dt), at,
	                    product_offset(e, &outer, stride));
}

static void
emit_gemm(struct emit *e, const Node *n, const struct product *p)
{
	const Val *bias = emit_in(e, n, 2), *acc = emit_in(e, n, 3);
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	int outer = p->nbatch > 0 ? p->nbatch - 1 : 0;
	static const int64_t none[MAX_RANK];

	out_line(e->out, "const struct ckr_gemm g = {");
	out_line(e->out, ".ta = %d, .tb = %d, .m = %lld, .n = %lld, "
	         ".k = %lld, .batch = %lld,", p->a.trans, p->b.trans,
	         (long long)p->m, (long long)p->n, (long long)p->k,
	         p->nbatch ? last(p, p->extent) : 1LL);
	out_line(e->out, ".lda = %lld, .ldb = %lld, .ldc = %lld, .ldy = %lld,",
	         (long long)p->a.ld, (long long)p->b.ld, (long long)p->n,
	         (long long)p->n);
	out_line(e->out, ".sa = %lld, .sb = %lld, .sc = %lld, .sy = %lld,",
	         last(p, p->a.batch), last(p, p->b.batch), last(p, p->out),
	         last(p, p->out));
	out_line(e->out, ".a = %s, .b = %s, .bias = %s, .c = %s, .y = %s,",
	         type_of(a), type_of(b), type_of(bias), type_of(acc),
	         type_of(y));
	out_line(e->out, ".alpha = %s,",
	         emit_float(e->arena, n->attr.MATMUL.alpha));
	out_line(e->out, "};");
	for (int i = 0; i < outer; i++)
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)p->extent[i], i);
	out_line(e->out, "env->gemm(env, &g, %s, %s,",
	         start(e, p, a, 0, p->a.batch, true),
	         start(e, p, b, 1, p->b.batch, true));
	out_line(e->out, "          %s, %s, %s,",
	         start(e, p, bias, 2, none, true),
	         start(e, p, acc, 3, p->out, true),
	         start(e, p, y, n->nin, p->out, false));
	out_line(e->out, "          %s, %lld);", p_scratch(e, n),
	         (long long)cuda_workspace(e->g, n, e->threads));
	for (int i = 0; i < outer; i++)
		out_line(e->out, "}");
}

bool
cuda_matmul(struct emit *e, const Node *n)
{
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	bool known = y->dt == DT_F32 || dtype_is_half(y->dt);
	struct product p;

	emit_shapes(e, n);
	if (a->shape.rank < 2 || b->shape.rank < 2)
		return diag_internal(e->diag, "codegen: matmul of a vector");
	if (shape_nelem(&y->shape) == 0)
		return true;
	p = product_of(a, b, y, n->attr.MATMUL.ta, n->attr.MATMUL.tb);
	if (known && a->dt == b->dt && p.k > 0)
		emit_gemm(e, n, &p);
	else
		product_plain(e, n, &p);
	return true;
}
