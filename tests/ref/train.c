/* Training by interpretation. */
#include "tests/ref/train.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codegen/cpu/cpu.h"
#include "ir/base/input_file.h"
#include "ir/text/text.h"
#include "passes/cost/cost.h"
#include "passes/explore/explore.h"
#include "passes/passes.h"
#include "passes/place/place.h"
#include "tests/ref/interp_int.h"

/* ---- the graph ---- */

/* 0: as the target says. */
static int64_t loss_rows;

static int64_t
fixed_rows(int64_t rows, int64_t classes, bool half)
{
	(void)classes, (void)half;
	return rows < loss_rows ? rows : loss_rows;
}

void
run_loss_rows(int64_t rows)
{
	loss_rows = rows;
}

/* For the importer: what does a part of the model fold to? */
static bool
fold_part(void *of, Graph *g, Diag *quiet)
{
	struct run *r = of;
	const struct dump_request none = { 0 };
	Pass p = { .target = &target_cpu, .diag = quiet, .opt = &r->cli.opt,
	           .keep = r->arena };

	return pass_run(&p, g, "bind,fold", NULL, &none);
}

static bool
load(struct run *r)
{
	struct import_options o = {
		.nwish = r->cli.opt.nwish, .wish = r->cli.opt.wish,
		.param = r->cli.opt.param, .untie = r->cli.opt.untie,
		.loss = r->cli.opt.loss, .nbatchnorm = r->cli.nbatchnorm,
		.batchnorm = r->cli.batchnorm,
		.shapes_do = r->cli.plan_only,
		.fold = fold_part, .fold_of = r,
	};
	char *text;
	size_t n;

	if (!glob_match("*.ck", r->cli.model)) {
		r->g = onnx_import(r->cli.model, &o, r->diag, &r->file);
		return r->g != NULL;
	}
	text = input_file_read(r->cli.model, 1 << 28, &n, r->arena, r->diag);
	if (text)
		r->g = text_parse(r->cli.model, text, n, r->diag);
	return r->g != NULL;
}

static bool
compile(struct run *r)
{
	struct target target = target_cpu;
	Pass p = { .target = &target, .diag = r->diag, .opt = &r->cli.opt,
	           .keep = r->arena };
	const struct dump_request dump = { NULL, NULL };
	const char *stop = r->cli.stop_after ? r->cli.stop_after : "optim";
	bool ok;

	if (loss_rows)
		target.classifier_rows = fixed_rows;
	if (!load(r))
		return false;
	if (r->cli.opt.device)
		r->g->device = device_find(r->cli.opt.device, r->diag,
		                           r->arena);
	if (glob_match("*.ck", r->cli.model) && !r->cli.passes
	    && !r->cli.stop_after)
		return true;
	ok = r->cli.passes ? pass_run(&p, r->g, r->cli.passes, stop, &dump)
		: explore(&p, r->g, stop, &dump);
	graph_free(p.planned.reference);
	r->pipeline = p.planned.pipeline;
	r->strategy_sec = p.result.strategy_sec;
	r->nrunner_up = p.result.nrunner_up;
	r->runner_up = p.result.runner_up;
	return ok;
}

int
run_parse(struct run *r, int argc, char **argv)
{
	int status;

	if (!r->arena)
		r->arena = arena_new();
	status = cli_parse(&r->cli, argc, argv, r->arena, stdout, stderr);
	if (status != CLI_GO)
		return status;
	if (r->quiet)
		r->nowhere = fopen("/dev/null", "w");
	r->diag = diag_new(argv[0], r->nowhere ? r->nowhere : stderr);
	return status;
}

int
run_parse_line(struct run *r, const char *line)
{
	char *argv[64] = { (char *)"run" }, *save, *w;
	int argc = 1;

	r->arena = arena_new();
	for (w = strtok_r(arena_printf(r->arena, "%s", line), " ", &save);
	     w && argc < 63; w = strtok_r(NULL, " ", &save))
		argv[argc++] = w;
	return run_parse(r, argc, argv);
}

bool
run_compile(struct run *r)
{
	if (!compile(r))
		return false;
	run_adopt(r, r->g);
	return true;
}

static void
place_all(struct run *r)
{
	const Graph *g = r->g;
	struct interp_pool pool[3] = { { 0, 0, g->slots },
		{ 0, 0, g->through_slots }, { 0, 0, g->weight_slots } };
	int64_t bytes[3], at = 0;

	place_slot_bytes(g, bytes, r->arena);
	for (int k = 0; k < 3; k++) {
		pool[k].at = at;
		pool[k].bytes = pool[k].n > 1 || (!k && g->other_slots)
			? bytes[k] : 0;
		at += pool[k].n * pool[k].bytes;
	}
	for (int k = 0; k < spmd_ranks(r->s); k++)
		memcpy(spmd_rank(r->s, k)->pool, pool, sizeof pool);
	spmd_place(r->s);
}

void
run_adopt(struct run *r, Graph *g)
{
	r->g = g;
	r->s = spmd_new(g);
	if (g->props & P_PLACED)
		place_all(r);
	r->env = *interp_env(spmd_rank(r->s, 0));
}

int
run_open(struct run *r, int argc, char **argv)
{
	int status = run_parse(r, argc, argv);

	if (status != CLI_GO)
		return status;
	return run_compile(r) ? 0 : 1;
}

void
run_close(struct run *r)
{
	spmd_free(r->s);
	graph_free(r->g);
	onnx_close(r->file);
	diag_free(r->diag);
	if (r->nowhere)
		fclose(r->nowhere);
	arena_free(r->arena);
}

/* ---- contents ---- */

FILE *
run_file(struct run *r, const char *name, const char *mode)
{
	FILE *f = fopen(arena_printf(r->arena, "%s/%s", r->dir, name), mode);

	if (f == NULL) {
		fprintf(stderr, "%s/%s: %s\n", r->dir, name, strerror(errno));
		exit(1);
	}
	return f;
}

/* A gradient that does not say how it lies lies as its parameter. */
static Placement
split_of(const Graph *g, const Val *v)
{
	const Val *param = &g->val[v->param];

	return v->kind == V_TEMP && v->param
			&& v->placement.kind == PLACEMENT_REPLICATE
			&& param->placement.kind == PLACEMENT_SHARD
		? param->placement
		: v->placement;
}

Shape
run_shape(const struct run *r, ValId v)
{
	Placement s = split_of(r->g, &r->g->val[v]);

	return spmd_shape(&s, &r->g->val[v].shape);
}

int64_t
run_elements(const struct run *r, ValId v)
{
	Shape s = run_shape(r, v);

	return shape_nelem(&s);
}

static bool
load_input(struct run *r, const char *name, const char *path)
{
	ValId v = val_find(r->g, name);
	int64_t n = v ? run_elements(r, v) : -1;
	FILE *f = fopen(path, "rb");
	size_t size, all;
	struct given *x = &r->input[r->ninput];
	char *raw;

	if (!v && r->part) {
		if (f)
			fclose(f);
		return true;
	}
	if (f == NULL || n < 0 || r->ninput == RUN_INPUTS) {
		fprintf(stderr, "input %s: %s\n", name,
		        f ? "no such value" : strerror(errno));
		return false;
	}
	size = (size_t)n * (size_t)dtype_info[r->g->val[v].dt].nbytes;
	fseek(f, 0, SEEK_END);
	all = (size_t)ftell(f);
	rewind(f);
	raw = arena_alloc(r->arena, all + 1);
	if (size ? all % size || !all : all) {
		fprintf(stderr, "%s has %zu bytes, not %zu or several times "
		        "that\n", path, all, size);
		fclose(f);
		return false;
	}
	all = fread(raw, 1, all, f);
	fclose(f);
	*x = (struct given){ v, raw, size, size ? all / size : 1 };
	r->ninput += r->g->val[v].kind == V_INPUT;
	spmd_load(r->s, v, raw);
	return true;
}

static double
noise(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) / 8388608.0 - 1;
}

/* Integers are below that number. */
static void
fill(struct run *r, ValId v, int64_t below)
{
	const Val *p = &r->g->val[v];
	int64_t n = run_elements(r, v);
	double *x = arena_array(r->arena, (size_t)n + 1, sizeof *x);
	uint32_t state = 2166136261u;

	for (const char *s = p->name; *s; s++)
		state = (state ^ (unsigned char)*s) * 16777619u;
	for (int64_t i = 0; i < n; i++) {
		x[i] = noise(&state);
		if (dtype_info[p->dt].cls != 'f')
			x[i] = (double)(int64_t)((x[i] + 1) / 2
			                         * (double)below);
	}
	spmd_set(r->s, v, x);
}

void
run_fill(struct run *r)
{
	FOR_VALS (v, r->g) {
		ValId id = val_id(r->g, v);

		if ((v->kind == V_INPUT || v->kind == V_PARAM
		     || v->kind == V_BUFFER)
		    && interp_get(spmd_rank(r->s, 0), id) == NULL)
			fill(r, id, 2);
	}
}

static void
read_number(struct run *r, const char *line)
{
	struct interp_env *e = &r->env;
	const struct { const char *name; double *x; } number[] = {
		{ "lr", &e->lr }, { "beta1", &e->beta1 },
		{ "beta2", &e->beta2 }, { "eps", &e->eps },
		{ "weight_decay", &e->weight_decay }, { "clip", &e->clip },
		{ "momentum", &e->momentum }, { "ema_decay", &e->ema_decay },
	};
	char name[64];
	double x;

	if (sscanf(line, "%63s %lf", name, &x) != 2)
		return;
	for (size_t i = 0; i < sizeof number / sizeof *number; i++)
		if (strcmp(name, number[i].name) == 0)
			*number[i].x = x;
}

bool
run_setup(struct run *r)
{
	FILE *f = run_file(r, "setup", "r");
	char line[4096], name[1024], path[1024];
	int64_t below;
	bool ok = true;

	while (fgets(line, sizeof line, f)) {
		if (sscanf(line, "input %1023s %1023s", name, path) == 2)
			ok &= load_input(r, name, path);
		else if (sscanf(line, "below %1023s %" SCNd64, name, &below)
		         == 2 && val_find(r->g, name))
			fill(r, val_find(r->g, name), below);
		else
			read_number(r, line);
		sscanf(line, "steps %d", &r->steps);
		sscanf(line, "seed %" SCNu64, &r->env.seed);
		if (strcmp(line, "round half\n") == 0)
			r->env.round = ROUND_HALF;
	}
	fclose(f);
	return ok;
}

double *
run_get(struct run *r, ValId v)
{
	int64_t n = run_elements(r, v);
	double *x = arena_array(r->arena, (size_t)n + 1, sizeof *x);
	Placement split = split_of(r->g, &r->g->val[v]);

	if (spmd_get_as(r->s, v, &split, x))
		return x;
	fprintf(stderr, "%s\n", spmd_error(r->s));
	return NULL;
}

/* ---- steps ---- */

/* The first node that runs once a step instead of once a micro-batch. */
static NodeId
first_update(const Graph *g)
{
	NodeId n = 1;

	while (n < g->nnode && g->node[n].phase != PH_UPDATE)
		n++;
	return n;
}

/* The end of the nodes from `from` on that are of one round. */
static NodeId
end_of_round(const Graph *g, NodeId from, NodeId end)
{
	NodeId n = from;

	while (n < end && g->node[n].count_pass == g->node[from].count_pass)
		n++;
	return n;
}

/* Inputs of a micro-batch, of which a file may hold several. */
void
run_feed(struct run *r, int64_t m)
{
	for (int i = 0; i < r->ninput; i++) {
		const struct given *x = &r->input[i];

		spmd_load(r->s, x->of, x->raw + (size_t)m % x->n * x->size);
	}
}

/* Nodes from..to-1 for every micro-batch; the losses of all in r->loss. */
static bool
run_micros(struct run *r, NodeId from, NodeId to)
{
	int64_t nmicro = r->cli.opt.grad_accum;
	bool ok = true;

	nmicro = nmicro > 1 ? nmicro : 1;
	r->env.nmicro = (double)nmicro;
	r->loss = 0;
	for (int64_t m = 0; ok && m < nmicro; m++) {
		const double *loss;

		r->env.micro = (uint32_t)m;
		run_feed(r, m);
		spmd_set_env(r->s, &r->env);
		ok = spmd_run(r->s, from, to);
		if (!ok)
			break;
		spmd_carry_over(r->s, from, to);
		if (r->g->node[from].count_pass || !r->g->loss)
			continue;
		loss = run_get(r, r->g->loss);
		ok = loss != NULL;
		r->loss += !ok ? 0 : r->g->adds ? *loss
		           : *loss / (double)nmicro;
	}
	return ok;
}

bool
run_step(struct run *r, int step)
{
	NodeId update = first_update(r->g), end = r->g->nnode;
	bool ok = true;

	r->env.step = (uint64_t)step;
	for (NodeId from = 1, to; ok && from < update; from = to) {
		to = end_of_round(r->g, from, update);
		ok = run_micros(r, from, to);
	}
	ok = ok && spmd_run(r->s, update, end);
	if (ok)
		spmd_carry_over(r->s, update, end);
	else if (!r->quiet)
		fprintf(stderr, "%s\n", spmd_error(r->s));
	return ok;
}
