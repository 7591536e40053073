/* Matrix products on a GPU: batched library calls over the last batch dim, one
 * for each index of the other batch dims.
 *
 * The library requires both factors in one type.  The accumulator has the type
 * of the result: that of the factors, or float32.  Operands of other types are
 * converted in workspace first, or the result last.
 */
#include "codegen/cuda/cuda.h"
#include "codegen/rules/product.h"

enum { A, B, BIAS, ACC, Y, OPERANDS };

/* An operand as it is passed to cuBLASLt. */
struct gemm_factor {
	const Val *v;                   /* NULL: none */
	Val as;                         /* what it is converted to */
	const char *at;                 /* its first element, as a text */
};

static bool
is_present(const Graph *g, const Node *n, int i)
{
	(void)g;
	return i == Y || (i < n->nin && n->in[i]);
}

static const Val *
operand_val(const Graph *g, const Node *n, int i)
{
	if (!is_present(g, n, i))
		return NULL;
	return &g->val[i == Y ? n->out[0] : n->in[i]];
}

/* Whether products are the library's at all. */
static bool
is_library_type(const Graph *g, const Node *n)
{
	for (int i = 0; i < OPERANDS; i++) {
		const Val *v = operand_val(g, n, i);

		if (v && v->dt != DT_F32 && !dtype_is_half(v->dt))
			return false;
	}
	return true;
}

/* Whether an operand is converted to or from float32. */
static bool
converts(const Graph *g, const Node *n, int i)
{
	const Val *a = operand_val(g, n, A), *b = operand_val(g, n, B);
	const Val *y = operand_val(g, n, Y), *v = operand_val(g, n, i);
	bool narrow = a->dt == b->dt && a->dt == y->dt;

	for (int k = BIAS; k <= ACC; k++)
		narrow &= !is_present(g, n, k)
			|| operand_val(g, n, k)->dt == y->dt;
	if (!v || v->dt == DT_F32)
		return false;
	return i == A || i == B ? a->dt != b->dt : !narrow;
}

/* Bytes of operands that are converted. */
static int64_t
conversion_bytes(const Graph *g, const Node *n)
{
	int64_t all = 0;

	for (int i = 0; i < OPERANDS && is_library_type(g, n); i++) {
		int64_t size;

		if (!converts(g, n, i))
			continue;
		size = cuda_bytes(shape_nelem(&operand_val(g, n, i)->shape), 4);
		if (size < 0 || !add_ok(all, size, &all))
			return -1;
	}
	return all;
}

/* Room for four parts of a sum cut along k, too. */
int64_t
cuda_work_matmul(const Graph *g, const Node *n, int threads)
{
	int64_t all = cuda_bytes(shape_nelem(&g->val[n->out[0]].shape), 16);
	int64_t more = conversion_bytes(g, n);

	(void)threads;
	all = all < 0 || all > CUDA_GEMM_BYTES ? CUDA_GEMM_BYTES : all;
	return more < 0 ? -1 : all + more;
}

/* ---- conversions ---- */

/* Float32 without gaps, but for dims that are broadcast. */
static Val
packed_val(const Val *v)
{
	Val y = *v;
	int64_t step = 1;

	y.dt = DT_F32;
	for (int i = v->shape.rank - 1; i >= 0; i--) {
		y.stride[i] = v->stride[i] ? step : 0;
		step *= v->stride[i] ? v->shape.dim[i] : 1;
	}
	return y;
}

static void
emit_widen(struct emit *e, const Node *n, int i, const struct gemm_factor *f)
{
	int64_t extent[MAX_RANK], stride[MAX_RANK];
	const Val *v = f->v;
	int rank = 0;

	for (int d = 0; d < v->shape.rank; d++)
		if (v->stride[d]) {
			extent[rank] = v->shape.dim[d];
			stride[rank++] = v->stride[d];
		}
	out_line(e->out, "ckr_widen(%s, %s, %d, %s, %s, env);", f->at,
	         p_in(e, n, i), rank, emit_list(e, extent, rank),
	         emit_list(e, stride, rank));
}

/* Operands as the library is to see them; workspace: where they begin. */
static void
set_factors(struct emit *e, const Node *n, struct gemm_factor *f)
{
	int64_t at = 0;

	for (int i = 0; i < OPERANDS; i++) {
		const Val *v = operand_val(e->g, n, i);

		f[i].v = v;
		if (!v)
			continue;
		f[i].as = *v;
		f[i].at = i == Y ? p_out(e, n, 0) : p_in(e, n, i);
		if (!converts(e->g, n, i))
			continue;
		f[i].as = packed_val(v);
		f[i].at = arena_printf(e->arena, "(float *)((char *)%s + %lld)",
		                       p_workspace(e, n), (long long)at);
		at += cuda_bytes(shape_nelem(&v->shape), 4);
		if (i != Y)
			emit_widen(e, n, i, &f[i]);
	}
}

/* ---- calls ---- */

static int64_t
last_stride(const struct matmul_product *p, const int64_t *stride)
{
	return p->nbatch ? stride[p->nbatch - 1] : 0;
}

static const char *
factor_type(const struct gemm_factor *f)
{
	return f->v ? tables_dtype(f->as.dt) : "CKR_NONE";
}

/* Offset of an operand, by the batch dims that loops walk. */
static const char *
factor_start(struct emit *e, const struct matmul_product *p,
             const struct gemm_factor *f, const int64_t *stride)
{
	struct matmul_product outer = *p;

	if (!f->v)
		return "NULL";
	outer.nbatch -= outer.nbatch > 0;
	return arena_printf(e->arena, "%s%s", f->at,
	                    product_offset(e, &outer, stride));
}

static void
emit_gemm_struct(struct emit *e, const Node *n, const struct matmul_product *p,
                 const struct gemm_factor *f, const char *end)
{
	out_line(e->out, "const struct ckr_gemm g = {");
	EMIT_MEMBERS(e, "ta tb m n k batch", p->a.trans, p->b.trans, p->m,
	             p->n, p->k, p->nbatch ? last_stride(p, p->extent) : 1);
	EMIT_MEMBERS(e, "lda ldb ldc ldy", p->a.ld, p->b.ld, p->n, p->n);
	EMIT_MEMBERS(e, "sa sb sc sy", last_stride(p, p->a.batch),
	             last_stride(p, p->b.batch), last_stride(p, p->out),
	             last_stride(p, p->out));
	out_line(e->out, ".a = %s, .b = %s, .bias = %s, .c = %s, .y = %s,",
	         factor_type(&f[A]), factor_type(&f[B]), factor_type(&f[BIAS]),
	         factor_type(&f[ACC]), factor_type(&f[Y]));
	out_line(e->out, ".epilogue = %s, .alpha = %s,", end,
	         emit_float(e->arena, n->attr.MATMUL.alpha));
	out_line(e->out, "};");
}

static void
emit_gemm(struct emit *e, const Node *n, const struct matmul_product *p,
          const struct gemm_factor *f)
{
	int outer = p->nbatch > 0 ? p->nbatch - 1 : 0;
	static const int64_t none[MAX_RANK];
	int64_t more = conversion_bytes(e->g, n);

	emit_gemm_struct(e, n, p, f, "CKR_EPILOGUE_NONE");
	for (int i = 0; i < outer; i++)
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)p->extent[i], i);
	out_line(e->out, "env->gemm(env, &g, %s, %s,",
	         factor_start(e, p, &f[A], p->a.batch),
	         factor_start(e, p, &f[B], p->b.batch));
	out_line(e->out, "          %s, %s, %s,",
	         factor_start(e, p, &f[BIAS], none),
	         factor_start(e, p, &f[ACC], p->out),
	         factor_start(e, p, &f[Y], p->out));
	emit_line(e, n, "          (char *)$w + %lld, %lld);", (long long)more,
	          (long long)(emit_workspace_bytes(e, n) - more));
	for (int i = 0; i < outer; i++)
		out_line(e->out, "}");
}

bool
cuda_product(struct emit *e, const Node *n, const struct matmul_product *as)
{
	struct gemm_factor f[OPERANDS];
	struct matmul_product p;

	if (!is_library_type(e->g, n) || as->k == 0)
		return false;
	emit_include(e, "widen");
	set_factors(e, n, f);
	p = matmul_product_of(&f[A].as, &f[B].as, f[Y].v, n->attr.MATMUL.ta,
	                      n->attr.MATMUL.tb);
	emit_gemm(e, n, &p, f);
	if (converts(e->g, n, Y))
		emit_line(e, n, "ckr_convert($o0, %s, %lld, env);", f[Y].at,
		          (long long)shape_nelem(&f[Y].v->shape));
	return true;
}

static const char *
epilogue_text(const Node *n)
{
	static const char *const text[] = { [END_ROWS] = "CKR_EPILOGUE_SUMS_A",
		[END_COLUMNS] = "CKR_EPILOGUE_SUMS_B",
		[END_GELU_GRAD] = "CKR_EPILOGUE_GELU_GRAD" };

	if (n->attr.MATMUL_END.end == END_GELU_GRAD && n->out[1])
		return "CKR_EPILOGUE_GELU_GRAD_SUMS";
	return text[n->attr.MATMUL_END.end];
}

/* Operands of one type, of matrices. */
bool
cuda_matmul_end(struct emit *e, const Node *n)
{
	const Val *a = emit_in(e, n, 0), *b = emit_in(e, n, 1);
	const Val *y = emit_out(e, n, 0);
	struct gemm_factor f[OPERANDS] = { [A] = { a, *a, NULL },
		[B] = { b, *b, NULL }, [Y] = { y, *y, NULL } };
	struct matmul_product p = matmul_product_of(a, b, y,
		n->attr.MATMUL_END.ta, n->attr.MATMUL_END.tb);

	emit_include(e, "epilogue");
	emit_shapes(e, n);
	if (n->nin > 2 && n->in[2])
		f[ACC] = f[Y];
	emit_gemm_struct(e, n, &p, f, epilogue_text(n));
	emit_line(e, n, "ckr_gemm_epilogue(&g, $i0, $i1, $i3, $i2, $o0, $o1, "
	          "$w, %lld, env);", (long long)emit_workspace_bytes(e, n));
	return true;
}
