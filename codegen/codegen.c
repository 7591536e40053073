/* A library from a placed graph: kernels, tables, files.
 *
 * in      schedules, options
 * out     sources in memory; build.c makes a library of them
 */
#include "codegen/codegen.h"
#include "codegen/build.h"
#include "codegen/kernels.h"
#include "codegen/rank_tables.h"
#include "codegen/rules/target_emitter.h"

#include <inttypes.h>
#include <string.h>

/* ---- programs ---- */

/* Optimizers know float32 and 16-bit floats. */
static bool
check_updates(const Graph *g, Arena *a, Diag *d)
{
	const char *first = NULL;
	bool update = false;
	int n = 0;

	FOR_NODES (node, g)
		update |= op_info[node->op].flags & F_UPDATE
			|| node->op == OP_ACCUMULATE;
	FOR_VALS (v, g)
		if (v->kind == V_PARAM && !v->frozen && v->dt == DT_F64) {
			first = first ? first : v->name;
			n++;
		}
	if (!update || n == 0)
		return true;
	return diag_error(d, "parameter '%s'%s float64, which no optimizer "
	                  "supports; export the model in float32: "
	                  "model.float()", first, n == 1 ? " is" : arena_printf(
	                  a, " and %d more are", n - 1));
}

/* Steps and what evaluates share an arena. */
static bool
make_programs(struct emitted_library *lib, Arena *a,
              const struct codegen_schedules *c, Diag *d)
{
	struct shared_values *s = &lib->shared;
	struct emitted_program *plan = &lib->program[PROGRAM_PLAN],
		*forward = &lib->program[PROGRAM_FORWARD];

	*s = tables_shared(a, c->g, c->plan, c->reference_plan);
	if (!tables_program(plan, a, c->g, c->plan, s, NULL, d)
	    || (c->reference
	        && !tables_program(&lib->program[PROGRAM_REFERENCE], a,
	                           c->reference, c->reference_plan, s, NULL, d))
	    || (c->forward
	        && !tables_program(forward, a, c->forward, c->forward_plan, s,
	                           c->g, d)))
		return false;
	if (plan->arena_bytes < forward->arena_bytes)
		plan->arena_bytes = forward->arena_bytes;
	return true;
}

/* ---- sources ---- */

static void
emit_head(struct out *o, const Graph *g, const struct plan_summary *sum,
          const struct sources *src, const struct codegen_options *opt)
{
	out_put(o, "/* ");
	out_comment(o, g->name ? g->name : "model");
	out_put(o, ": one training step, made by ckc " CKC_VERSION ".\n"
	        " *\n"
	        " * Memory: %" PRId64 " bytes resident + %" PRId64
	        " bytes arena.\n"
	        " * Here are the tables of the schedule; %s has one function "
	        "per distinct\n"
	        " * kernel, and what these call has files of its own.  "
	        "Compile in this\n"
	        " * directory with\n"
	        " *\n"
	        " *     %s\n"
	        " */\n", sum->resident, sum->arena,
	        opt->machine->emitter->kernels, build_command_text(src, opt));
}

/* Declarations of symbols in other files. */
static void
emit_prototypes(struct out *o, const struct kernels *k, const struct emit *e)
{
	const struct target_emitter *m = e->emitter;

	out_put(o, "#include \"ckr_abi.h\"\n");
	if (e->njob && m->job_text)
		out_put(o, "#include \"%s\"\n", m->job_text);
	for (size_t i = 0; i < k->n; i++)
		out_put(o, "%sckr_kernel %s;\n", i ? "" : "\n",
		        k->v[i].name);
	if (m->declarations)
		out_put(o, "%s", m->declarations);
	if (e->njob)
		out_put(o, "\nstatic const struct ckr_%s %s[] = {\n", m->jobs,
		        m->jobs);
	for (int i = 0; i < e->njob; i++)
		out_put(o, "%s", e->job[i]);
	if (e->njob)
		out_put(o, "};\n");
}

/* constants.bin: what is shared, and what is one program's own. */
static bool
add_constants(struct sources *src, const struct emitted_library *lib, Diag *d)
{
	const struct emitted_program *prog = lib->program;
	const struct shared_values *s = &lib->shared;
	unsigned char *blob = arena_alloc(src->arena, s->data_bytes + 1);

	for (int k = 0; k < PROGRAMS; k++)
		for (int64_t i = k ? s->n : 0; i < prog[k].ntensor; i++) {
			const Val *v = &prog[k].g->val[prog[k].val[i]];

			if (v->kind != V_CONST || !prog[k].val[i])
				continue;
			if (!v->data)
				return diag_internal(d, "codegen: constant "
					"'%s' has no contents", v->name);
			memcpy(blob + prog[k].data[i], v->data,
			       (size_t)val_data_bytes(v));
		}
	if (s->data_bytes)
		sources_add(src, "constants.bin", blob, s->data_bytes);
	return true;
}

/* Kernels first: the text at the head of the tables names all units. */
static bool
emit_sources(struct sources *src, const struct codegen_schedules *c,
             const struct codegen_options *opt, Diag *d)
{
	const struct machine *m = opt->machine;
	Arena *a = src->arena;
	struct out kernels = { .arena = a }, tables = { .arena = a };
	struct emitted_library lib = { .formula = c->formula };
	struct kernels k = { 0 };
	struct emit e = { .target = m->target, .emitter = m->emitter,
	                  .diag = d, .arena = a, .threads = opt->threads };

	if (!check_updates(c->g, a, d) || !rank_tables_check(c->g, d)
	    || !make_programs(&lib, a, c, d))
		return false;
	for (int i = 0; i < PROGRAMS; i++)
		if (lib.program[i].plan
		    && !kernels_add_program(&k, &e, &lib.program[i]))
			return false;
	kernels_print(&kernels, &k, &e);
	sources_include(src, kernels.s);
	sources_add(src, m->emitter->kernels, kernels.s, kernels.n);

	emit_head(&tables, c->g, &c->plan->sum, src, opt);
	emit_prototypes(&tables, &k, &e);
	lib.jobs = m->emitter->jobs;
	lib.njob = e.njob;
	lib.print_own = m->emitter->members;
	if (!tables_emit(&tables, &lib, opt, d) || !add_constants(src, &lib, d))
		return false;
	sources_include(src, tables.s);
	sources_add(src, "model.c", tables.s, tables.n);
	if (opt->onnx_template)
		sources_add(src, "onnx.bin", opt->onnx_template,
		            opt->onnx_bytes);
	return true;
}

/* ---- the room's functions ---- */

static struct codegen_options
with_defaults(const struct codegen_options *opt)
{
	struct codegen_options o = *opt;

	if (!o.machine)
		o.machine = machines;
	if (!o.compiler || !*o.compiler)
		o.compiler = o.machine->option[MACHINE_COMPILER].value;
	if (!o.arch)
		o.arch = o.machine->option[MACHINE_ARCH].value;
	if (o.threads < 1)
		o.threads = 1;
	if (o.grad_accum < 1)
		o.grad_accum = 1;
	return o;
}

bool
codegen_check(const struct codegen_schedules *c,
              const struct codegen_options *opt, Diag *d)
{
	struct codegen_options o = with_defaults(opt);
	struct sources src = { .arena = arena_new() };
	bool ok = emit_sources(&src, c, &o, d) && weights_check(c->g, d);

	arena_free(src.arena);
	return ok;
}

bool
codegen_library(const struct codegen_schedules *c,
                const struct codegen_options *opt, Diag *d)
{
	struct codegen_options o = with_defaults(opt);
	struct sources src = { .arena = arena_new() };
	bool ok = c->plan->replayed
		&& (!c->reference || c->reference_plan->replayed)
		&& (!c->forward || c->forward_plan->replayed);

	if (!ok)
		diag_internal(d, "codegen: the plan was not verified by pass "
		              "replay");
	ok = ok && emit_sources(&src, c, &o, d)
		&& (!o.weights || weights_check(c->g, d))
		&& build_library(&src, c->g, &o, d);
	arena_free(src.arena);
	return ok;
}
