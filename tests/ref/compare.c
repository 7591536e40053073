/* Compare two forms of one model, say unsharded and sharded, in double
 * precision: is the loss, is every gradient and everything updated the same?
 *
 *     ref_compare [--states] [--loss-rows N] DIR CKC-ARGUMENTS... -- MORE-ARGUMENTS...
 *
 * The second form has the first one's arguments and the further ones, unless
 * those begin with a model of their own.  DIR/setup as in train.h, for both;
 * DIR is "-" if there is none.  What has no contents is random.  After each
 * step (default: 2) everything is compared by name, gradients by the name of
 * their parameter, as the largest difference relative to the largest absolute
 * value; a difference above 1e-9 (1e-5 after pass place, when results are
 * rounded to their types) or a fault ends the program with status 1.  The first
 * value is then named that both forms have and that differs, which is where to
 * look.  With --states every value of the second form has to lie on ranks as
 * it says; --loss-rows N has the classifier take N rows at a time.
 *
 * Rounding errors of what should be zero, such as the gradient of a key's
 * bias, are not measured by themselves: no tensor counts as smaller than that
 * difference, times 1000, of the largest of its kind, and no parameter as
 * smaller than what a step moves.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/pair.h"

/* What the command line asks for beside. */
static bool states;

/* ---- where it began ---- */

/* Names that nobody gave are not the same in both. */
static bool
is_named(const char *name)
{
	return name[0] != 't' || name[1 + strspn(name + 1, "0123456789.")];
}

/* Element by element, whatever the shape; 0 if they have not as many. */
static double
values_differ(struct pair *p, ValId a, ValId b)
{
	double *x, *y, most = 0, worst = 0;
	int64_t n = run_elements(&p->a, a);

	if (n != run_elements(&p->b, b))
		return 0;
	x = run_get(&p->a, a);
	y = run_get(&p->b, b);
	if (x == NULL || y == NULL)
		return INFINITY;
	for (int64_t i = 0; i < n; i++) {
		most = fmax(most, fabs(x[i]));
		if (x[i] != y[i] && !(isnan(x[i]) && isnan(y[i])))
			worst = fmax(worst, isnan(x[i] - y[i])
			             ? INFINITY : fabs(x[i] - y[i]));
	}
	return most > 0 ? worst / most : worst;
}

static void
locate(struct pair *p)
{
	FOR_NODES (n, p->b.g)
		for (int k = 0; k < n->nout; k++) {
			const char *name = p->b.g->val[n->out[k]].name;
			ValId a = n->out[k] && is_named(name)
				? val_find(p->a.g, name) : 0;
			double d = a && p->a.g->val[a].def
				? values_differ(p, a, n->out[k]) : 0;

			if (d <= p->tolerance)
				continue;
			printf("first: %s, node %u (%s) of the second form, "
			       "differs by %.3g\n", name,
			       (unsigned)node_id(p->b.g, n),
			       op_info[n->op].text, d);
			return;
		}
}

static void
check_states(struct pair *p)
{
	if (!states || spmd_check(p->b.s, 1, p->b.g->nnode))
		return;
	printf("%s\n", spmd_error(p->b.s));
	p->faults++;
}

/* ---- the program ---- */

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
	int more;
	bool ok;

	for (; argc > 2 && argv[1][0] == '-' && argv[1][1]; argv++, argc--) {
		states |= strcmp(argv[1], "--states") == 0;
		if (strcmp(argv[1], "--loss-rows") == 0) {
			run_loss_rows(atoi(argv[2]));
			argv++;
			argc--;
		}
		argv[1] = argv[0];
	}
	more = find_more(argc, argv);
	if (more < 3 || more >= argc - 1) {
		fputs("usage: ref_compare [--states] [--loss-rows N] DIR "
		      "CKC-ARGUMENTS... -- MORE-ARGUMENTS...\n", stderr);
		return 2;
	}
	ok = open_both(&p, argc, argv, more);
	p.tolerance = p.a.env.round || p.b.env.round ? 1e-5 : 1e-9;
	if (ok)
		pair_list(&p);
	for (int s = 0; ok && s < p.a.steps; s++) {
		ok = run_step(&p.a, s) && run_step(&p.b, s);
		if (!ok)
			break;
		pair_compare(&p, s);
		check_states(&p);
		if (s == 0 && p.faults)
			locate(&p);
	}
	if (ok)
		printf("%d compared, %d ranks, %d faults\n", p.n,
		       spmd_ranks(p.b.s), p.faults);
	run_close(&p.a);
	run_close(&p.b);
	return !ok || p.faults > 0;
}
