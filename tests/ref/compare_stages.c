/* A pipeline against one rank, in double precision: losses, gradients,
 * parameters and states have the same bits.
 *
 *     ref_stages [--clip] [--second] [--tolerance X] DIR CKC-ARGUMENTS...
 *     ref_stages --peak DIR CKC-ARGUMENTS...
 *
 * DIR/setup as in train.h; "-": none.  The arguments have --pp; one rank runs
 * them without it, with as many micro-batches (--grad-accum).  With --clip,
 * squares are summed in another order, so that 1e-12 of the largest element
 * counts as equal.  With --second, exit status 3 unless a stage has two plans.
 * --peak prints the bytes of the stage that needs most.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "passes/pipeline/pipeline.h"
#include "tests/ref/stages.h"

static double tolerance;
static bool clips, wants_second, wants_peak;

enum { STEPS = 2 };

static bool
open_run(struct run *r, const char *dir, int argc, char **argv, bool staged)
{
	int status = run_parse(r, argc, argv);

	r->dir = dir;
	if (status != CLI_GO)
		return false;
	if (!r->cli.opt.stages) {
		fputs("ref_stages: expected --pp P\n", stderr);
		return false;
	}
	if (!staged) {
		r->cli.opt.stages = false;
		r->cli.opt.pp = 0;
		/* a budget is one of a stage */
		r->cli.opt.budget_bytes = -1;
	}
	if (!run_compile(r))
		return false;
	r->env.eps = 1e-4;
	r->env.clip = clips ? 0.01 : 0;
	return true;
}

/* What both have, by its name. */
static const char *
name_of(const Graph *g, const Val *v)
{
	if (v->kind == V_TEMP)
		return v->def && v->param ? g->val[v->param].name : NULL;
	if (v->kind == V_STATE && strcmp(v->state, "total")
	    && strcmp(v->state, "grad") && strcmp(v->state, "copy"))
		return v->name;
	return v->kind == V_PARAM || v->kind == V_BUFFER ? v->name : NULL;
}

static ValId
find_twin(const Graph *g, bool gradient, const char *name)
{
	FOR_VALS (v, g) {
		const char *is = name_of(g, v);

		if (is && gradient == (v->kind == V_TEMP) && !strcmp(is, name))
			return val_id(g, v);
	}
	return 0;
}

static int
compare_value(struct run *a, ValId v, struct run *b, ValId twin, int stage)
{
	int64_t n = run_elements(a, v);
	const double *x = run_get(a, v), *y = run_get(b, twin);
	double most = 0, worst = 0;

	for (int64_t i = 0; x && y && i < n; i++) {
		most = fmax(most, fabs(x[i]));
		worst = fmax(worst, isnan(x[i] - y[i]) ? INFINITY
		             : fabs(x[i] - y[i]));
	}
	if (x && y && n == run_elements(b, twin) && (worst <= tolerance * most || (tolerance > 0 && worst < 1e-2 * tolerance)))
		return 0;
	printf("%s%s of stage %d differs by %.3g of %.3g\n",
	       a->g->val[v].kind == V_TEMP ? "gradient of " : "",
	       name_of(a->g, &a->g->val[v]), stage, worst, most);
	return 1;
}

/* *n: values compared. */
static int
compare_all(struct run *a, struct stages_run *b, int nstage, int *n)
{
	int faults = 0;

	FOR_VALS (v, a->g) {
		const char *name = name_of(a->g, v);
		bool any = false;

		for (int k = 0; name && k < nstage; k++) {
			struct run *s = stages_run_stage(b, k);
			ValId twin = find_twin(s->g, v->kind == V_TEMP, name);

			if (!twin)
				continue;
			any = true;
			++*n;
			faults += compare_value(a, val_id(a->g, v), s, twin, k);
		}
		if (name && !any) {
			printf("%s is on no stage\n", name);
			faults++;
		}
	}
	return faults;
}

static int
compare_loss(double a, double b, int step)
{
	if (fabs(a - b) <= tolerance * fabs(a))
		return 0;
	printf("step %d: loss %.17g, of the pipeline %.17g\n", step, a, b);
	return 1;
}

static int
count_second(const struct pipeline *l)
{
	int n = 0;

	for (int k = 0; k < l->nstage; k++)
		n += l->stage[k].second.graph != NULL;
	return n;
}

static int64_t
largest_peak(const struct pipeline *l)
{
	int64_t most = 0;

	for (int k = 0; k < l->nstage; k++)
		if (stage_peak(&l->stage[k]) > most)
			most = stage_peak(&l->stage[k]);
	return most;
}

int
main(int argc, char **argv)
{
	struct run a = { .steps = STEPS }, b = { .steps = STEPS };
	struct stages_run *p = NULL;
	int faults = 0, n = 0, nstage = 0;
	bool ok;

	for (; argc > 3 && argv[1][0] == '-' && argv[1][1]; argv++, argc--) {
		clips |= !strcmp(argv[1], "--clip");
		wants_second |= !strcmp(argv[1], "--second");
		wants_peak |= !strcmp(argv[1], "--peak");
		tolerance = clips ? 1e-12 : tolerance;
		if (!strcmp(argv[1], "--tolerance")) {
			tolerance = atof(argv[2]);
			argv++;
			argc--;
		}
		argv[1] = argv[0];
	}
	if (argc < 3)
		return 2;
	ok = open_run(&a, argv[1], argc - 1, argv + 1, false)
		&& open_run(&b, argv[1], argc - 1, argv + 1, true);
	if (ok && wants_peak)
		return printf("%lld\n", (long long)largest_peak(b.pipeline)) < 0;
	if (ok && wants_second && !count_second(b.pipeline))
		return 3;
	if (ok && strcmp(argv[1], "-"))
		ok = run_setup(&a);
	if (ok) {
		run_fill(&a);
		nstage = b.pipeline->nstage;
		p = stages_run_new(&b);
	}
	ok = ok && p;
	for (int step = 0; ok && step < STEPS; step++) {
		ok = run_step(&a, step) && stages_run_step(p, step);
		if (!ok)
			break;
		faults += compare_loss(a.loss, stages_run_loss(p), step);
		faults += compare_all(&a, p, nstage, &n);
	}
	if (ok)
		printf("%d stages, %d of two plans, %d micro-batches: loss "
		       "%.9g, %d compared, %d faults\n", nstage,
		       count_second(b.pipeline), b.pipeline->nmicro, a.loss, n,
		       faults);
	stages_run_free(p);
	pipeline_free(b.pipeline);
	run_close(&a);
	run_close(&b);
	return !ok || faults > 0;
}
