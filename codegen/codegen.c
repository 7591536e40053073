/* A library from a placed graph: kernels, tables, files.
 *
 * in      schedules, options
 * out     sources in memory; build.c makes a library of them
 */
#include "codegen/codegen.h"
#include "codegen/build.h"
#include "codegen/kernels.h"
#include "codegen/rank_tables.h"
#include "codegen/stages.h"
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

static bool
check_stages(const struct codegen_schedules *c, Arena *a, Diag *d)
{
	for (int k = 0; k < c->nstage; k++)
		if (!check_updates(c->stage[k].g, a, d)
		    || !rank_tables_check(c->stage[k].g, d)
		    || (c->stage[k].second
		        && !rank_tables_check(c->stage[k].second, d)))
			return false;
	return true;
}

static bool
make_stages(struct emitted_library *lib, Arena *a,
            const struct codegen_schedules *c, Diag *d)
{
	lib->stages = stages_collect(a, c, tables_inputs(a, c->g, NULL), d);
	if (lib->stages)
		lib->shared.data_bytes =
			lib->stages->shared[c->nstage - 1].data_bytes;
	return lib->stages;
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

/* Bytes of the rank with most. */
static void
largest_rank(const struct codegen_schedules *c, int64_t *resident,
             int64_t *arena)
{
	*resident = c->nstage ? 0 : c->plan->sum.resident;
	*arena = c->nstage ? 0 : c->plan->sum.arena;
	for (int r = 0; r < c->nrank; r++) {
		int64_t here = 0, work = 0;

		for (int k = r; k < c->nstage; k += c->nrank) {
			here += c->stage[k].plan->sum.resident;
			work += c->stage[k].plan->sum.arena;
		}
		if (here + work > *resident + *arena) {
			*resident = here;
			*arena = work;
		}
	}
}

static void
emit_head(struct out *o, const struct codegen_schedules *c,
          const struct sources *src, const struct codegen_options *opt)
{
	int64_t resident, arena;

	largest_rank(c, &resident, &arena);
	out_put(o, "/* ");
	out_comment(o, c->g->name ? c->g->name : "model");
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
	        " */\n", resident, arena,
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

/* Those of a program's tensors from the first one on. */
static bool
copy_constants(unsigned char *blob, const struct emitted_program *p,
               int64_t first, Diag *d)
{
	for (int64_t i = first; i < p->ntensor; i++) {
		const Val *v = &p->g->val[p->val[i]];

		if (v->kind != V_CONST || !p->val[i])
			continue;
		if (!v->data)
			return diag_internal(d, "codegen: constant '%s' has no "
			                     "contents", v->name);
		memcpy(blob + p->data[i], v->data, (size_t)val_data_bytes(v));
	}
	return true;
}

/* constants.bin: what is shared, and what is one program's own. */
static bool
add_constants(struct sources *src, const struct emitted_library *lib, Diag *d)
{
	const struct emitted_stages *stages = lib->stages;
	uint64_t n = lib->shared.data_bytes;
	unsigned char *blob = arena_alloc(src->arena, n + 1);
	bool ok = true;

	for (int k = 0; k < PROGRAMS; k++)
		ok &= copy_constants(blob, &lib->program[k],
		                     k ? lib->shared.n : 0, d);
	for (int k = 0; stages && k < stages->n; k++) {
		ok &= copy_constants(blob, &stages->program[k], 0, d);
		if (stages->forward)
			ok &= copy_constants(blob, &stages->forward[k],
			                     stages->forward[k].nshared, d);
	}
	if (n)
		sources_add(src, "constants.bin", blob, n);
	return ok;
}

static bool
add_kernels(struct kernels *k, struct emit *e, struct emitted_library *lib)
{
	struct emitted_stages *s = lib->stages;
	bool ok = true;

	for (int i = 0; i < PROGRAMS && ok; i++)
		if (lib->program[i].plan)
			ok = kernels_add_program(k, e, &lib->program[i]);
	for (int i = 0; s && i < s->n && ok; i++)
		ok = kernels_add_program(k, e, &s->program[i])
			&& (!s->second[i].plan
			    || kernels_add_program(k, e, &s->second[i]))
			&& (!s->forward
			    || kernels_add_program(k, e, &s->forward[i]));
	return ok;
}

/* Kernels first: the text at the head of the tables names all units. */
static bool
emit_sources(struct sources *src, const struct codegen_schedules *c,
             const struct codegen_options *opt, Diag *d)
{
	const struct machine *m = opt->machine;
	Arena *a = src->arena;
	struct out kernels = { .arena = a }, tables = { .arena = a };
	struct emitted_library lib = { .g = c->g, .formula = c->formula };
	struct kernels k = { 0 };
	struct emit e = { .target = m->target, .emitter = m->emitter,
	                  .diag = d, .arena = a, .threads = opt->threads,
	                  .whole = c->nstage ? c->g : NULL };

	if (!check_updates(c->g, a, d) || !rank_tables_check(c->g, d)
	    || !check_stages(c, a, d)
	    || !(c->nstage ? make_stages(&lib, a, c, d)
	         : make_programs(&lib, a, c, d))
	    || !add_kernels(&k, &e, &lib))
		return false;
	kernels_print(&kernels, &k, &e);
	sources_include(src, kernels.s);
	sources_add(src, m->emitter->kernels, kernels.s, kernels.n);

	emit_head(&tables, c, src, opt);
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
	bool ok = (!c->plan || c->plan->replayed)
		&& (!c->reference || c->reference_plan->replayed)
		&& (!c->forward || c->forward_plan->replayed);

	for (int k = 0; k < c->nstage; k++)
		ok &= c->stage[k].plan->replayed
			&& (!c->stage[k].forward
			    || c->stage[k].forward_plan->replayed);
	if (!ok)
		diag_internal(d, "codegen: the plan was not verified by pass "
		              "replay");
	ok = ok && emit_sources(&src, c, &o, d)
		&& (!o.weights || weights_check(c->g, d))
		&& build_library(&src, c->g, &o, d);
	arena_free(src.arena);
	return ok;
}
