/* Compare two forms of one model, see pair.h.
 *
 *     ref_compare DIR CKC-ARGUMENTS... -- MORE-ARGUMENTS...
 *
 * The second form has the first one's arguments and the further ones, unless
 * those begin with a model of their own.  DIR/setup as in train.h, for both;
 * DIR is "-" if there is none.  What has no contents is random.  After each
 * step (default: 2) everything is compared; a fault ends the program with
 * status 1.
 */
#include <stdio.h>
#include <string.h>

#include "tests/ref/pair.h"

/* "--" and what comes after it; argc if there is none. */
static int
find_more(int argc, char **argv)
{
	int i = 2;

	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}

static bool
open_one(struct run *r, const char *dir, int argc, char **argv)
{
	int status;

	r->dir = dir;
	r->steps = 2;
	status = run_open(r, argc, argv);
	if (status)
		return false;
	/* at 1e-8 Adam would show rounding errors in its first step */
	r->env.eps = 1e-4;
	if (strcmp(dir, "-") != 0 && !run_setup(r))
		return false;
	run_fill(r);
	return true;
}

/* The first form's arguments end at `more`, "--". */
static bool
open_both(struct pair *p, int argc, char **argv, int more)
{
	int n = argc - more - 1, first = more - 1;
	int shared = argv[more + 1][0] == '-' ? first : 1;
	char *args[256];

	if (shared + n >= 256)
		return false;
	args[0] = argv[0];
	memcpy(args + 1, argv + 2, (size_t)first * sizeof *args);
	memcpy(args + shared, argv + more + 1, (size_t)n * sizeof *args);
	if (!open_one(&p->b, argv[1], shared + n, args))
		return false;
	memcpy(args + 1, argv + 2, (size_t)first * sizeof *args);
	return open_one(&p->a, argv[1], first, args);
}

int
main(int argc, char **argv)
{
	struct pair p = { .n = 0 };
	int more = find_more(argc, argv);
	bool ok;

	if (more < 3 || more >= argc - 1) {
		fputs("usage: ref_compare DIR CKC-ARGUMENTS... -- "
		      "MORE-ARGUMENTS...\n", stderr);
		return 2;
	}
	ok = open_both(&p, argc, argv, more);
	if (ok)
		pair_list(&p);
	for (int s = 0; ok && s < p.a.steps; s++) {
		ok = run_step(&p.a, s) && run_step(&p.b, s);
		if (ok)
			pair_compare(&p, s);
	}
	if (ok)
		printf("%d compared, %d ranks, %d faults\n", p.n,
		       spmd_ranks(p.b.s), p.faults);
	run_close(&p.a);
	run_close(&p.b);
	return !ok || p.faults > 0;
}
