/* The machine of plain C. */
#include "tests/machine/plain.h"
#include "codegen/cpu/cpu.h"
#include "codegen/rules/loop_nest.h"

/* Unlike the CPU's, so that nobody counts on those. */
enum { ALIGN = 128 };

/* ---- ops ---- */

static int64_t
bytes(int64_t n, int64_t size)
{
	return (n * size + ALIGN - 1) / ALIGN * ALIGN;
}

/* The places of the best so far. */
static int64_t
work_topk(const Graph *g, const Node *n, int threads)
{
	(void)g;
	(void)threads;
	return bytes(n->attr.TOPK.k, 8);
}

/* Sums of the gradients of scale and bias, in one part. */
static int64_t
work_norm_grad(const Graph *g, const Node *n, int threads)
{
	const Shape *s = &g->val[n->in[1]].shape;
	int axis = emit_axis(n->attr.LAYERNORM_GRAD.axis, s->rank);

	(void)threads;
	return bytes(2 * shape_span(s, axis, s->rank), 4);
}

static const struct op_rule plain_op[OP_COUNT] = {
	[OP_TOPK] = { .work = work_topk },
	[OP_LAYERNORM_GRAD] = { .work = work_norm_grad },
	[OP_RMSNORM_GRAD] = { .work = work_norm_grad },
	[OP_ATTENTION] = { .emit = emit_own },
	[OP_ATTENTION_GRAD] = { .emit = emit_own },
};

/* ---- as passes see it ---- */

static int64_t
plain_workspace(const Graph *g, const Node *n, int threads)
{
	return rule_workspace(plain_op, g, n, threads);
}

static int64_t
plain_classifier_rows(int64_t rows, int64_t classes, bool half)
{
	(void)classes;
	(void)half;
	return rows;
}

const struct target target_plain = {
	.align = ALIGN, .workspace = plain_workspace,
	.classifier_rows = plain_classifier_rows,
};

/* ---- as rules see it ---- */

static const char *
plain_operand(const struct emit *e, const Val *v, int at, bool constant)
{
	(void)v;
	(void)constant;
	return arena_printf(e->arena, "p[%d]", at);
}

static bool
plain_takes(DType dt)
{
	return dt == DT_F32;
}

static void
plain_work_items(struct emit *e, int64_t count, bool shared)
{
	(void)shared;
	out_line(e->out, "for (int64_t t = 0; t < %lld; t++) {",
	         (long long)count);
}

/* A loop per dim; elements one by one. */
static bool
plain_nest(struct emit *e, const struct loop_nest *nest)
{
	struct nest_dims d;
	struct nest_names s;
	bool ok;

	if (shape_nelem(&nest->shape) == 0)
		return true;
	if (!random_check(e, nest))
		return false;
	d = nest_merge(nest);
	s = nest_open(e, nest, &d);
	random_numbers(e, nest);
	for (int i = 0; i < d.n - 1; i++)
		out_line(e->out, "for (int64_t i%d = 0; i%d < %lld; i%d++) {",
		         i, i, (long long)d.extent[i], i);
	out_line(e->out, "for (int64_t j0 = 0; j0 < %lld; j0++) {",
	         (long long)d.extent[d.n - 1]);
	for (int k = 0; k < nest->nin; k++)
		if (!nest->in[k].scalar && !nest_is_one(&nest->in[k], &d))
			s.from[k] = arena_printf(e->arena, "p%d[0%s]", k,
				nest_offset(e, nest->in[k].stride, &d, true));
	for (int k = 0; k < nest->nout; k++)
		s.to[k] = arena_printf(e->arena, "q%d[0%s]", k,
			nest_offset(e, nest->out[k].stride, &d, true));
	if (random_drawn(nest))
		out_line(e->out, "const int64_t j = 0;");
	random_words(e, nest, nest_offset(e, d.linear, &d, true), "1", true);
	ok = nest_body(e, nest, &s);
	for (int i = 0; i < d.n; i++)
		out_line(e->out, "}");
	return ok;
}

/* Rows of float32 need no copies. */
static void
plain_norm(struct emit *e, const Node *n, bool grad)
{
	(void)n;
	(void)grad;
	out_line(e->out, "\tNULL");
}

static void
plain_norm_grad(struct emit *e, const Node *n, int64_t rows)
{
	(void)n;
	out_line(e->out, "              %lld,", (long long)rows);
}

static void
plain_function(struct out *o, const struct emit *e, const char *name,
               const char *body)
{
	(void)e;
	out_put(o, "\nvoid\n%s(void *const *p, const int64_t *c, "
	        "struct ckr_env *env)\n{\n\t(void)p, (void)c, (void)env;\n"
	        "%s}\n", name, body);
}

const struct target_emitter emitter_plain = {
	.op = plain_op, .kernels = "plain.c", .texts = cpu_texts,
	.prefix = "", .suffix = ".h",
	.emit = emit_node, .function = plain_function, .loops_operands = true,
	.operand = plain_operand, .takes = plain_takes, .nest = plain_nest,
	.work_items = plain_work_items, .norm = plain_norm,
	.norm_grad = plain_norm_grad,
};

/* ---- its compiler ---- */

static const char *const fixed[] = {
	"-std=c11", "-O1", "-ffp-contract=off", "-fwrapv", "-fopenmp", "-fPIC",
	"-fvisibility=hidden", NULL
};

static const char *const strict[] = { "-Wall", "-Wextra", "-Werror", NULL };

const struct compiler compiler_plain = {
	.what = "compiler of plain C", .remedy = "name one with --plain-cc",
	.fixed = fixed, .strict = strict,
};
