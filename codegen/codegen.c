/* The driver of code generation: kernels, tables, files, compiler.
 *
 * Every step that does work gets a function; steps whose text is the same
 * share one.  Sources are written to a directory under TMPDIR, compiled there,
 * and the result is moved to its place; the directory is always removed.
 *
 * Kernels and the functions that they call are separate units, compiled in
 * parallel.  The functions are the same text for all models, and the kernels
 * of a model are the same under most budgets.  No command names the directory,
 * so that ccache finds them again.
 */
#include "codegen/codegen.h"
#include "codegen/cc.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "codegen/rank_tables.h"
#include "codegen/sources.h"
#include "codegen/tables.h"
#include "runtime/support/hash.h"
#include "ir/base/outfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- kernels ---- */

struct kernel {
	Op op;
	const char *body, *name;
	struct out text;
};

struct kernels {
	struct kernel *v;
	size_t n, cap;
};

/* A name that follows from what the kernel is, so that another schedule's
 * kernels are the same text: the op, and digits of a hash of the body. */
static const char *
kernel_name(const struct kernels *k, Arena *a, Op op, const char *body)
{
	uint64_t h = hash_str(HASH_START, body);
	const char *name;
	bool taken;

	do {
		name = arena_printf(a, "%s_%08x", op_info[op].text,
		                    (unsigned)(h ^ h >> 32));
		taken = false;
		for (size_t i = 0; i < k->n; i++)
			taken |= !strcmp(k->v[i].name, name);
		h++;
	} while (taken);
	return name;
}

/* The op's function with this body: an old one, or a new one. */
static const char *
kernel_add(struct kernels *k, const struct emit *e, Op op, const char *body)
{
	struct kernel new = { .op = op, .body = body,
	                      .text.arena = e->arena };

	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].op == op && !strcmp(k->v[i].body, body))
			return k->v[i].name;
	new.name = kernel_name(k, e->arena, op, body);
	e->emitter->function(&new.text, e, new.name, body);
	k->v = arena_grow(e->arena, k->v, k->n, &k->cap, k->n + 1,
	                  sizeof *k->v);
	k->v[k->n++] = new;
	return new.name;
}

static int
by_kernel_name(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static bool
step_kernel(struct emit *e, struct kernels *k, struct emitted_program *p,
            int64_t i)
{
	const struct plan_step *st = &p->plan->step[i];
	const Node *n = &p->g->node[st->gnode];
	struct out body = { .arena = e->arena, .indent = 1 };
	int64_t need;

	if (st->gnode == 0 || st->gnode >= p->g->nnode)
		return diag_internal(e->diag, "codegen: step %" PRId64
		                     " has no node", i);
	need = e->emitter->target->workspace(p->g, n, e->threads);
	if (need > st->workspace)
		return diag_internal(e->diag, "codegen: step %" PRId64 " (%s) "
		                     "needs %" PRId64 " bytes of workspace, "
		                     "but the plan has %" PRId64,
		                     i, st->op, need, st->workspace);
	e->g = p->g;
	e->out = &body;
	e->nconst = 0;
	e->items = 0;
	if (!e->emitter->emit(e, n))
		return false;
	if (rank_tables_has_transfer(p, i))
		return true;
	p->kernel[i] = kernel_add(k, e, n->op, body.s ? body.s : "");
	p->nconst[i] = e->nconst;
	p->constant[i] = arena_copy(e->arena, e->constant, sizeof e->constant);
	return true;
}

static bool
program_kernels(struct emit *e, struct kernels *k, struct emitted_program *p)
{
	bool ok = true;

	for (int64_t i = 0; i < p->plan->nstep; i++) {
		/* what fails forward fails again in its gradient */
		if (!ok && p->plan->step[i].phase != PH_FORWARD)
			break;
		e->gnode = p->plan->step[i].gnode;
		if (!p->plan->step[i].view)
			ok &= step_kernel(e, k, p, i);
	}
	return ok;
}

/* ---- the source ---- */

static const struct target_emitter *
emitter_of(const struct codegen_options *opt)
{
	return opt->target == &target_cuda ? &emitter_cuda : &emitter_cpu;
}

static struct command
command_of(const struct codegen_options *opt, Arena *a)
{
	struct command c = { 0 };

	emitter_of(opt)->command(&c, opt, a);
	return c;
}

/* "-shared -o model.so" and what is linked, behind the compiler's words. */
static void
add_link(struct command *c)
{
	cc_add(c, "-shared");
	cc_add(c, "-o");
	cc_add(c, "model.so");
	c->makes = "model.so";
}

static void
emit_head(struct out *o, const Graph *g, const struct plan_summary *sum,
          const struct sources *src, const struct codegen_options *opt)
{
	struct command c = command_of(opt, o->arena);

	add_link(&c);
	cc_add(&c, "model.c");
	for (size_t i = 0; i < src->n; i++)
		if (sources_is_unit(&src->v[i]))
			cc_add(&c, src->v[i].name);
	cc_add(&c, "-lm");
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
	        " */\n", sum->resident, sum->arena, emitter_of(opt)->kernels,
	        cc_text(&c, o->arena));
}

/* The kernels in the order of their names: no text here depends on the order
 * of steps. */
static void
emit_kernels(struct sources *src, struct kernels *k, const struct emit *e)
{
	const struct target_emitter *m = e->emitter;
	struct out o = { .arena = src->arena };

	if (k->n)
		qsort(k->v, k->n, sizeof *k->v, by_kernel_name);
	out_put(&o, "/* One function per distinct kernel, each named after its "
	        "op and its text. */\n");
	for (const struct target_text *t = m->texts; t->need; t++)
		if (!~t->need || t->need & e->need)
			out_put(&o, "#include \"%s\"\n", t->name);
	for (size_t i = 0; i < k->n; i++)
		out_bytes(&o, k->v[i].text.s, k->v[i].text.n);
	sources_include(src, o.s);
	sources_add(src, m->kernels, o.s, o.n);
}

/* Declarations of symbols in other files. */
static void
emit_prototypes(struct out *o, const struct kernels *k, const struct emit *e,
                const char *arch)
{
	out_put(o, "#include \"ckr_abi.h\"\n");
	if (e->njob && e->emitter->job_text)
		out_put(o, "#include \"%s\"\n", e->emitter->job_text);
	for (size_t i = 0; i < k->n; i++)
		out_put(o, "%sckr_kernel %s;\n", i ? "" : "\n",
		        k->v[i].name);
	if (arch)
		out_put(o, "void ckr_finite_there(const void *, uint64_t, "
		        "int32_t, struct ckr_env *);\n"
		        "const char *ckr_launch_error(void);\n");
	if (e->njob)
		out_put(o, "\nstatic const struct ckr_%s %s[] = {\n",
		        e->emitter->jobs, e->emitter->jobs);
	for (int i = 0; i < e->njob; i++)
		out_put(o, "%s", e->job[i]);
	if (e->njob)
		out_put(o, "};\n");
}

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

/* constants.bin: what is shared, and what is one program's own. */
static bool
add_constants(struct sources *src, const struct emitted_program prog[PROGRAMS],
              const struct shared_values *s, Diag *d)
{
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

static bool
make_programs(struct emitted_program prog[PROGRAMS], struct shared_values *s,
              Arena *a, const struct codegen_schedules *c, Diag *d)
{
	*s = tables_shared(a, c->g, c->plan, c->reference_plan);
	return tables_program(&prog[PROGRAM_PLAN], a, c->g, c->plan, s, NULL, d)
		&& (!c->reference
		    || tables_program(&prog[PROGRAM_REFERENCE], a, c->reference,
		                      c->reference_plan, s, NULL, d))
		&& (!c->forward
		    || tables_program(&prog[PROGRAM_FORWARD], a, c->forward,
		                      c->forward_plan, s, c->g, d));
}

/* Steps and what evaluates share an arena. */
static void
share_arena(struct emitted_program prog[PROGRAMS])
{
	uint64_t *plan = &prog[PROGRAM_PLAN].arena_bytes;
	uint64_t forward = prog[PROGRAM_FORWARD].arena_bytes;

	*plan = *plan > forward ? *plan : forward;
}

static bool
emit_sources(struct sources *src, const struct codegen_schedules *c,
             const struct codegen_options *opt, Diag *d)
{
	Arena *a = src->arena;
	struct out o = { .arena = a };
	struct emitted_program prog[PROGRAMS] = { 0 };
	struct kernels k = { 0 };
	struct emit e = { .emitter = emitter_of(opt), .diag = d, .arena = a,
	                  .threads = opt->threads > 0 ? opt->threads : 1 };
	struct shared_values s;

	if (!check_updates(c->g, a, d) || !rank_tables_check(c->g, d)
	    || !make_programs(prog, &s, a, c, d))
		return false;
	share_arena(prog);
	for (int i = 0; i < PROGRAMS; i++)
		if (prog[i].plan && !program_kernels(&e, &k, &prog[i]))
			return false;
	emit_kernels(src, &k, &e);
	emit_head(&o, c->g, &c->plan->sum, src, opt);
	emit_prototypes(&o, &k, &e, opt->arch);
	if (!tables_emit(&o, prog, &s, e.njob ? e.emitter->jobs : NULL, e.njob,
	                 c->formula, opt, d)
	    || !add_constants(src, prog, &s, d))
		return false;
	sources_include(src, o.s);
	sources_add(src, "model.c", o.s, o.n);
	if (opt->onnx_template)
		sources_add(src, "onnx.bin", opt->onnx_template,
		            opt->onnx_bytes);
	return true;
}

/* ---- files ---- */

static bool
copy_file(const char *from, FILE *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC);
	char buf[1 << 16];
	ssize_t n = -1;

	while (in >= 0 && (n = read(in, buf, sizeof buf)) > 0
	       && fwrite(buf, 1, (size_t)n, to) == (size_t)n)
		;
	if (in >= 0)
		close(in);
	return n == 0 && fflush(to) == 0 && fsync(fileno(to)) == 0;
}

/* Copy a file beside its final place; outfile_close moves it there. */
static bool
copy_beside(struct outfile *o, const char *from, const char *to, Diag *d)
{
	if (!outfile_open(o, to, d))
		return false;
	if (copy_file(from, o->f))
		return true;
	diag_error(d, "cannot write '%s': %s", to, strerror(errno));
	return outfile_close(o, false);
}

/* The library and its weights appear together, when nothing is left that
 * could fail but a rename. */
static bool
install_library(const char *from, const Graph *g,
                const struct codegen_options *opt, Diag *d)
{
	struct outfile o;
	bool ok;

	if (!copy_beside(&o, from, opt->out_so, d))
		return false;
	outfile_executable(&o);
	ok = !opt->weights || codegen_weights(g, opt->weights, d);
	return outfile_close(&o, ok) && ok;
}

/* The folder of this compilation, the compiler's own leavings included. */
static void
remove_dir(const char *dir, Arena *a)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlink(arena_printf(a, "%s/%s", dir, e->d_name));
	if (d)
		closedir(d);
	rmdir(dir);
}

/* Large units first: nobody waits for one alone at the end. */
static int
by_source_size(const void *a, const void *b)
{
	const struct source_file *x = a, *y = b;

	return x->n != y->n ? x->n < y->n ? 1 : -1 : strcmp(x->name, y->name);
}

static bool
is_tables(const struct source_file *f)
{
	return !strcmp(f->name, "model.c");
}

/* Compile each unit to an object, and link these to the tables: short work
 * that no other compile could share. */
static bool
compile_units(const char *dir, const struct sources *src,
              const struct codegen_options *opt, Diag *d)
{
	Arena *a = src->arena;
	struct command link = command_of(opt, a), *each;
	struct source_file *unit = arena_array(a, src->n, sizeof *unit);
	int n = 0;

	for (size_t i = 0; i < src->n; i++)
		if (sources_is_unit(&src->v[i]) && !is_tables(&src->v[i]))
			unit[n++] = src->v[i];
	qsort(unit, (size_t)n, sizeof *unit, by_source_size);
	each = arena_array(a, (size_t)n, sizeof *each);
	add_link(&link);
	cc_add(&link, "model.c");
	for (int i = 0; i < n; i++) {
		struct command *c = &each[i];

		*c = command_of(opt, a);
		c->makes = arena_printf(a, "%s.o", unit[i].name);
		cc_add(c, "-c");
		cc_add(c, "-o");
		cc_add(c, c->makes);
		cc_add(c, unit[i].name);
		cc_add(&link, c->makes);
	}
	cc_add(&link, "-lm");
	return cc_run(dir, each, n, opt->stop, a, d)
		&& cc_run(dir, &link, 1, opt->stop, a, d);
}

static bool
build_library(const char *dir, const struct sources *src, const Graph *g,
              const struct codegen_options *opt, Diag *d)
{
	const char *so = arena_printf(src->arena, "%s/model.so", dir);

	return sources_write(src, dir, d) && compile_units(dir, src, opt, d)
		&& (!opt->emit_dir || sources_keep(src, opt->emit_dir, d))
		&& install_library(so, g, opt, d);
}

bool
codegen_check(const struct codegen_schedules *c,
              const struct codegen_options *opt, Diag *d)
{
	Arena *a = arena_new();
	struct sources src = { .arena = a };
	bool ok = emit_sources(&src, c, opt, d) && weights_check(c->g, d);

	arena_free(a);
	return ok;
}

bool
codegen_library(const struct codegen_schedules *c,
                const struct codegen_options *opt, Diag *d)
{
	Arena *a = arena_new();
	struct sources src = { .arena = a };
	char *dir;
	bool ok = c->plan->replayed
		&& (!c->reference || c->reference_plan->replayed)
		&& (!c->forward || c->forward_plan->replayed);

	if (!ok)
		diag_internal(d, "codegen: the plan was not verified by pass "
		              "replay");
	ok = ok && emit_sources(&src, c, opt, d)
		&& (!opt->weights || weights_check(c->g, d));
	dir = ok ? outfile_folder(a, d) : NULL;
	ok = dir && build_library(dir, &src, c->g, opt, d);
	if (dir)
		remove_dir(dir, a);
	arena_free(a);
	return ok;
}
