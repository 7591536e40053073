/* A GPU as passes and rules see it. */
#include "codegen/cuda/cuda.h"

static int64_t
cuda_workspace(const Graph *g, const Node *n, int threads)
{
	return rule_workspace(cuda_op, g, n, threads);
}

const struct target target_cuda = {
	.align = 256,
	.fuses = FUSE_CLASSIFIER | FUSE_PACKED | FUSE_ACCUMULATE | FUSE_COPIES
		| FUSE_EPILOGUES | FUSE_EXPERTS,
	.workspace = cuda_workspace, .classifier_rows = cuda_classifier_rows,
};

/* ---- what rules ask ---- */

static const char *
element_type(DType dt)
{
	return dt == DT_BF16 ? "ckr_bf16" : dt == DT_F16 ? "ckr_f16"
	     : emit_ctype(dt);
}

/* Kernels are templates: an operand says its type. */
static const char *
cuda_operand(const struct emit *e, const Val *v, int at, bool constant)
{
	return arena_printf(e->arena, "(%s%s *)p[%d]",
	                    constant ? "const " : "", element_type(v->dt), at);
}

static bool
cuda_takes(DType dt)
{
	return dt == DT_F32 || dtype_is_half(dt);
}

static void
cuda_work_items(struct emit *e, int64_t count, bool shared)
{
	(void)shared;
	out_line(e->out, "CKR_TASKS(%s, t, %lld) {",
	         count < INT32_MAX ? "uint32_t" : "int64_t", (long long)count);
}

/* Kernels are templates: of a type, and of the columns that they have room
 * for. */
static const char *
cuda_attention_kernel(const struct emit *e, const Val *q, const Val *v)
{
	return arena_printf(e->arena, "<%s, %d>", element_type(q->dt),
	                    cuda_attention_columns(q, v));
}

static void
cuda_norm_grad(struct emit *e, const Node *n, int64_t rows)
{
	(void)n;
	out_line(e->out, "              %lld,",
	         (long long)cuda_part_rows(rows));
}

/* ---- kernels ---- */

/* A body of work items is a function of the device. */
static void
put_item_kernel(struct out *o, const struct emit *e, const char *name,
                const char *body)
{
	const Node *n = &e->g->node[e->gnode];
	int nop = n->nin + n->nout, nconst = e->nconst ? e->nconst : 1;

	nop += emit_workspace_bytes(e, n) != 0;
	out_put(o, "\nCKR_GLOBAL\n%s_device(ckr_args<%d> operands, "
	        "ckr_numbers<%d> numbers,\n\tstruct ckr_env *env)\n{\n"
	        "\t[[maybe_unused]] const ckr_arg *p = operands.at;\n"
	        "\t[[maybe_unused]] const int64_t *c = numbers.v;\n\n"
	        "%s}\n", name, nop, nconst,
	        body);
	out_put(o, "\nextern \"C\" void\n%s(void *const *p, const int64_t *c, "
	        "struct ckr_env *env)\n{\n"
	        "\tCKR_LAUNCH(%s_device, ckr_blocks(%lld), CKR_THREADS, 0, env,"
	        "\n\t           ckr_args<%d>(p), ckr_numbers<%d>(c, %d), "
	        "env->device);\n}\n", name, name, (long long)e->items, nop,
	        nconst, e->nconst);
}

static void
cuda_function(struct out *o, const struct emit *e, const char *name,
              const char *body)
{
	if (e->items) {
		put_item_kernel(o, e, name, body);
		return;
	}
	out_put(o, "\nextern \"C\" void\n%s(void *const *operands, const "
	        "int64_t *c, struct ckr_env *env)\n{\n"
	        "\t[[maybe_unused]] const ckr_arg *p = "
	        "(const ckr_arg *)operands;\n\n%s}\n", name, body);
}

static const char *const texts[] = {
	"ckr_abi.h", "device.cuh", "instructions.cuh", "arith.h", "random.h",
	"typed.cuh", "finite.cuh", NULL
};

static const char declarations[] =
	"void ckr_finite_there(const void *, uint64_t, int32_t, "
	"struct ckr_env *);\n"
	"const char *ckr_launch_error(void);\n";

static void
cuda_members(struct out *o, const char *arch)
{
	out_put(o, "\t.arch = \"%s\",\n\t.finite = ckr_finite_there,\n"
	        "\t.launch_error = ckr_launch_error,\n", arch);
}

const struct target_emitter emitter_cuda = {
	.op = cuda_op, .kernels = "model.cu", .texts = texts,
	.prefix = "cuda_", .suffix = ".cuh",
	.jobs = "convolved", .declarations = declarations,
	.members = cuda_members, .emit = emit_node, .function = cuda_function,
	.operand = cuda_operand, .takes = cuda_takes, .nest = cuda_nest,
	.work_items = cuda_work_items, .product = cuda_product,
	.reduce = cuda_reduce, .attention_kernel = cuda_attention_kernel,
	.norm_grad = cuda_norm_grad,
};
