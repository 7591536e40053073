/* The constant tables of a compiled model: tensors, arguments, steps, library.
 *
 * Values that both schedules know (parameters, buffers, constants, inputs,
 * states) come first, at the same indices and resident offsets, so that the
 * run time binds them once.  Everything else follows the plan: offsets in the
 * arena are the plan's, aliases lie in their owner.
 */
#include "codegen/codegen.h"
#include "codegen/tables.h"

#include <inttypes.h>
#include <string.h>

/* ORDER DT: the ABI numbers types as ir/dtypes.h does, from 1. */
enum { ABI_LAST_DTYPE = 13 };
_Static_assert((int)DT_BOOL == ABI_LAST_DTYPE && (int)DT_F32 == 1,
	"ORDER DT: ir/dtypes.h and runtime/ckr_abi.h");

static bool
is_shared(const Val *v)
{
	return v->kind != V_TEMP;
}

static void
mark(bool *used, const Plan *plan)
{
	for (int64_t i = 0; plan && i < plan->ntensor; i++)
		used[plan->tensor[i].val] = true;
}

/* Constants in constants.bin stand where the text of tables_emit aligns. */
enum { DATA_ALIGN = 64 };

struct shared
tables_shared(Arena *a, const Graph *g, const Plan *plan,
              const Plan *reference_plan)
{
	static const ValKind order[] = { V_PARAM, V_BUFFER, V_CONST, V_INPUT,
		V_STATE };
	struct shared s = { 0 };
	size_t nval = g->nval;
	bool *used;

	for (int64_t i = 0; reference_plan && i < reference_plan->ntensor; i++)
		if (reference_plan->tensor[i].val >= nval)
			nval = reference_plan->tensor[i].val + 1;
	used = arena_array(a, nval, sizeof *used);
	mark(used, plan);
	mark(used, reference_plan);
	s.val = arena_array(a, g->nval, sizeof *s.val);
	s.offset = arena_array(a, g->nval, sizeof *s.offset);
	s.data = arena_array(a, g->nval, sizeof *s.data);
	for (size_t k = 0; k < sizeof order / sizeof *order; k++)
		for (ValId id = 1; id < g->nval; id++) {
			const Val *v = &g->val[id];

			if (v->kind != order[k] || !used[id])
				continue;
			s.offset[s.n] = s.bytes;
			s.bytes += (uint64_t)v->nbytes;
			if (v->kind == V_CONST) {
				s.data[s.n] = s.data_bytes;
				s.data_bytes += (uint64_t)val_data_bytes(v)
					+ DATA_ALIGN - 1;
				s.data_bytes -= s.data_bytes % DATA_ALIGN;
			}
			s.val[s.n++] = id;
		}
	return s;
}

/* ---- one schedule ---- */

static bool
program_tensors(struct program *p, const struct shared *s, Diag *d)
{
	const Plan *plan = p->plan;

	for (uint32_t i = 0; i < s->n; i++) {
		p->val[i] = s->val[i];
		p->offset[i] = s->offset[i];
		p->index_of_val[s->val[i]] = i;
	}
	p->ntensor = s->n;
	p->resident_bytes = s->bytes;
	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		int64_t at = p->ntensor;

		if (t->val && is_shared(&p->g->val[t->val])) {
			at = p->index_of_val[t->val];
			p->plan_tensor[at] = i;
			p->index_of_plan[i] = at;
			continue;
		}
		p->ntensor++;
		p->plan_tensor[at] = i;
		p->index_of_plan[i] = at;
		p->val[at] = t->val;
		if (t->val)
			p->index_of_val[t->val] = at;
		if (t->alias_of >= 0)
			continue;
		if (t->resident) {
			p->offset[at] = p->resident_bytes;
			p->resident_bytes += (uint64_t)t->bytes;
		} else if (t->offset < 0) {
			return diag_internal(d, "codegen: '%s' was not placed",
			                     t->name);
		} else {
			p->offset[at] = (uint64_t)t->offset;
		}
	}
	return true;
}

/* Aliases after their owners have places.  Kernels count from a value's first
 * element; the plan's alias_offset is the lowest byte that the value reaches,
 * which is another one where a stride is negative. */
static void
program_aliases(struct program *p)
{
	for (int64_t i = 0; i < p->ntensor; i++) {
		int64_t at = p->plan_tensor[i];
		const struct plan_tensor *t;
		const Val *v = &p->g->val[p->val[i]];

		if (at < 0)
			continue;
		t = &p->plan->tensor[at];
		if (t->alias_of >= 0)
			p->offset[i] = p->offset[p->index_of_plan[t->alias_of]]
			             + (uint64_t)(v->start
			             * dtype_info[v->dt].nbytes);
	}
}

/* The step that writes each tensor.  Lives are no help: what is resident lives
 * from the first step on, also a gradient that a late step accumulates. */
static void
program_ready(struct program *p)
{
	for (int64_t i = 0; i < p->plan->nstep; i++) {
		const struct plan_step *s = &p->plan->step[i];

		for (int k = 0; k < s->nwrite; k++)
			if (s->write[k] >= 0)
				p->ready[p->index_of_plan[s->write[k]]] = i;
	}
}

bool
tables_program(struct program *p, Arena *a, const Graph *g, const Plan *plan,
               const struct shared *s, Diag *d)
{
	size_t n = (size_t)plan->ntensor + s->n + 1;

	*p = (struct program){ .g = g, .plan = plan };
	p->plan_tensor = arena_array(a, n, sizeof *p->plan_tensor);
	p->val = arena_array(a, n, sizeof *p->val);
	p->offset = arena_array(a, n, sizeof *p->offset);
	p->ready = arena_array(a, n, sizeof *p->ready);
	memset(p->ready, 0xff, n * sizeof *p->ready);
	p->index_of_val = arena_array(a, g->nval, sizeof *p->index_of_val);
	p->index_of_plan = arena_array(a, (size_t)plan->ntensor + 1,
	                               sizeof *p->index_of_plan);
	n = (size_t)plan->nstep + 1;
	p->kernel = arena_array(a, n, sizeof *p->kernel);
	p->constant = arena_array(a, n, sizeof *p->constant);
	p->nconst = arena_array(a, n, sizeof *p->nconst);
	memset(p->index_of_val, 0xff, g->nval * sizeof *p->index_of_val);
	for (uint32_t i = 0; i < s->n; i++)
		p->plan_tensor[i] = -1;
	if (!program_tensors(p, s, d))
		return false;
	program_aliases(p);
	program_ready(p);
	return true;
}

/* ---- labels that the graph shifts itself ---- */

static ValId
labels_of(const Node *n)
{
	unsigned flags = op_info[n->op].flags;

	return flags & F_LABELS_1 ? n->in[1] : flags & F_LABELS_2 ? n->in[2]
	     : 0;
}

/* Walk from the loss' labels back to an input; a slice that skips the first
 * positions on the way means that the graph predicts the next token. */
static bool
mark_shifted(const Graph *g, ValId at, bool shifted, bool *mark_input,
             unsigned char *seen)
{
	const Val *v = &g->val[at];
	const Node *n;

	if (!at || seen[at] & 1 << shifted)
		return false;
	seen[at] |= (unsigned char)(1 << shifted);
	if (v->kind == V_INPUT) {
		mark_input[at] |= shifted;
		return true;
	}
	if (!v->def)
		return false;
	n = &g->node[v->def];
	if (n->op == OP_SLICE)
		for (int i = 0; i < n->attr.SLICE.start.n; i++)
			shifted |= n->attr.SLICE.start.v[i] > 0 &&
			           n->attr.SLICE.step.v[i] == 1;
	for (int i = 0; i < n->nin; i++)
		if (mark_shifted(g, n->in[i], shifted, mark_input, seen))
			return true;
	return false;
}

/* ---- emission ---- */

static int
abi_kind(const struct program *p, int64_t i)
{
	enum { PARAM, BUFFER, CONSTANT, INPUT, STATE, GRAD, OTHER };
	const Val *v = &p->g->val[p->val[i]];

	if (!p->val[i])
		return OTHER;
	switch (v->kind) {
	case V_PARAM: return PARAM;
	case V_BUFFER: return BUFFER;
	case V_CONST: return CONSTANT;
	case V_INPUT: return INPUT;
	case V_STATE: return v->state && !strcmp(v->state, "grad") ? OTHER
	                                                           : STATE;
	default: return v->param && !v->of ? GRAD : OTHER;
	}
}

static const char *const kind_text[] = { "CKR_PARAM", "CKR_BUFFER",
	"CKR_CONSTANT", "CKR_INPUT", "CKR_STATE", "CKR_GRAD", "CKR_OTHER" };

static const char *
dtype_text(Arena *a, DType dt)
{
	char buf[8] = { 0 };

	for (int i = 0; dtype_info[dt].text[i] && i < 7; i++) {
		char c = dtype_info[dt].text[i];

		buf[i] = (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
	}
	return dt == DT_NONE ? "CKR_NONE" : arena_printf(a, "CKR_%s", buf);
}

static void
emit_numbers(struct out *o, const int64_t *v, int n)
{
	out_put(o, "{");
	for (int i = 0; i < n; i++)
		out_put(o, "%s%" PRId64, i ? ", " : " ", v[i]);
	out_put(o, n ? " }" : "0}");
}

/* Bytes of a view from its first element to the end of its farthest: fewer
 * than its elements have if it repeats some. */
static int64_t
reach(const Val *v)
{
	int64_t first, last;

	if (!v->base)
		return val_data_bytes(v);
	if (val_nelem(v) == 0 || !val_reach(v, &first, &last))
		return 0;
	return (last - v->start + 1) * dtype_info[v->dt].nbytes;
}

/* Index of the same value in the other program: of the original where this is
 * a copy.  Names are what the two graphs share. */
static int64_t
twin_of(const struct program *p, int64_t i, const struct program *other)
{
	ValId id = p->val[i];

	while (id && p->g->val[id].of)
		id = p->g->val[id].of;
	id = id && other ? val_find(other->g, p->g->val[id].name) : 0;
	return id ? other->index_of_val[id] : -1;
}

static void
emit_tensor(struct out *o, const struct program *p, int64_t i,
            const struct program *other, const struct shared *s,
            const bool *shifted)
{
	int64_t at = p->plan_tensor[i];
	const struct plan_tensor *t = at >= 0 ? &p->plan->tensor[at] : NULL;
	ValId id = p->val[i];
	const Val *v = &p->g->val[id];
	int kind = abi_kind(p, i);
	bool resident = t ? t->resident : true;
	const char *name = !id ? "workspace"
	                 : v->kind == V_TEMP && v->output && v->onnx
	                 ? v->onnx : v->name;
	bool owned = v->param && kind >= 4 && kind <= 5;

	out_put(o, "\t{ ");
	out_literal(o, name);
	out_put(o, ",\n\t  %s, %s, %d, ", dtype_text(o->arena,
	        id ? v->dt : DT_NONE), kind_text[kind],
	        id ? v->shape.rank : 0);
	out_put(o, "%s%s%s%s%s, ", resident ? "CKR_RESIDENT" : "0",
	        id && v->kind == V_PARAM && v->frozen ? " | CKR_FROZEN" : "",
	        id && v->output ? " | CKR_OUTPUT" : "",
	        id && id == p->g->loss ? " | CKR_LOSS" : "",
	        id && shifted[id] ? " | CKR_SHIFTED" : "");
	out_put(o, "%" PRId64 ", ", owned ? p->index_of_val[v->param] : -1);
	if (kind == 4 && v->state)
		out_literal(o, v->state);
	else
		out_put(o, "NULL");
	out_put(o, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRIu64
	        ", %" PRId64 ", %" PRIu64 ",\n\t  ",
	        id && is_shared(v) ? -1 : p->ready[i], t ? t->last : -1,
	        twin_of(p, i, other), p->offset[i], id ? reach(v) : t->bytes,
	        id && v->kind == V_CONST ? s->data[i] : 0);
	emit_numbers(o, v->shape.dim, id ? v->shape.rank : 0);
	out_put(o, ", ");
	emit_numbers(o, v->stride, id ? v->shape.rank : 0);
	out_put(o, " },\n");
}

static int64_t
scratch_of(const struct program *p, const struct plan_step *st)
{
	for (int k = 0; k < st->nwrite; k++)
		if (st->write[k] >= 0 &&
		    p->plan->tensor[st->write[k]].kind == K_WORKSPACE)
			return p->index_of_plan[st->write[k]];
	return -1;
}

static bool
emit_args(struct out *o, const struct program *p, const struct plan_step *st,
          uint32_t *count, Diag *d)
{
	const Node *n = &p->g->node[st->gnode];
	int64_t scratch = scratch_of(p, st);

	if (!*count)
		out_put(o, "\t");
	for (int k = 0; k < n->nin + n->nout; k++) {
		ValId v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		int64_t i = v ? p->index_of_val[v] : -1;

		if (v && i < 0)
			return diag_internal(d, "codegen: step %s uses '%s', "
				"which the plan does not know", st->op,
				p->g->val[v].name);
		out_put(o, "%" PRId64 ",%s", i, ++*count % 12 ? " " : "\n\t");
	}
	if (scratch >= 0)
		out_put(o, "%" PRId64 ",%s", scratch,
		        ++*count % 12 ? " " : "\n\t");
	return true;
}

static bool
emit_program(struct out *o, const struct program *p, int which,
             const struct program *other, const struct shared *s,
             const bool *shifted, Diag *d)
{
	const Plan *plan = p->plan;
	uint32_t narg = 0, nconst = 0;

	out_put(o, "\nstatic const struct ckr_tensor tensor%d[] = {\n", which);
	for (int64_t i = 0; i < p->ntensor; i++)
		emit_tensor(o, p, i, other, s, shifted);
	out_put(o, "};\n\nstatic const int32_t arg%d[] = {\n", which);
	for (int64_t i = 0; i < plan->nstep; i++)
		if (p->kernel[i] &&
		    !emit_args(o, p, &plan->step[i], &narg, d))
			return false;
	out_put(o, "-1\n};\n\nstatic const int64_t constant%d[] = {\n\t",
	        which);
	for (int64_t i = 0; i < plan->nstep; i++)
		for (int k = 0; k < p->nconst[i]; k++)
			out_put(o, "%" PRId64 ", ", p->constant[i][k]);
	out_put(o, "0\n};\n\nstatic const struct ckr_step step%d[] = {\n",
	        which);
	narg = 0;
	for (int64_t i = 0; i < plan->nstep; i++) {
		const struct plan_step *st = &plan->step[i];
		const Node *n = &p->g->node[st->gnode];
		uint32_t args = 0;

		if (p->kernel[i])
			args = (uint32_t)(n->nin + n->nout) +
			       (scratch_of(p, st) >= 0);
		out_put(o, "\t{ %s, ", p->kernel[i] ? p->kernel[i] : "NULL");
		out_literal(o, st->op);
		out_put(o, ", ");
		if (st->nonnx == 0)
			out_put(o, "\"\"");
		for (int k = 0; k < st->nonnx; k++) {
			out_put(o, "%s", k ? " \",\" " : "");
			out_literal(o, st->onnx[k]);
		}
		out_put(o, ",\n\t  %u, %u, %u, %d, %d, %.17g, %.17g, %.9g },\n",
		        narg, args, nconst, p->nconst[i], (int)st->phase,
		        st->flops, st->bytes, st->seconds);
		narg += args;
		nconst += (uint32_t)p->nconst[i];
	}
	if (plan->nstep == 0)
		out_put(o, "\t{ 0 }\n");
	out_put(o, "};\n");
	return true;
}

static void
emit_program_entry(struct out *o, const struct program *p, int which)
{
	const Plan *plan = p->plan;
	int64_t update = plan->nstep;

	for (int64_t i = plan->nstep; i-- > 0;)
		if (plan->step[i].phase == PH_UPDATE)
			update = i;
	out_put(o, "\t\t{ step%d, %" PRId64 ", %" PRId64
	        ", arg%d, constant%d, tensor%d, %" PRId64 ", %" PRId64
	        ",\n\t\t  %" PRId64 ", %" PRIu64 " },\n",
	        which, plan->nstep, update, which, which, which, p->ntensor,
	        p->g->loss ? p->index_of_val[p->g->loss] : -1,
	        plan->sum.arena, p->resident_bytes);
}

/* What ckr calls the optimizer. */
static const char *
optimizer(const Graph *g)
{
	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_UPDATE)
			return n->op == OP_ADAMW && n->attr.ADAMW.coupled
			       ? "adam" : op_info[n->op].text;
	return "none";
}

static bool
has_op(const Graph *g, Op op)
{
	FOR_NODES (n, g)
		if (n->op == op)
			return true;
	return false;
}

static bool
emit_holes(struct out *o, const struct program *p,
           const struct codegen_options *opt, Diag *d)
{
	if (!opt->onnx_template || opt->nhole == 0)
		return true;
	out_put(o, "\nstatic const struct ckr_hole hole[] = {\n");
	for (int i = 0; i < opt->nhole; i++) {
		const struct codegen_hole *h = &opt->hole[i];
		int64_t at = p->index_of_val[h->val];

		if (at < 0)
			return diag_internal(d, "codegen: '%s' is in the ONNX "
				"template but not in the plan",
				p->g->val[h->val].name);
		out_put(o, "\t{ %" PRIu64 ", %" PRId64 ", %s, 0 },\n", h->at,
		        at, dtype_text(o->arena, p->g->val[h->val].dt));
	}
	out_put(o, "};\n");
	return true;
}

/* A file's bytes as a symbol, without a C compiler reading them. */
static void
emit_incbin(struct out *o, const char *symbol, const char *file)
{
	out_put(o, "\n__asm__(\".pushsection .rodata\\n\\t.balign 64\\n"
	        "%s:\\n\\t.incbin \\\"%s\\\"\\n\\t.balign 64\\n\\t.byte 0\\n"
	        "\\t.popsection\");\n"
	        "extern const unsigned char %s[]\n"
	        "\t__attribute__((visibility(\"hidden\")));\n", symbol, file,
	        symbol);
}

bool
tables_emit(struct out *o, const struct program *p, int nprogram,
            const struct shared *s, int nblocked,
            const struct codegen_options *opt, Diag *d)
{
	const Graph *g = p[0].g;
	const struct plan_summary *sum = &p[0].plan->sum;
	bool *shifted = arena_array(o->arena, g->nval, sizeof *shifted);

	FOR_NODES (n, g)
		if (labels_of(n))
			mark_shifted(g, labels_of(n), false, shifted,
			             arena_array(o->arena, g->nval, 1));
	for (int i = 0; i < nprogram; i++) {
		/* values of the reference beyond g are never inputs */
		if (p[i].g->nval > g->nval) {
			bool *more = arena_array(o->arena, p[i].g->nval,
			                         sizeof *more);

			memcpy(more, shifted, g->nval * sizeof *more);
			shifted = more;
		}
		if (!emit_program(o, &p[i], i,
		                  i == 0 && nprogram > 1 ? &p[1] : NULL, s,
		                  shifted, d))
			return false;
	}
	if (!emit_holes(o, p, opt, d))
		return false;
	if (s->data_bytes)
		emit_incbin(o, "ckr_constants", "constants.bin");
	if (opt->onnx_template)
		emit_incbin(o, "ckr_onnx", "onnx.bin");
	out_put(o, "\nextern const struct ckr_library ckr_library;\n\n"
	        "__attribute__((visibility(\"default\")))\n"
	        "const struct ckr_library ckr_library = {\n"
	        "\t.abi = CKR_ABI_VERSION,\n\t.threads = %d,\n\t.name = ",
	        opt->threads > 0 ? opt->threads : 1);
	out_literal(o, g->name ? g->name : "");
	out_put(o, ",\n\t.compiler = \"ckc %s\",\n\t.program = {\n",
	        CKC_VERSION);
	for (int i = 0; i < nprogram; i++)
		emit_program_entry(o, &p[i], i);
	out_put(o, "\t},\n\t.nshared = %" PRIu32 ",\n\t.constants = %s,\n"
	        "\t.constants_bytes = %" PRIu64 ",\n", s->n,
	        s->data_bytes ? "ckr_constants" : "NULL", s->data_bytes);
	out_put(o, "\t.optimizer = \"%s\",\n\t.grad_accum = %" PRId64 ",\n"
	        "\t.clip_ok = %d,\n", optimizer(g),
	        opt->grad_accum > 0 ? opt->grad_accum : 1,
	        has_op(g, OP_GRAD_NORM));
	out_put(o, "\t.peak_bytes = %" PRId64 ",\n\t.budget_bytes = %" PRId64
	        ",\n", sum->peak, sum->budget > 0 ? sum->budget : 0);
	if (opt->onnx_template)
		out_put(o, "\t.onnx = ckr_onnx,\n\t.onnx_bytes = %zu,\n"
		        "\t.hole = %s,\n\t.nhole = %d,\n", opt->onnx_bytes,
		        opt->nhole ? "hole" : "NULL", opt->nhole);
	if (nblocked)
		out_put(o, "\t.blocked = blocked,\n\t.nblocked = %d,\n",
		        nblocked);
	out_put(o, "};\n");
	return true;
}
