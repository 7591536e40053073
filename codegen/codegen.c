/* The driver of code generation: kernels, tables, files, compiler.
 *
 * Every step that does work gets a function; steps whose text is the same
 * share one.  Sources are written to a directory under TMPDIR, compiled
 * there, and the result is moved to its place; the directory goes away
 * whatever happens.
 */
#include "codegen/codegen.h"
#include "codegen/cc.h"
#include "codegen/cpu/cpu.h"
#include "codegen/cuda/cuda.h"
#include "codegen/ranks.h"
#include "codegen/rules/texts.h"
#include "codegen/tables.h"
#include "ir/base/hash.h"
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
	uint64_t hash;
	const char *body, *name;
};

struct kernels {
	struct kernel *v;
	size_t n, cap;
	int count[OP_COUNT];
	struct out text;
};

/* The function with this body: an old one, or a new one. */
static const char *
kernel_add(struct kernels *k, const struct emit *e, Op op, const char *body)
{
	Arena *a = e->arena;
	uint64_t h = hash_str(HASH_START, body);
	const char *name;

	for (size_t i = 0; i < k->n; i++)
		if (k->v[i].hash == h && !strcmp(k->v[i].body, body))
			return k->v[i].name;
	name = arena_printf(a, "%s_%d", op_info[op].text, ++k->count[op]);
	k->v = arena_grow(a, k->v, k->n, &k->cap, k->n + 1, sizeof *k->v);
	k->v[k->n++] = (struct kernel){ h, body, name };
	e->machine->function(&k->text, e, name, body);
	return name;
}

static bool
step_kernel(struct emit *e, struct kernels *k, struct program *p, int64_t i)
{
	const struct plan_step *st = &p->plan->step[i];
	const Node *n = &p->g->node[st->gnode];
	struct out body = { .arena = e->arena, .indent = 1 };
	int64_t need;

	if (st->gnode == 0 || st->gnode >= p->g->nnode)
		return diag_internal(e->diag, "codegen: step %" PRId64
		                     " has no node", i);
	need = e->machine->target->workspace(p->g, n, e->threads);
	if (need > st->workspace)
		return diag_internal(e->diag, "codegen: step %" PRId64 " (%s) "
			"needs %" PRId64 " bytes of workspace, the plan gives "
			"%" PRId64, i, st->op, need, st->workspace);
	e->g = p->g;
	e->out = &body;
	e->nconst = 0;
	e->tasks = 0;
	if (!e->machine->emit(e, n))
		return false;
	if (ranks_moves(p, i))
		return true;
	p->kernel[i] = kernel_add(k, e, n->op, body.s ? body.s : "");
	p->nconst[i] = e->nconst;
	p->constant[i] = arena_copy(e->arena, e->constant, sizeof e->constant);
	return true;
}

static bool
program_kernels(struct emit *e, struct kernels *k, struct program *p)
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

/* What is compiled. */
struct source {
	struct out tables;              /* model.c */
	struct out kernels;             /* machine->kernels */
	struct shared shared;
};

static const struct machine *
machine_of(const struct codegen_options *opt)
{
	return opt->target == &target_cuda ? &machine_cuda : &machine_cpu;
}

static struct command
command_of(const struct codegen_options *opt, Arena *a)
{
	struct command c = { 0 };

	machine_of(opt)->command(&c, opt, a);
	return c;
}

static void
emit_head(struct out *o, const Graph *g, const struct plan_summary *sum,
          const struct codegen_options *opt)
{
	struct command c = command_of(opt, o->arena);

	out_put(o, "/* ");
	out_comment(o, g->name ? g->name : "model");
	out_put(o, ": one training step, made by ckc " CKC_VERSION ".\n"
	        " *\n"
	        " * Memory: %" PRId64 " bytes resident + %" PRId64
	        " bytes arena.\n"
	        " * In order: the ABI, arithmetic, one function per distinct "
	        "kernel, the tables\n"
	        " * of the schedule.  Compile in this directory with\n"
	        " *\n"
	        " *     %s\n"
	        " */\n", sum->resident, sum->arena, cc_text(&c, o->arena));
}

/* A kernel that tables in another file name. */
static void
emit_prototypes(struct out *o, const struct kernels *k)
{
	for (size_t i = 0; i < k->n; i++)
		out_put(o, "%sckr_kernel %s;\n", i ? "" : "\n", k->v[i].name);
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
	                  "updates; export the model in float32: "
	                  "model.float()", first, n == 1 ? " is" : arena_printf(
	                  a, " and %d more are", n - 1));
}

static bool
emit_source(struct source *src, const Graph *g, const Plan *plan,
            const Graph *ref, const Plan *ref_plan,
            const struct codegen_options *opt, Diag *d)
{
	const struct machine *m = machine_of(opt);
	struct out *o = &src->tables;
	struct shared *s = &src->shared;
	struct program prog[2];
	struct kernels k = { .text.arena = o->arena };
	struct emit e = { .machine = m, .diag = d, .arena = o->arena,
	                  .blocked.arena = o->arena,
	                  .threads = opt->threads > 0 ? opt->threads : 1 };
	int nprogram = ref && ref_plan ? 2 : 1;

	*s = tables_shared(o->arena, g, plan, ref_plan);
	if (!check_updates(g, o->arena, d) || !ranks_check(g, d)
	    || !tables_program(&prog[0], o->arena, g, plan, s, d))
		return false;
	if (nprogram == 2 &&
	    !tables_program(&prog[1], o->arena, ref, ref_plan, s, d))
		return false;
	for (int i = 0; i < nprogram; i++)
		if (!program_kernels(&e, &k, &prog[i]))
			return false;
	emit_head(o, g, &plan->sum, opt);
	if (m->kernels) {
		emit_head(&src->kernels, g, &plan->sum, opt);
		out_put(o, "\n%s", codegen_text_ckr_abi);
		emit_prototypes(o, &k);
		out_put(o, "void ckr_finite_there(const void *, uint64_t, "
		        "int32_t, struct ckr_env *);\n"
		        "const char *ckr_launch_error(void);\n");
		o = &src->kernels;
	}
	m->texts(o, e.need);
	out_put(o, "\n/* ---- kernels ---- */\n");
	if (k.text.n)
		out_bytes(o, k.text.s, k.text.n);
	o = &src->tables;
	out_put(o, "\n/* ---- tables ---- */\n");
	if (e.nblocked)
		out_put(o, "\nstatic const struct ckr_blocked blocked[] = "
		        "{\n%s};\n", e.blocked.s);
	return tables_emit(o, prog, nprogram, s, e.nblocked, opt, d);
}

/* ---- files ---- */

static bool
write_all(int fd, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		ssize_t k = write(fd, at, n < 1 << 30 ? n : 1 << 30);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		at += k;
		n -= (size_t)k;
	}
	return true;
}

static bool
write_file(const char *path, const void *data, size_t n, Diag *d)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	bool ok = fd >= 0 && write_all(fd, data, n);

	if (fd >= 0 && close(fd))
		ok = false;
	return ok || diag_error(d, "cannot write '%s': %s", path,
	                        strerror(errno));
}

static bool
write_constants(const char *path, const Graph *g, const struct shared *s,
                Arena *a, Diag *d)
{
	unsigned char *blob = arena_alloc(a, s->data_bytes + 1);

	for (uint32_t i = 0; i < s->n; i++) {
		const Val *v = &g->val[s->val[i]];

		if (v->kind != V_CONST)
			continue;
		if (!v->data)
			return diag_internal(d, "codegen: constant '%s' has no "
			                     "contents", v->name);
		memcpy(blob + s->data[i], v->data, (size_t)val_data_bytes(v));
	}
	return write_file(path, blob, s->data_bytes, d);
}

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
stage(struct outfile *o, const char *from, const char *to, Diag *d)
{
	if (!outfile_open(o, to, d))
		return false;
	if (copy_file(from, o->f))
		return true;
	diag_error(d, "cannot write '%s': %s", to, strerror(errno));
	return outfile_close(o, false);
}

static bool
install(const char *from, const char *to, Diag *d)
{
	struct outfile o;

	return stage(&o, from, to, d) && outfile_close(&o, true);
}

/* The library and its weights appear together, when nothing is left that
 * could fail but a rename. */
static bool
install_library(const char *from, const Graph *g,
                const struct codegen_options *opt, Diag *d)
{
	struct outfile o;
	bool ok;

	if (!stage(&o, from, opt->out_so, d))
		return false;
	outfile_executable(&o);
	ok = !opt->weights || codegen_weights(g, opt->weights, d);
	return outfile_close(&o, ok) && ok;
}

static const char *const emitted[] = { "model.c", "model.cu",
	"constants.bin", "onnx.bin" };

static bool
keep_sources(const char *dir, const char *emit_dir, Arena *a, Diag *d)
{
	if (mkdir(emit_dir, 0777) && errno != EEXIST)
		return diag_error(d, "cannot create '%s': %s", emit_dir,
		                  strerror(errno));
	for (size_t i = 0; i < sizeof emitted / sizeof *emitted; i++) {
		const char *from = arena_printf(a, "%s/%s", dir, emitted[i]);

		if (access(from, F_OK))
			continue;
		if (!install(from, arena_printf(a, "%s/%s", emit_dir,
		             emitted[i]), d))
			return false;
	}
	return true;
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

static bool
build(const char *dir, const struct source *src, const Graph *g,
      const struct codegen_options *opt, Arena *a, Diag *d)
{
	const struct shared *s = &src->shared;
	const char *kernels = machine_of(opt)->kernels;
	struct command c = command_of(opt, a);

	if (!write_file(arena_printf(a, "%s/model.c", dir), src->tables.s,
	                src->tables.n, d))
		return false;
	if (kernels && !write_file(arena_printf(a, "%s/%s", dir, kernels),
	                           src->kernels.s, src->kernels.n, d))
		return false;
	if (s->data_bytes &&
	    !write_constants(arena_printf(a, "%s/constants.bin", dir), g, s,
	                     a, d))
		return false;
	if (opt->onnx_template &&
	    !write_file(arena_printf(a, "%s/onnx.bin", dir),
	                opt->onnx_template, opt->onnx_bytes, d))
		return false;
	if (!cc_run(dir, &c, opt->stop, a, d))
		return false;
	if (opt->emit_dir && !keep_sources(dir, opt->emit_dir, a, d))
		return false;
	return install_library(arena_printf(a, "%s/model.so", dir), g, opt, d);
}

bool
codegen_check(const Graph *g, const Plan *plan, const Graph *reference,
              const Plan *reference_plan, const struct codegen_options *opt,
              Diag *d)
{
	Arena *a = arena_new();
	struct source src = { .tables.arena = a, .kernels.arena = a };
	bool ok = emit_source(&src, g, plan, reference, reference_plan, opt, d)
		&& weights_check(g, d);

	arena_free(a);
	return ok;
}

bool
codegen_library(const Graph *g, const Plan *plan, const Graph *reference,
                const Plan *reference_plan, const struct codegen_options *opt,
                Diag *d)
{
	Arena *a = arena_new();
	struct source src = { .tables.arena = a, .kernels.arena = a };
	const char *tmp = getenv("TMPDIR");
	char *dir;
	bool ok = plan->replayed && (!reference || reference_plan->replayed);

	if (!ok)
		diag_internal(d, "there is no code for a plan that was not "
		              "replayed");
	ok = ok && emit_source(&src, g, plan, reference, reference_plan, opt,
	                       d)
		&& (!opt->weights || weights_check(g, d));
	if (ok) {
		dir = arena_printf(a, "%s/ckc-XXXXXX",
		                   tmp && *tmp ? tmp : "/tmp");
		if (mkdtemp(dir)) {
			ok = build(dir, &src, g, opt, a, d);
			remove_dir(dir, a);
		} else {
			ok = diag_error(d, "cannot create a folder '%s': %s; "
			                "set TMPDIR to one that can be "
			                "written", dir, strerror(errno));
		}
	}
	arena_free(a);
	return ok;
}
