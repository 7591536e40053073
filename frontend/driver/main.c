/* The driver of ckc, the only file that uses every folder.
 *
 * Options -> graph (ONNX or text) -> passes -> reports -> code.  Outputs are
 * written by rename, so a failure leaves no file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "codegen/codegen.h"
#include "frontend/driver/host.h"
#include "frontend/import/import.h"
#include "frontend/driver/opts.h"
#include "frontend/driver/load.h"
#include "ir/base/outfile.h"
#include "frontend/driver/outputs.h"
#include "frontend/driver/stop.h"
#include "frontend/driver/verbs.h"
#include "ir/ir.h"
#include "passes/planner/pareto_front.h"
#include "passes/explore/evaluation_program.h"
#include "passes/explore/explore.h"
#include "passes/passes.h"
#include "passes/pipeline/pipeline.h"
#include "ir/text/text.h"
#include "passes/report/report.h"
#include "runtime/support/number.h"
#include "runtime/support/path.h"
#include "runtime/support/utf8.h"

enum { EXIT_OK, EXIT_DIAGNOSED, EXIT_USAGE };

struct driver {
	struct cli cli;
	struct model_load load;
	Arena *arena;
	Diag *diag;
	Graph *graph;
	struct onnx_file *file;        /* mappings that the graph points into */
	Pass pass;
	struct report_source source;
	struct codegen_origin origin;  /* of a library named after the model */
	struct watch watch;              /* when to stop */
};

/* ---- the stages ---- */

/* The passes of --dump, without its reports. */
static const char *
pass_dumps(struct driver *d)
{
	char *copy, *out, *word, *state;

	if (!d->cli.dump)
		return NULL;
	copy = arena_str(d->arena, d->cli.dump);
	out = arena_alloc(d->arena, strlen(copy) + 2);
	for (word = strtok_r(copy, ",", &state); word;
	     word = strtok_r(NULL, ",", &state)) {
		/* reports; with --stop-after, shard is a dump */
		if (!strcmp(word, "plan") || !strcmp(word, "memory")
		    || (!strcmp(word, "shard") && !d->cli.stop_after))
			continue;
		if (*out)
			strcat(out, ",");
		strcat(out, word);
	}
	return *out ? out : NULL;
}

static bool
write_svg(struct driver *d)
{
	const char *path = d->cli.curve_svg;
	struct outfile o;

	if (!path)
		return true;
	if (!outfile_open(&o, path, d->diag))
		return false;
	pareto_front_svg(&d->pass, arena_printf(d->arena,
		"%s: step time against memory budget",
		path_base(d->cli.model)), o.f);
	return outfile_close(&o, true);
}

static bool
write_report_page(struct driver *d)
{
	struct outfile o;

	if (!d->cli.page)
		return true;
	if (!outfile_open(&o, d->cli.page, d->diag))
		return false;
	page_print(&d->pass, d->pass.planned.plan, &d->source, o.f);
	return outfile_close(&o, true);
}

/* Of a pipeline: all stages have been through all passes. */
static bool
has_stage_plans(const Pass *p)
{
	const struct pipeline *l = p->planned.pipeline;

	return l && l->stage[l->nstage - 1].planned.plan;
}

static bool
print_reports(struct driver *d)
{
	const struct cli *c = &d->cli;
	const Pass *p = &d->pass;
	const char *wish = cli_dumps(c, "plan") ? "dump=plan"
		: cli_dumps(c, "shard") && !c->stop_after ? "dump=shard"
		: cli_dumps(c, "memory") ? "dump=memory"
		: c->curve ? "curve" : c->page ? "report"
		: c->opt.explain ? "explain"
		: c->json ? "json" : NULL;

	if (wish && !p->planned.plan && !has_stage_plans(p))
		return diag_error(d->diag, "--%s: there is no plan; run all "
		                  "passes, without --passes and --stop-after",
		                  wish);
	if (p->planned.pipeline && cli_dumps(c, "plan"))
		pipeline_print(p, stdout);
	if (p->planned.pipeline)
		return true;
	if (cli_dumps(c, "plan"))
		plan_print_table(p, p->planned.plan, stdout);
	if (cli_dumps(c, "shard"))
		plan_print_shard(p, p->planned.plan, stdout);
	if (cli_dumps(c, "memory"))
		plan_print_memory(p, p->planned.plan, stdout);
	if (c->curve)
		pareto_front_print(p, stdout);
	return !c->opt.explain
		|| plan_explain(p, p->planned.plan, c->opt.explain, stdout);
}

static void
summary(const struct driver *d, const char *out)
{
	const struct plan_summary *s = &d->pass.planned.plan->sum;
	char peak[24], arena[24], live[24];

	if (d->cli.opt.quiet)
		return;
	fflush(stdout);                 /* reports come first */
	if (d->pass.result.added)
		fprintf(stderr, "%s: %s\n", d->graph->name,
		        d->pass.result.added);
	fprintf(stderr, "%s: %s%speak %s (%lld B; arena %s, live bytes %s%s), "
	        "recompute costs %.2f %% of the step, at most %.2f %% more "
	        "than the best plan", d->graph->name,
	        out ? out : "", out ? ", " : "",
	        number_bytes(peak, (double)s->peak), (long long)s->peak,
	        number_bytes(arena, (double)s->arena),
	        number_bytes(live, (double)s->live_bound),
	        s->arena == s->live_bound ? ", layout optimal" : "",
	        100 * s->overhead, 100 * s->gap);
	if (s->host > 0)
		fprintf(stderr, ", %s in host memory, whose transfers add "
		        "%.2f %% to the step",
		        number_bytes(peak, (double)s->host),
		        100 * plan_waits(s) / (s->step_sec - s->host_sec));
	if (s->nlow_precision)
		fprintf(stderr, ", %lld value%s saved in 16 bits (%s less)",
		        (long long)s->nlow_precision,
		        s->nlow_precision == 1 ? "" : "s",
		        number_bytes(peak, (double)s->low_precision_bytes));
	fputc('\n', stderr);
}

static void
pipeline_summary(const struct driver *d)
{
	const struct pipeline *l = d->pass.planned.pipeline;
	double *idle = arena_array(d->arena, (size_t)l->nstage, sizeof *idle);
	double sec = pipeline_seconds(l, idle), mean = 0;
	char peak[24];

	if (d->cli.opt.quiet)
		return;
	fflush(stdout);
	for (int k = 0; k < l->nstage; k++)
		mean += idle[k] / l->nstage;
	fprintf(stderr, "%s: %d stages, %d micro-batches, peak of the largest "
	        "%s %s (%lld B), a step takes %.4g s, stages are idle for "
	        "%.1f %% of their turns\n", d->graph->name, l->nstage,
	        l->nmicro, l->nchunk > 1 ? "rank" : "stage",
	        number_bytes(peak, (double)pipeline_peak(l)),
	        (long long)pipeline_peak(l), sec, 100 * mean);
}

static const struct codegen_adapter *
adapters(struct driver *d)
{
	int n = d->pass.result.nadapter;
	struct codegen_adapter *v = arena_array(d->arena, (size_t)n + 1,
	                                        sizeof *v);

	for (int i = 0; i < n; i++) {
		const struct adapter *a = &d->pass.result.adapter[i];

		v[i] = (struct codegen_adapter){ a->weight, a->a, a->b,
			a->scale, a->turned };
	}
	return v;
}

/* Text that JSON can hold as it is. */
static const char *
utf8_copy(struct driver *d, const char *text)
{
	char *copy = arena_str(d->arena, text);
	bool whole = utf8_is(text, strlen(text));

	for (char *c = copy; *c; c++)
		if (!whole && (unsigned char)*c >= 0x80)
			*c = '?';
	return copy;
}

/* The model and the options as a library that is named after the model records
 * them; with -o nothing. */
static struct codegen_origin
origin_of(struct driver *d)
{
	char *path = d->cli.out ? NULL : realpath(d->cli.model, NULL);
	struct codegen_origin from = { NULL, NULL };
	const char *text = "";

	if (!path)
		return from;
	for (int i = 0; i < d->cli.nflag; i++)
		if (d->cli.flag[i] != d->cli.model
		    && strcmp(d->cli.flag[i], "--quiet") != 0)
			text = arena_printf(d->arena, "%s%s%s", text,
			                    *text ? " " : "",
			                    d->cli.flag[i]);
	from.model = utf8_copy(d, path);
	from.options = utf8_copy(d, text);
	free(path);
	return from;
}

static void
add_stages(struct driver *d, struct codegen_schedules *c)
{
	const struct pipeline *l = d->pass.planned.pipeline;
	struct codegen_stage *stage;

	if (!l)
		return;
	stage = arena_array(d->arena, (size_t)l->nstage, sizeof *stage);
	for (int k = 0; k < l->nstage; k++) {
		const struct pipeline_stage *s = &l->stage[k];

		stage[k] = (struct codegen_stage){ .g = s->graph,
			.plan = s->planned.plan, .turn = s->turn,
			.nturn = s->nturn, .second = s->second.graph,
			.second_plan = s->second.planned.plan,
			.has_second = s->second.has, .slots = s->slots };
		if (l->evaluation) {
			stage[k].forward = l->evaluation->stage[k].graph;
			stage[k].forward_plan =
				l->evaluation->stage[k].planned.plan;
		}
	}
	c->stage = stage;
	c->nstage = l->nstage;
	c->nrank = l->nrank;
	c->nmicro = l->nmicro;
}

static bool
generate(struct driver *d, const struct outputs *out)
{
	const struct cli *c = &d->cli;
	const char *why = NULL;
	const struct onnx_template *t = d->file
		? onnx_get_template(d->file, &why) : NULL;
	struct codegen_options o = cli_codegen(c, c->machine);
	struct codegen_schedules s = {
		.g = d->graph, .plan = d->pass.planned.plan,
		.reference = d->pass.planned.reference,
		.reference_plan = d->pass.planned.reference_plan,
	};

	if (d->pass.result.forward)
		s.forward_plan = forward_plan(&d->pass, d->graph);
	add_stages(d, &s);
	o.out_so = out->so;
	o.weights = out->weights;
	o.origin = d->origin;
	o.training = utf8_copy(d, cli_training_options(c, d->arena));
	o.emit_dir = c->emit_dir;
	o.grad_accum = c->opt.grad_accum;
	o.stop = d->watch.stop;
	/* that of a pipeline is in its stages */
	s.forward = s.forward_plan ? d->pass.result.forward : NULL;
	s.formula = &d->pass.result.loss_formula;
	o.adapter = adapters(d);
	o.nadapter = d->pass.result.nadapter;
	if (why)
		diag_note(d->diag, "ckrun --export-onnx cannot write this "
		          "model: %s", why);
	if (t) {
		struct codegen_hole *hole = arena_array(d->arena,
			(size_t)t->nhole + 1, sizeof *hole);

		for (int i = 0; i < t->nhole; i++)
			hole[i] = (struct codegen_hole){ t->hole[i].at,
			                                 t->hole[i].val,
			                                 t->hole[i].dt };
		o.onnx_template = t->bytes;
		o.onnx_bytes = t->n;
		o.onnx_trains = t->trains;
		o.nhole = t->nhole;
		o.hole = hole;
	}
	return codegen_library(&s, &o, d->diag);
}

/* Refuse to replace weights that ckc did not write, and under a name that
 * nobody chose what may be another model's. */
static bool
spare_weights(struct driver *d, const struct outputs *out)
{
	const struct codegen_origin now = d->origin;
	struct codegen_origin old;
	const char *there = !access(out->so, F_OK) ? out->so
		: !access(out->weights, F_OK) ? out->weights : NULL;

	if (!codegen_weights_origin(out->weights, &old, d->arena))
		return diag_error(d->diag, "'%s' exists and was not written by "
		                  "ckc; choose another -o, because the weights "
		                  "are written next to the library",
		                  out->weights);
	if (d->cli.out || !there)
		return true;
	if (!old.model || !old.options)
		return diag_error(d->diag, "'%s' exists and does not say which "
		                  "model it is of; to replace it: -o %s",
		                  there, out->so);
	if (strcmp(old.model, now.model))
		return diag_error(d->diag, "'%s' is of another model, '%s'; to "
		                  "replace it: -o %s", there, old.model,
		                  out->so);
	if (strcmp(old.options, now.options))
		diag_note(d->diag, "'%s' will be replaced; it was compiled "
		          "with other options%s%s", there,
		          *old.options ? ": " : "", old.options);
	return true;
}

/* Each stage of a pipeline, or the graph. */
static void
print_graphs(const struct driver *d)
{
	const struct pipeline *l = d->pass.planned.pipeline;

	for (int k = 0; l && k < l->nstage; k++)
		text_print(l->stage[k].graph, stdout);
	if (!l)
		text_print(d->graph, stdout);
}

static bool
compile_model(struct driver *d)
{
	struct cli *c = &d->cli;
	struct dump_request dump = { pass_dumps(d), c->dump_dir };
	bool partial = c->passes || c->stop_after;
	bool code = !c->plan_only && !partial;
	struct outputs out = { 0 };

	d->source = (struct report_source){ c->model, c->nflag, c->flag };
	cli_warn(c, d->diag);
	diag_file(d->diag, c->model);
	c->opt.eval = code;
	c->opt.evaluator = c->eval && !c->opt.forward_only;
	c->opt.account = c->json || cli_dumps(c, "memory");
	c->opt.compare = cli_dumps(c, "plan");
	c->opt.slim = !code && !c->page && !c->opt.account
		&& !c->opt.compare;
	if (code) {
		out = outputs_name(c->model, c->out, d->arena);
		d->origin = origin_of(d);
	}
	out.json = c->json;
	out.svg = c->curve_svg;
	out.page = c->page;
	if (!outputs_check(&out, c->model, NULL, d->diag)
	    || (code && !spare_weights(d, &out))
	    || !(d->graph = load_model(&d->load, &d->file))
	    || !outputs_check(&out, c->model, d->file, d->diag)
	    || !device_set(c, d->graph, &d->watch, d->arena,
	                   d->diag)
	    || !(c->passes
	         ? pass_run(&d->pass, d->graph, c->passes, c->stop_after, &dump)
	         : explore(&d->pass, d->graph, c->stop_after, &dump))) {
		advise_more(c, &d->pass);
		return false;
	}
	if (partial && !c->dump)
		print_graphs(d);
	if (watch_off(&d->watch))
		return diag_error(d->diag, "interrupted");
	if (!print_reports(d) || (code && !generate(d, &out))
	    || !outputs_write_plan(c->json, &d->pass, d->pass.planned.plan,
	                           &d->source, d->diag)
	    || !write_svg(d) || !write_report_page(d))
		return false;
	if (d->pass.planned.plan && !partial)
		summary(d, out.so);
	if (has_stage_plans(&d->pass) && !partial)
		pipeline_summary(d);
	return true;
}

/* --auto: with -o, as if the line that it prints had been typed. */
static bool
compile_fastest(struct driver *d)
{
	bool wanted = d->cli.out && !d->cli.plan_only;
	const char **word;
	char **argv;
	int n;

	if (!verb_auto(&d->cli, &d->watch, d->arena, d->diag, &word, &n))
		return false;
	if (!wanted)
		return true;
	argv = arena_array(d->arena, (size_t)n + 2, sizeof *argv);
	argv[0] = arena_str(d->arena, "ckc");
	for (int i = 0; i < n; i++)
		argv[i + 1] = arena_str(d->arena, word[i]);
	return cli_parse(&d->cli, n + 1, argv, d->arena, stdout, stderr)
		== CLI_GO && compile_model(d);
}

/* Planning allocates and frees the memory of graphs again and again: it stays
 * with the process. */
static void
keep_freed_memory(void)
{
#ifdef __GLIBC__
	mallopt(M_MMAP_THRESHOLD, 64 << 20);
	mallopt(M_TRIM_THRESHOLD, 256 << 20);
	mallopt(M_TOP_PAD, 4 << 20);
#endif
}

int
main(int argc, char **argv)
{
	struct driver d = { .arena = arena_new() };
	int status = cli_parse(&d.cli, argc, argv, d.arena, stdout, stderr);
	struct import_options import;
	bool ok = false;

	keep_freed_memory();
	if (status != CLI_GO) {
		arena_free(d.arena);
		if (fflush(stdout) == 0 && !ferror(stdout))
			return status;
		fputs("ckc: cannot write to standard output\n", stderr);
		return EXIT_DIAGNOSED;
	}
	d.diag = diag_new("ckc", stderr);
	if (d.cli.opt.quiet)
		diag_quiet(d.diag);
	d.pass = (Pass){
		.diag = d.diag, .opt = &d.cli.opt,
		.target = d.cli.machine->target,
		.keep = d.arena,
		.debug = d.cli.debug, .watch = &d.watch,
		.progress = !d.cli.opt.quiet && isatty(2) ? stderr : NULL,
	};
	d.load = (struct model_load){ &d.cli, d.arena, d.diag, &d.watch };
	switch (d.cli.verb) {
	case VERB_COMPILE:
		d.watch.stop = stop_on_signals();
		ok = d.cli.automatic ? compile_fastest(&d) : compile_model(&d);
		break;
	case VERB_INSPECT:
		import = load_options(&d.load);
		ok = verb_inspect(&d.cli, &import, d.arena, d.diag);
		break;
	case VERB_ADVISE:
		d.watch.stop = stop_on_signals();
		ok = verb_advise(&d.cli, &d.watch, d.arena, d.diag);
		break;
	case VERB_PLAN:
		ok = verb_plan(&d.cli, d.arena, d.diag);
		break;
	case VERB_PACK:
		ok = verb_pack(&d.cli, d.arena, d.diag);
		break;
	case VERB_DOCTOR:
		ok = verb_doctor(&d.cli, d.arena, d.diag);
		break;
	}
	ok &= diag_errors(d.diag) == 0;
	if (fflush(stdout) || ferror(stdout))
		ok = diag_error(d.diag, "cannot write to standard output");
	diag_flush(d.diag);
	pipeline_free(d.pass.planned.pipeline);
	graph_free(d.pass.planned.reference);
	graph_free(d.pass.result.forward);
	if (d.pass.planned.pareto_front)            /* stopped early */
		graph_free(d.pass.planned.pareto_front->first.own);
	graph_free(d.graph);
	arena_free(d.pass.retired);
	onnx_close(d.file);
	diag_free(d.diag);
	arena_free(d.arena);
	return ok ? EXIT_OK : EXIT_DIAGNOSED;
}
