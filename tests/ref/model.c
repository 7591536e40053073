/* Train a model by interpretation: what the importer and the passes made of
 * it, in double precision and without a line of generated code.
 *
 *     ref_model DIR CKC-ARGUMENTS...
 *
 * DIR/setup holds lines: "input NAME FILE" (FILE: raw elements in the input's
 * dtype), "steps N", "seed N", "lr X", "beta1 X", "beta2 X", "eps X",
 * "weight_decay X".  Runs the passes up to --stop-after (default: optim),
 * interprets the graph (after place: in the memory that was planned, see
 * interp_place), and writes DIR/log.jsonl (loss of every step),
 * DIR/grads.safetensors (gradients of the first step) and
 * DIR/params.safetensors (parameters after the last).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/import/import.h"
#include "frontend/driver/opts.h"
#include "passes/passes.h"
#include "tests/ref/interp.h"
#include "codegen/cpu/cpu.h"

struct run {
	const char *dir;
	Arena *arena;
	Diag *diag;
	struct cli cli;
	Graph *g;
	struct interp *it;
	int steps;
};

static FILE *
open_in(struct run *r, const char *name, const char *mode)
{
	FILE *f = fopen(arena_printf(r->arena, "%s/%s", r->dir, name), mode);

	if (f == NULL) {
		fprintf(stderr, "ref_model: %s/%s: %s\n", r->dir, name,
		        strerror(errno));
		exit(1);
	}
	return f;
}

/* ---- setup ---- */

static bool
load_input(struct run *r, const char *name, const char *path)
{
	ValId v = val_find(r->g, name);
	int64_t n = v ? val_data_bytes(&r->g->val[v]) : -1;
	FILE *f = fopen(path, "rb");
	char *raw;
	bool ok;

	if (f == NULL || n < 0) {
		fprintf(stderr, "ref_model: input %s: %s\n", name,
		        f ? "no such value" : strerror(errno));
		return false;
	}
	raw = arena_alloc(r->arena, (size_t)n + 1);
	ok = fread(raw, 1, (size_t)n + 1, f) == (size_t)n;
	fclose(f);
	if (ok)
		interp_load(r->it, v, raw);
	else
		fprintf(stderr, "ref_model: %s is not %lld bytes\n", path,
		        (long long)n);
	return ok;
}

static bool
read_setup(struct run *r)
{
	struct interp_env *e = interp_env(r->it);
	FILE *f = open_in(r, "setup", "r");
	char line[4096], name[1024], path[1024];
	bool ok = true;

	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "input %1023s %1023s", name, path) == 2)
			ok &= load_input(r, name, path);
		sscanf(line, "steps %d", &r->steps);
		sscanf(line, "seed %" SCNu64, &e->seed);
		sscanf(line, "lr %lf", &e->lr);
		sscanf(line, "beta1 %lf", &e->beta1);
		sscanf(line, "beta2 %lf", &e->beta2);
		sscanf(line, "eps %lf", &e->eps);
		sscanf(line, "weight_decay %lf", &e->weight_decay);
	}
	fclose(f);
	return ok;
}

/* For the importer: what does a part of the model fold to? */
static bool
fold_part(void *of, Graph *g, Diag *quiet)
{
	struct run *r = of;
	const struct dump_request none = { 0 };
	Pass p = { .target = &target_cpu, .diag = quiet, .opt = &r->cli.opt, .keep = r->arena };

	return pass_run(&p, g, "bind,fold", NULL, &none);
}

static bool
compile(struct run *r, struct onnx_file **keep)
{
	struct import_options o = {
		.nwish = r->cli.opt.nwish, .wish = r->cli.opt.wish,
		.nparam = r->cli.opt.nparam, .param = r->cli.opt.param,
		.untie = r->cli.opt.untie, .loss = r->cli.opt.loss,
		.batchnorm = r->cli.batchnorm,
		.fold = fold_part, .fold_of = r,
	};
	Pass p = { .target = &target_cpu, .diag = r->diag, .opt = &r->cli.opt, .keep = r->arena };
	struct dump_request dump = { NULL, NULL };
	const char *stop = r->cli.stop_after ? r->cli.stop_after : "optim";
	bool ok;

	r->g = onnx_import(r->cli.model, &o, r->diag, keep);
	ok = r->g && pass_run(&p, r->g, r->cli.passes, stop, &dump);
	graph_free(p.reference);
	return ok;
}

/* ---- results ---- */

struct entry {
	const char *name;
	ValId val;
};

static void
put_name(FILE *f, const char *s)
{
	putc('"', f);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			putc('\\', f);
		putc(*s, f);
	}
	putc('"', f);
}

static void
write_tensors(struct run *r, const char *name, const struct entry *e, int n)
{
	FILE *f = open_in(r, name, "wb");
	char *text;
	size_t size;
	FILE *head = open_memstream(&text, &size);
	int64_t at = 0;
	uint64_t length;

	putc('{', head);
	for (int i = 0; i < n; i++) {
		const Shape *s = &r->g->val[e[i].val].shape;
		int64_t bytes = 4 * shape_nelem(s);

		if (i > 0)
			putc(',', head);
		put_name(head, e[i].name);
		fputs(":{\"dtype\":\"F32\",\"shape\":[", head);
		for (int k = 0; k < s->rank; k++)
			fprintf(head, "%s%lld", k ? "," : "",
			        (long long)s->dim[k]);
		fprintf(head, "],\"data_offsets\":[%lld,%lld]}",
		        (long long)at, (long long)(at + bytes));
		at += bytes;
	}
	putc('}', head);
	fclose(head);
	length = size;
	fwrite(&length, sizeof length, 1, f);
	fwrite(text, 1, size, f);
	free(text);
	for (int i = 0; i < n; i++) {
		int64_t count = shape_nelem(&r->g->val[e[i].val].shape);
		const double *x = interp_get(r->it, e[i].val);

		for (int64_t k = 0; k < count; k++) {
			float y = x ? (float)x[k] : 0;

			fwrite(&y, sizeof y, 1, f);
		}
	}
	fclose(f);
}

static void
write_gradients(struct run *r)
{
	struct entry *e = arena_array(r->arena, r->g->nval, sizeof *e);
	int n = 0;

	FOR_VALS (v, r->g)
		if (v->kind == V_TEMP && v->param)
			e[n++] = (struct entry){ r->g->val[v->param].name,
				val_id(r->g, v) };
	write_tensors(r, "grads.safetensors", e, n);
}

static void
write_parameters(struct run *r)
{
	struct entry *e = arena_array(r->arena, r->g->nval, sizeof *e);
	int n = 0;

	FOR_VALS (v, r->g)
		if (v->kind == V_PARAM || v->kind == V_BUFFER)
			e[n++] = (struct entry){ v->name, val_id(r->g, v) };
	write_tensors(r, "params.safetensors", e, n);
}

/* ---- steps ---- */

/* Updates are in place; their outputs are values of their own here. */
static void
carry_over(struct run *r, NodeId first, NodeId last)
{
	for (const Node *n = &r->g->node[first]; n < &r->g->node[last]; n++) {
		if (!(op_info[n->op].flags & F_WRITES))
			continue;
		for (int k = 0; k < n->nout; k++)
			if (n->out[k])
				interp_set(r->it, n->in[k ? k + 1 : 0],
				           interp_get(r->it, n->out[k]));
	}
}

/* The first node that runs once a step instead of once a micro-batch. */
static NodeId
first_update(const Graph *g)
{
	NodeId n = 1;

	while (n < g->nnode && g->node[n].phase != PH_UPDATE)
		n++;
	return n;
}

/* One step; every micro-batch is the same one. */
static bool
run_step(struct run *r, int step)
{
	NodeId update = first_update(r->g);
	int64_t nmicro = r->cli.opt.grad_accum;

	interp_env(r->it)->step = (uint64_t)step;
	for (int64_t m = 0; m < (nmicro > 1 ? nmicro : 1); m++) {
		interp_env(r->it)->micro = (uint32_t)m;
		if (!interp_run(r->it, 1, update))
			return false;
		carry_over(r, 1, update);
	}
	if (!interp_run(r->it, update, r->g->nnode))
		return false;
	if (step == 0)
		write_gradients(r);
	carry_over(r, update, r->g->nnode);
	return true;
}

static bool
train(struct run *r)
{
	FILE *log = open_in(r, "log.jsonl", "w");
	bool ok = true;

	for (int s = 0; ok && s < r->steps; s++) {
		ok = run_step(r, s);
		if (ok)
			fprintf(log, "{\"step\": %d, \"loss\": %.9g}\n", s,
			        interp_get(r->it, r->g->loss)[0]);
	}
	fclose(log);
	if (ok)
		write_parameters(r);
	else
		fprintf(stderr, "ref_model: %s\n", interp_error(r->it));
	return ok;
}

int
main(int argc, char **argv)
{
	struct run r = { .steps = 1 };
	struct onnx_file *keep = NULL;
	bool ok;
	int status;

	if (argc < 3) {
		fputs("usage: ref_model DIR CKC-ARGUMENTS...\n", stderr);
		return 2;
	}
	r.dir = argv[1];
	r.arena = arena_new();
	argv[1] = argv[0];
	status = cli_parse(&r.cli, argc - 1, argv + 1, r.arena, stdout, stderr);
	if (status != CLI_GO)
		return status;
	r.diag = diag_new("ref_model", stderr);
	ok = compile(&r, &keep);
	if (ok) {
		r.it = interp_new(r.g);
		if (r.g->props & P_PLACED)
			interp_place(r.it);
		ok = read_setup(&r) && train(&r);
		interp_free(r.it);
	}
	graph_free(r.g);
	onnx_close(keep);
	diag_free(r.diag);
	arena_free(r.arena);
	return !ok;
}
