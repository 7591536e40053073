/* The constant tables of a compiled model: tensors, arguments, steps, library.
 */
#include "codegen/codegen.h"
#include "codegen/rank_tables.h"
#include "codegen/stages.h"
#include "codegen/tables.h"

#include <inttypes.h>
#include <string.h>

/* ORDER DT: the ABI numbers types as runtime/support/dtypes.h does, from 1. */
enum { ABI_LAST_DTYPE = 15 };
_Static_assert((int)DT_NF4X64 == ABI_LAST_DTYPE && (int)DT_F32 == 1,
	"ORDER DT: runtime/support/dtypes.h and runtime/ckr_abi.h");

const char *
tables_dtype(DType dt)
{
	static const char *const text[DT_COUNT] = { "CKR_NONE",
		"CKR_F32", "CKR_F64", "CKR_F16", "CKR_BF16", "CKR_I64",
		"CKR_I32", "CKR_I16", "CKR_I8", "CKR_U64", "CKR_U32",
		"CKR_U16", "CKR_U8", "CKR_BOOL", "CKR_INT8X64", "CKR_NF4X64" };

	return text[dt];
}

/* ---- emission ---- */

/* Whether the value is CKR_OTHER in the ABI. */
static bool
is_other(const Val *v)
{
	return v->kind == V_TEMP ? !v->param || v->of
	     : v->kind == V_STATE && v->state
	       && (!v->param || !strcmp(v->state, "grad"));
}

static const char *
abi_kind_text(const struct emitted_program *p, const Val *v)
{
	static const char *const text[V_KIND_COUNT] = {
		[V_PARAM] = "CKR_PARAM", [V_BUFFER] = "CKR_BUFFER",
		[V_CONST] = "CKR_CONSTANT", [V_INPUT] = "CKR_INPUT",
		[V_STATE] = "CKR_STATE", [V_TEMP] = "CKR_GRAD",
	};

	return is_other(v) || (p->second && v->kind == V_TEMP) ? "CKR_OTHER"
		: text[v->kind];
}

static void
emit_int_list(struct out *o, const int64_t *v, int n)
{
	out_put(o, "{");
	for (int i = 0; i < n; i++)
		out_put(o, "%s%" PRId64, i ? ", " : " ", v[i]);
	out_put(o, n ? " }" : "0}");
}

/* Bytes of a view from its first element to the end of its farthest: fewer
 * than its elements have if it repeats some. */
static int64_t
view_bytes(const Val *v)
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
counterpart_of(const struct emitted_program *p, int64_t i,
               const struct emitted_program *other)
{
	ValId id = p->val[i];

	while (id && p->g->val[id].of)
		id = p->g->val[id].of;
	id = id && other ? val_find(other->g, p->g->val[id].name) : 0;
	return id ? other->index_of_val[id] : -1;
}

/* The slots of micro-batches come first in a stage's arena. */
static bool
is_in_slot(const struct emitted_program *p, int64_t i)
{
	return !p->resident[i] && !p->host[i]
		&& (int64_t)p->offset[i] < plan_slots_bytes(p->plan);
}

/* The parameter that v is a view of, or that it was fetched from; 0: none. */
static ValId
param_behind(const Graph *g, const Val *v)
{
	const Node *def = &g->node[v->def];
	ValId from = v->def && op_info[def->op].flags & F_FETCH ? def->in[0]
		: v->base;

	from = val_owner(g, from);
	return g->val[from].kind == V_PARAM ? from : 0;
}

static void
emit_tensor(struct out *o, const struct emitted_program *p, int64_t i,
            const struct emitted_program *other,
            const struct rank_tables *ranks, const unsigned char *inputs,
            int64_t tied)
{
	int64_t at = p->plan_tensor[i];
	const struct plan_tensor *t = at >= 0 ? &p->plan->tensor[at] : NULL;
	ValId id = p->val[i];
	const Val *v = &p->g->val[id];
	const char *name = !id ? "workspace"
	                 : v->kind == V_TEMP && v->output && v->onnx
	                 ? v->onnx : v->name;
	unsigned input = id && v->kind == V_INPUT ? inputs[id] : 0;
	bool owned = (v->kind == V_STATE || v->kind == V_TEMP) && v->param
	             && !is_other(v) && !p->second;
	ValId param = owned ? v->param : param_behind(p->g, v);

	out_put(o, "\t{ ");
	out_literal(o, name);
	out_put(o, ",\n\t  %s, %s, %d, ", tables_dtype(id ? v->dt : DT_NONE),
	        abi_kind_text(p, v), id ? v->shape.rank : 0);
	out_put(o, "%s%s%s%s%s%s%s%s%s%s%s, ",
	        p->resident[i] ? "CKR_RESIDENT" : p->host[i] ? "CKR_HOST"
	        : is_in_slot(p, i) ? "CKR_SLOT" : "0",
	        id && v->kind == V_PARAM && v->frozen ? " | CKR_FROZEN" : "",
	        id && v->output ? " | CKR_OUTPUT" : "",
	        id && id == p->g->loss ? " | CKR_LOSS" : "",
	        input & INPUT_SHIFTED ? " | CKR_SHIFTED" : "",
	        id && v->low_precision_of ? " | CKR_ROUNDED" : "",
	        input & INPUT_LABEL ? " | CKR_LABEL" : "",
	        id && tables_is_metric(v) ? " | CKR_METRIC" : "",
	        id && v->rows == ROWS_OWN ? " | CKR_OWN_ROWS" : "",
	        id && v->rows == ROWS_NONE ? " | CKR_NO_ROWS" : "",
	        v->shard && v->shard->rows ? " | CKR_OWN_EXPERTS" : "");
	out_put(o, "%" PRId64 ", ", emitted_index(p, param
	        ? p->index_of_val[param] : -1));
	if (v->kind == V_STATE && v->state && !is_other(v))
		out_literal(o, v->state);
	else
		out_put(o, "NULL");
	out_put(o, ", %" PRId64 ", %" PRId64 ", %" PRId64 ", %" PRIu64
	        ", %" PRId64 ", %" PRIu64 ",\n\t  ",
	        emitted_instr(p, id && v->kind != V_TEMP ? -1 : p->ready[i]),
	        emitted_instr(p, t ? t->last : -1),
	        counterpart_of(p, i, other), p->offset[i],
	        id ? view_bytes(v) : t->bytes,
	        id && v->kind == V_CONST ? p->data[i] : 0);
	emit_int_list(o, v->shape.dim, id ? v->shape.rank : 0);
	out_put(o, ", ");
	emit_int_list(o, v->stride, id ? v->shape.rank : 0);
	out_put(o, ", %s, %s, %d, %u, %" PRId64 " },\n",
	        rank_tables_placement(ranks, o->arena, v),
	        rank_tables_shard(ranks, o->arena, v), id ? v->batch : 0,
	        p->number, tied);
}

static const char *
phase_text(Arena *a, const Node *n)
{
	return n->count_pass ? arena_printf(a, "CKR_COUNT + %d",
	                                   n->count_pass - 1)
	                : arena_printf(a, "%d", (int)n->phase);
}

static int64_t
workspace_of(const struct emitted_program *p, const struct plan_step *st)
{
	for (int k = 0; k < st->nwrite; k++)
		if (st->write[k] >= 0 &&
		    p->plan->tensor[st->write[k]].kind == K_WORKSPACE)
			return p->index_of_plan[st->write[k]];
	return -1;
}

/* Transfers have two operands: the one that they write over is not one. */
static int
first_operand(const Node *n)
{
	uint64_t flags = op_info[n->op].flags;

	return flags & (F_COMM | F_HOST) && flags & F_WRITES;
}

static void
emit_arg(struct out *o, int64_t i, uint32_t *count)
{
	out_put(o, "%" PRId64 ",%s", i, ++*count % 12 ? " " : "\n\t");
}

static bool
emit_args(struct out *o, const struct emitted_program *p,
          const struct plan_step *st, uint32_t *count, Diag *d)
{
	const Node *n = &p->g->node[st->gnode];
	int64_t workspace = workspace_of(p, st);

	if (!*count)
		out_put(o, "\t");
	for (int k = first_operand(n); k < n->nin + n->nout; k++) {
		ValId v = k < n->nin ? n->in[k] : n->out[k - n->nin];
		int64_t i = v ? p->index_of_val[v] : -1;

		if (v && i < 0)
			return diag_internal(d, "codegen: step %s uses '%s', "
			                     "which is not in the plan", st->op,
				p->g->val[v].name);
		if (!node_is_message(n) || v)
			emit_arg(o, emitted_index(p, i), count);
	}
	if (workspace >= 0)
		emit_arg(o, emitted_index(p, workspace), count);
	return true;
}

/* A view does not. */
static bool
does_work(const struct emitted_program *p, int64_t i)
{
	return p->kernel[i] || rank_tables_has_transfer(p, i);
}

/* The first program's values that are shared are all programs'. */
static void
emit_tensors(struct out *o, const struct emitted_program *prog, int which,
             const struct shared_values *s, const struct rank_tables *ranks,
             const unsigned char *inputs)
{
	const struct emitted_program *p = &prog[which],
		*all = &prog[PROGRAM_REFERENCE];
	const struct emitted_program *of = which == PROGRAM_FORWARD ? prog : p;
	bool twins = which == PROGRAM_PLAN && all->plan;

	out_put(o, "\nstatic const struct ckr_tensor tensor%d[] = {\n", which);
	for (int64_t i = 0; i < p->ntensor; i++)
		emit_tensor(o, i < s->n ? of : p, i, twins ? all : NULL, ranks,
		            inputs, 0);
	out_put(o, "};\n");
}

/* Whether the op updates element by element: one launch may apply several. */
static int
joins_updates(Op op)
{
	return op_info[op].flags & F_UPDATE && op_info[op].flags & F_COPY;
}

/* Those that all programs of a stage share are training's. */
static void
emit_stage_tensors(struct out *o, const struct emitted_stages *s, int which,
                   const struct rank_tables *ranks)
{
	out_put(o, "\nstatic const struct ckr_tensor tensor%d[] = {\n", which);
	for (int own = 0; own < 2; own++)
		for (int k = 0; k < s->n; k++) {
			const struct emitted_program *p = own && which
				? &s->forward[k] : &s->program[k];
			const struct emitted_program *q = &s->second[k];
			int64_t end = own ? p->ntensor : (int64_t)p->nshared;

			for (int64_t i = own ? p->nshared : 0; i < end; i++)
				emit_tensor(o, p, i, NULL, ranks, s->inputs[k],
				            stages_tied(s, p, i));
			for (int64_t i = q->nshared;
			     own && !which && i < q->ntensor; i++)
				emit_tensor(o, q, i, NULL, ranks, s->inputs[k],
				            0);
		}
	out_put(o, "};\n");
}

static uint32_t
count_args(const struct emitted_program *p, int64_t i)
{
	const Node *n = &p->g->node[p->plan->step[i].gnode];

	if (!does_work(p, i))
		return 0;
	if (node_is_message(n))
		return 1;
	return (uint32_t)(n->nin + n->nout - first_operand(n))
		+ (workspace_of(p, &p->plan->step[i]) >= 0);
}

/* Where the next instruction's rows begin. */
struct rows {
	uint32_t arg, constant, comm;
};

static void
emit_instr(struct out *o, const struct emitted_program *p, int64_t i, int which,
           struct rows *at)
{
	const struct plan_step *st = &p->plan->step[i];
	const Node *n = &p->g->node[st->gnode];
	uint32_t args = count_args(p, i);

	out_put(o, "\t{ %s, ", p->kernel[i] ? p->kernel[i] : "NULL");
	out_literal(o, st->op);
	out_put(o, ", ");
	if (st->nonnx == 0)
		out_put(o, "\"\"");
	for (int k = 0; k < st->nonnx; k++) {
		out_put(o, "%s", k ? " \",\" " : "");
		out_literal(o, st->onnx[k]);
	}
	out_put(o, ",\n\t  %u, %u, %u, %d, %s, %.17g, %.17g, %.9g, %s, %u, %d "
	        "},\n",
	        at->arg, args, at->constant, p->nconst[i],
	        phase_text(o->arena, n), st->flops,
	        st->sent > 0 ? st->sent : st->bytes, st->seconds,
	        rank_tables_has_transfer(p, i)
	        ? arena_printf(o->arena, "&comm%d[%u]", which, at->comm++)
	        : "NULL", p->number, joins_updates(n->op));
	at->arg += args;
	at->constant += (uint32_t)p->nconst[i];
}

#define FOR_STEPS(i, x, part, n) \
	for (const struct emitted_part *x = part; x < (part) + (n); x++) \
		for (int64_t i = x->first; i < x->end; i++)

/* A program of n parts. */
static bool
emit_program(struct out *o, const struct emitted_part *part, int n, int which,
             const struct rank_tables *ranks, Diag *d)
{
	struct rows at = { 0, 0, 0 };
	uint32_t narg = 0;

	out_put(o, "\nstatic const int32_t arg%d[] = {\n", which);
	FOR_STEPS (i, x, part, n)
		if (does_work(x->p, i)
		    && !emit_args(o, x->p, &x->p->plan->step[i], &narg, d))
			return false;
	out_put(o, "-1\n};\n\nstatic const int64_t constant%d[] = {\n\t",
	        which);
	FOR_STEPS (i, x, part, n)
		for (int k = 0; k < x->p->nconst[i]; k++)
			out_put(o, "%" PRId64 ", ", x->p->constant[i][k]);
	out_put(o, "0\n};\n");
	rank_tables_emit_comm(o, ranks, part, n, which);
	out_put(o, "\nstatic const struct ckr_instr instr%d[] = {\n", which);
	FOR_STEPS (i, x, part, n)
		emit_instr(o, x->p, i, which, &at);
	if (!part->p->plan->nstep)
		out_put(o, "\t{ 0 }\n");
	out_put(o, "};\n");
	return true;
}

/* The members of struct ckr_program. */
struct program_entry {
	int64_t ninstr, update, apply, ntensor, loss;
	uint64_t arena, resident, host;
};

/* Where updates begin, and the first that applies a gradient. */
static void
find_updates(struct program_entry *e, const struct emitted_part *part, int n)
{
	e->update = e->apply = e->ninstr;
	for (const struct emitted_part *x = part + n; x-- > part;)
		for (int64_t i = x->end; i-- > x->first;) {
			const struct plan_step *st = &x->p->plan->step[i];
			int64_t at = emitted_instr(x->p, i);

			if (st->phase == PH_UPDATE && e->update == at + 1)
				e->update = at;
			if (op_info[x->p->g->node[st->gnode].op].flags
			    & F_UPDATE)
				e->apply = at;
		}
}

static uint64_t
larger_bytes(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct program_entry
entry_of_program(const struct emitted_program *p)
{
	struct emitted_part all = { p, 0, p->plan->nstep };
	struct program_entry e = { .ninstr = p->plan->nstep,
		.ntensor = p->ntensor, .arena = p->arena_bytes,
		.loss = p->g->loss ? p->index_of_val[p->g->loss] : -1,
		.resident = p->resident_bytes, .host = p->host_bytes };

	find_updates(&e, &all, 1);
	return e;
}

/* Bytes are the most of any stage. */
static struct program_entry
entry_of_stages(const struct emitted_stages *s, int which)
{
	struct program_entry e = { .ninstr = s->ninstr, .loss = -1,
		.ntensor = which ? s->nforward : s->ntensor };

	for (int k = 0; k < s->n; k++) {
		const struct emitted_program *p = which ? &s->forward[k]
			: &s->program[k];

		e.arena = larger_bytes(e.arena, p->arena_bytes);
		e.resident = larger_bytes(e.resident, p->resident_bytes);
		if (p->g->loss && p->index_of_val[p->g->loss] >= 0)
			e.loss = emitted_index(p, p->index_of_val[p->g->loss]);
	}
	if (which) {
		e.ninstr = 0;
		for (int k = 0; k < s->n; k++)
			e.ninstr += s->forward[k].plan->nstep;
	}
	find_updates(&e, which ? s->forward_part : s->part,
	             which ? s->n : s->npart);
	return e;
}

static void
emit_program_entry(struct out *o, const struct program_entry *e, int which)
{
	out_put(o, "\t\t{ instr%d, %" PRId64 ", %" PRId64 ", %" PRId64
	        ", arg%d, constant%d, tensor%d, %" PRId64 ", %" PRId64
	        ",\n\t\t  %" PRIu64 ", %" PRIu64 ", %" PRIu64 " },\n",
	        which, e->ninstr, e->update, e->apply, which, which, which,
	        e->ntensor, e->loss, e->arena, e->resident, e->host);
}

static bool
has_program(const struct emitted_stages *s, int which)
{
	return which == PROGRAM_PLAN
		|| (which == PROGRAM_FORWARD && s->forward);
}

static void
emit_program_entries(struct out *o, const struct emitted_library *lib)
{
	for (int i = 0; i < PROGRAMS; i++) {
		const struct emitted_program *p = &lib->program[i];
		struct program_entry e;

		if (!p->plan && !(lib->stages && has_program(lib->stages, i))) {
			out_put(o, "\t\t{ 0 },\n");
			continue;
		}
		e = p->plan ? entry_of_program(p)
			: entry_of_stages(lib->stages, i);
		emit_program_entry(o, &e, i);
	}
}

/* The optimizer's name in ckr. */
static const char *
optimizer_name(const Graph *g)
{
	FOR_NODES (n, g) {
		if (!(op_info[n->op].flags & F_UPDATE))
			continue;
#define OPTIMIZER(id, name, of, is_coupled, state0, state1, uses, defaults) \
		if (n->op == OP_##of \
		    && (!(is_coupled) || n->attr.SGD.coupled)) \
			return name;
#include "runtime/support/optimizers.h"
	}
	return "none";
}

/* Index in the printed table of a value of the library's graph; -1: none. */
static int64_t
library_index(const struct emitted_library *lib, ValId v)
{
	return lib->stages ? stages_find(lib->stages, lib->g->val[v].name)
		: lib->program[0].index_of_val[v];
}

static bool
emit_holes(struct out *o, const struct emitted_library *lib,
           const struct codegen_options *opt, Diag *d)
{
	if (!opt->onnx_template || opt->nhole == 0)
		return true;
	out_put(o, "\nstatic const struct ckr_hole hole[] = {\n");
	for (int i = 0; i < opt->nhole; i++) {
		const struct codegen_hole *h = &opt->hole[i];
		int64_t at = library_index(lib, h->val);

		if (at < 0)
			return diag_internal(d, "codegen: '%s' is in the ONNX "
				"template but not in the plan",
				lib->g->val[h->val].name);
		out_put(o, "\t{ %" PRIu64 ", %" PRId64 ", %s, 0 },\n", h->at,
		        at, tables_dtype(h->dt));
	}
	out_put(o, "};\n");
	return true;
}

static void
emit_adapters(struct out *o, const struct emitted_library *lib,
              const struct codegen_options *opt)
{
	if (!opt->nadapter)
		return;
	out_put(o, "\nstatic const struct ckr_adapter adapter[] = {\n");
	for (int i = 0; i < opt->nadapter; i++) {
		const struct codegen_adapter *a = &opt->adapter[i];

		out_put(o, "\t{ %" PRId64 ", %" PRId64 ", %" PRId64 ", %d, "
		        "(float)%.9g },\n", library_index(lib, a->weight),
		        library_index(lib, a->a), library_index(lib, a->b),
		        a->transposed, a->scale);
	}
	out_put(o, "};\n");
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

/* ---- struct ckr_library ---- */

/* A member, and its value as C; NULL: it is left out, and so zero. */
struct member {
	const char *name, *value;
};

static const char *
number_text(struct out *o, int64_t x)
{
	return arena_printf(o->arena, "%" PRId64, x);
}

/* The text as a C literal; NULL: there is none. */
static const char *
literal_text(struct out *o, const char *s)
{
	struct out text = { .arena = o->arena };

	if (s)
		out_literal(&text, s);
	return text.s;
}

static void
emit_members(struct out *o, const struct member *m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].value)
			out_put(o, "\t.%s = %s,\n", m[i].name, m[i].value);
}

#define MEMBERS(o, ...) \
	emit_members(o, (const struct member[]){ __VA_ARGS__ }, \
	             sizeof((const struct member[]){ __VA_ARGS__ }) \
	             / sizeof(struct member))

/* NULL: there is no product. */
static const char *
largest_product(struct out *o, const struct emitted_program *program, int n)
{
	double most = 0;

	for (int i = 0; i < n; i++) {
		const Plan *p = program[i].plan;

		for (int64_t k = 0; p && k < p->nstep; k++)
			if (p->step[k].product > most)
				most = p->step[k].product;
	}
	return most > 0 ? number_text(o, (int64_t)most) : NULL;
}

/* What the programs of a library, or its stages, have. */
struct library_facts {
	const char *optimizer;
	int64_t peak, budget;           /* of the rank with most */
	bool clips, scales_loss;
};

/* Bytes of a rank that has the programs first, first + step... */
static void
add_rank(struct library_facts *f, const struct emitted_program *p, int n,
         int first, int step)
{
	int64_t peak = 0, budget = 0;

	for (int i = first; i < n; i += step) {
		peak += p[i].peak;
		budget += p[i].plan->sum.budget > 0 ? p[i].plan->sum.budget : 0;
	}
	f->peak = peak > f->peak ? peak : f->peak;
	f->budget = budget > f->budget ? budget : f->budget;
}

/* Of n programs, which nrank ranks have. */
static struct library_facts
facts_of(const struct emitted_program *p, int n, int nrank)
{
	struct library_facts f = { .optimizer = "none" };

	for (int i = 0; i < nrank; i++)
		add_rank(&f, p, n, i, nrank);
	for (int i = 0; i < n; i++) {
		const char *optimizer = optimizer_name(p[i].g);

		if (strcmp(optimizer, "none"))
			f.optimizer = optimizer;
		f.clips |= graph_has_op(p[i].g, OP_GRAD_NORM);
		f.scales_loss |= graph_has_op(p[i].g, OP_LOSS_SCALE);
	}
	return f;
}

static void
emit_stage_members(struct out *o, const struct emitted_stages *s)
{
	if (s)
		MEMBERS(o, { "nstage", number_text(o, s->n) },
			{ "chunks", number_text(o, s->n / s->nrank) },
			{ "stage", "stage" }, { "turn", "turn" },
			{ "nturn", number_text(o, s->nturn) });
}

static void
emit_library_struct(struct out *o, const struct emitted_library *lib,
             const struct codegen_options *opt)
{
	const struct emitted_stages *s = lib->stages;
	const struct emitted_program *p = s ? s->program : lib->program;
	const struct library_facts facts = facts_of(p, s ? s->n : 1,
	                                            s ? s->nrank : 1);
	const Graph *g = p[0].g;
	const struct loss_formula *f = lib->formula;
	uint64_t data = lib->shared.data_bytes;
	bool onnx = opt->onnx_template;

	out_put(o, "\nextern const struct ckr_library ckr_library;\n\n"
	        "__attribute__((visibility(\"default\")))\n"
	        "const struct ckr_library ckr_library = {\n");
	MEMBERS(o, { "abi", "CKR_ABI_VERSION" },
		{ "threads", number_text(o, opt->threads) },
		{ "name", literal_text(o, g->name ? g->name : "") },
		{ "compiler", "\"ckc " CKC_VERSION "\"" });
	out_put(o, "\t.program = {\n");
	emit_program_entries(o, lib);
	out_put(o, "\t},\n");
	MEMBERS(o, { "nshared", number_text(o, s ? s->nshared
	             : lib->shared.n) },
		{ "constants", data ? "ckr_constants" : "NULL" },
		{ "constants_bytes", number_text(o, (int64_t)data) },
		{ "optimizer", literal_text(o, facts.optimizer) },
		{ "training", literal_text(o, opt->training ? opt->training
		                              : "") },
		{ "largest_product", largest_product(o, p, s ? s->n
		  : PROGRAMS) },
		{ "grad_accum", number_text(o, opt->grad_accum) },
		{ "clip_ok", facts.clips ? "1" : "0" },
		{ "loss_adds", g->adds ? "1" : NULL },
		{ "peak_bytes", number_text(o, facts.peak) },
		{ "budget_bytes", number_text(o, facts.budget) },
		{ "onnx", onnx ? "ckr_onnx" : NULL },
		{ "onnx_bytes", onnx ? number_text(o, (int64_t)opt->onnx_bytes)
		                : NULL },
		{ "hole", !onnx ? NULL : opt->nhole ? "hole" : "NULL" },
		{ "nhole", onnx ? number_text(o, opt->nhole) : NULL },
		{ "onnx_trains", !onnx ? NULL : opt->onnx_trains ? "1" : "0" },
		{ "adapter", opt->nadapter ? "adapter" : NULL },
		{ "nadapter", opt->nadapter ? number_text(o, opt->nadapter)
		              : NULL });
	if (lib->njob)
		MEMBERS(o, { lib->jobs, lib->jobs },
			{ arena_printf(o->arena, "n%s", lib->jobs),
			  number_text(o, lib->njob) });
	if (f)
		MEMBERS(o, { "term", f->n ? "term" : NULL },
			{ "nterm", f->n ? number_text(o, f->n) : NULL },
			{ "by_batch", literal_text(o, f->by_batch) },
			{ "no_forward", literal_text(o, f->no_program) });
	MEMBERS(o, { "loss_scaled", facts.scales_loss ? "1" : NULL });
	emit_stage_members(o, s);
	if (lib->print_own)
		lib->print_own(o, opt->arch);
	MEMBERS(o, { "ranks", g->ranks > 1 ? number_text(o, g->ranks) : NULL },
		{ "replicas", g->exact ? number_text(o, g->replicas)
		  : g->replicas ? "CKR_ANY_REPLICAS" : NULL },
		{ "zero_group", g->zero_group ? number_text(o, g->zero_group)
		  : NULL },
		{ "expert_group", g->expert_group
		  ? number_text(o, g->expert_group) : NULL },
		{ "context", g->context ? number_text(o, g->context) : NULL });
	out_put(o, "};\n");
}

/* The programs of stages: training, and what evaluates. */
static bool
emit_stages(struct out *o, const struct emitted_stages *s,
            struct rank_tables *ranks, Diag *d)
{
	for (int k = 0; k < s->n; k++) {
		rank_tables_collect(ranks, o->arena, &s->program[k]);
		if (s->second[k].plan)
			rank_tables_collect(ranks, o->arena, &s->second[k]);
		if (s->forward)
			rank_tables_collect(ranks, o->arena, &s->forward[k]);
	}
	rank_tables_emit(o, ranks);
	emit_stage_tensors(o, s, PROGRAM_PLAN, ranks);
	stages_emit(o, s);
	if (!emit_program(o, s->part, s->npart, PROGRAM_PLAN, ranks, d))
		return false;
	if (!s->forward)
		return true;
	emit_stage_tensors(o, s, PROGRAM_FORWARD, ranks);
	return emit_program(o, s->forward_part, s->n, PROGRAM_FORWARD, ranks,
	                    d);
}

static bool
emit_programs(struct out *o, const struct emitted_library *lib,
              struct rank_tables *ranks, Diag *d)
{
	const struct emitted_program *p = lib->program;
	const unsigned char *inputs = tables_inputs(o->arena, p[0].g,
	                                            p[PROGRAM_FORWARD].g);

	for (int i = 0; i < PROGRAMS; i++)
		if (p[i].plan)
			rank_tables_collect(ranks, o->arena, &p[i]);
	rank_tables_emit(o, ranks);
	for (int i = 0; i < PROGRAMS; i++) {
		struct emitted_part all = { &p[i], 0, 0 };

		if (!p[i].plan)
			continue;
		all.end = p[i].plan->nstep;
		emit_tensors(o, p, i, &lib->shared, ranks, inputs);
		if (!emit_program(o, &all, 1, i, ranks, d))
			return false;
	}
	return true;
}

bool
tables_emit(struct out *o, const struct emitted_library *lib,
            const struct codegen_options *opt, Diag *d)
{
	struct rank_tables ranks = { 0 };

	if (!(lib->stages ? emit_stages(o, lib->stages, &ranks, d)
	      : emit_programs(o, lib, &ranks, d))
	    || !emit_holes(o, lib, opt, d) || !tables_emit_formula(o, lib, d))
		return false;
	emit_adapters(o, lib, opt);
	if (lib->shared.data_bytes)
		emit_incbin(o, "ckr_constants", "constants.bin");
	if (opt->onnx_template)
		emit_incbin(o, "ckr_onnx", "onnx.bin");
	emit_library_struct(o, lib, opt);
	return true;
}
