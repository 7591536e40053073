/* Models on several ranks against themselves on one: loss, gradients, updates
 * and the clipping norm of every layout that the pass chooses.
 *
 *     shard_models DIR "T ..." MODEL-AND-FLAGS...
 *
 * Each argument is a command line of ckc; DIR has the file `setup`, see
 * train.h.  Each model is run on each number of ranks, with and without --sp,
 * after pass `optim` in double precision and after pass `place` in the bytes
 * that were planned, where numbers are rounded as their types are.
 */
#include <stdio.h>
#include <string.h>

#include "tests/ref/pair.h"

enum { PAIRS = 32 };

struct stage {
	const char *name, *passes;      /* of a graph after `precision` */
	double tolerance;
};

#define OPTIM "shard,autodiff,optim"
static const struct stage stage[] = {
	{ "optim", OPTIM, 1e-9 },
	{ "place", OPTIM ",fuse,settle,layout,plan,inplace,place", 1e-3 },
};

static bool
open_run(struct run *r, const char *dir, const char *line, const char *more)
{
	char all[1024];

	snprintf(all, sizeof all, "%s%s", line, more);
	r->dir = dir;
	if (run_parse_line(r, all) != CLI_GO || !run_compile(r))
		return false;
	/* at 1e-8 Adam would show rounding errors in its first step */
	r->env.eps = 1e-4;
	if (!run_setup(r))
		return false;
	run_fill(r);
	return true;
}

/* Flags up to that stage. */
static void
stage_flags(char *to, size_t size, const struct stage *s, const char *line)
{
	bool text = strstr(line, ".ck");

	snprintf(to, size, " --stop-after=%s%s%s", s->name,
	         text ? " --passes=" : "", text ? s->passes : "");
}

static int
add_pair(struct pair *p, const struct run *a, const struct stage *s,
         const char *dir, const char *line, const char *flags)
{
	char until[128], more[256];

	*p = (struct pair){ .a = *a, .tolerance = s->tolerance,
		.quiet = true };
	stage_flags(until, sizeof until, s, line);
	snprintf(more, sizeof more, "%s%s", flags, until);
	if (!open_run(&p->b, dir, line, more)) {
		printf("FAIL %s%s\n", line, more);
		return 1;
	}
	pair_list(p);
	return 0;
}

static int
run_stage(const struct stage *s, const char *dir, const char *line,
          const char *ranks)
{
	static struct pair pair[PAIRS];
	struct run a = { .steps = 0 };
	char more[128], flags[64];
	int n = 0, faults = 0, t, used;
	bool ok;

	stage_flags(more, sizeof more, s, line);
	ok = open_run(&a, dir, line, more);
	for (; ok && sscanf(ranks, "%d%n", &t, &used) == 1; ranks += used)
		for (int sp = 0; sp < 2; sp++) {
			snprintf(flags, sizeof flags, " --tp=%d%s", t,
			         sp ? " --sp" : "");
			faults += add_pair(&pair[n++], &a, s, dir, line,
			                   flags);
		}
	for (int step = 0; ok && !faults && step < a.steps; step++) {
		ok = run_step(&a, step);
		for (int i = 0; ok && i < n; i++) {
			pair[i].a = a;
			ok = run_step(&pair[i].b, step);
			pair_compare(&pair[i], step);
		}
	}
	for (int i = 0; i < n; i++) {
		struct pair *p = &pair[i];

		printf("%s %s: %d compared, %lld ranks%s, worst %.2g\n", line,
		       s->name, p->n, (long long)p->b.cli.opt.tp,
		       p->b.cli.opt.sp ? " with rows" : "", p->worst);
		faults += p->faults;
		run_close(&p->b);
	}
	run_close(&a);
	return faults + !ok;
}

int
main(int argc, char **argv)
{
	int faults = 0;

	if (argc < 4) {
		fputs("usage: shard_models DIR \"T ...\" MODEL-AND-FLAGS...\n",
		      stderr);
		return 2;
	}
	for (int i = 3; i < argc; i++)
		for (size_t s = 0; s < sizeof stage / sizeof *stage; s++)
			faults += run_stage(&stage[s], argv[1], argv[i],
			                    argv[2]);
	printf("%d faults\n", faults);
	return faults > 0;
}
