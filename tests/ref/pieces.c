/* Which elements of a whole value each rank holds, and what each collective
 * gives, in numbers that were written down by hand.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/text/text.h"
#include "tests/ref/spmd.h"

static int nfault;

struct piece_case {
	const char *what, *ranks, *type, *split;
	int n;                          /* elements of a rank's */
	double want[4][8];              /* by rank */
};

/* The whole holds 1, 2, 3, ... in row-major order. */
static const struct piece_case pieces[] = {
	{ "columns", "2", "[2,2]", "1 [4]", 4,
	  { { 1, 2, 5, 6 }, { 3, 4, 7, 8 } } },
	{ "rows", "2", "[1,3]", "0 [2]", 3, { { 1, 2, 3 }, { 4, 5, 6 } } },
	{ "rows, padded", "3", "[2,2]", "0 [5]", 4,
	  { { 1, 2, 3, 4 }, { 5, 6, 7, 8 }, { 9, 10, 0, 0 } } },
	{ "nothing left for the last", "4", "[2]", "0 [5]", 2,
	  { { 1, 2 }, { 3, 4 }, { 5, 0 }, { 0, 0 } } },
	{ "rows of two dims", "4", "[1,2,1]", "1 [6] from 0", 2,
	  { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 0, 0 } } },
	{ "the two last of three dims", "2", "[2,1,2]", "2 [4] from 1", 4,
	  { { 1, 2, 5, 6 }, { 3, 4, 7, 8 } } },
	{ "stretches", "2", "[4]", "0 [2,4,2]", 4,
	  { { 1, 3, 4, 7 }, { 2, 5, 6, 8 } } },
	{ "stretches of columns", "2", "[2,2]", "1 [2,2]", 4,
	  { { 1, 3, 5, 7 }, { 2, 4, 6, 8 } } },
	{ "a piece for two", "4", "[2]", "0 [4] shared 2", 2,
	  { { 1, 2 }, { 1, 2 }, { 3, 4 }, { 3, 4 } } },
	{ "whole", "2", "[3]", "r", 3, { { 1, 2, 3 }, { 1, 2, 3 } } },
};

/* x of each rank -> y of each rank. */
struct comm_case {
	const char *what, *ranks, *x, *op;
	int ny;
	double in[4][8], out[4][8];
};

static const struct comm_case comms[] = {
	{ "sum", "3", "[2]", "all_reduce %x", 2,
	  { { 1, 2 }, { 10, 20 }, { 100, 200 } },
	  { { 111, 222 }, { 111, 222 }, { 111, 222 } } },
	{ "largest", "2", "[2]", "all_reduce %x {reduction=1}", 2,
	  { { 1, -2 }, { 0, -1 } }, { { 1, -1 }, { 1, -1 } } },
	{ "gather", "2", "[2,1]", "all_gather %x {axis=1, lead=1, part=[2]}",
	  4, { { 1, 3 }, { 2, 4 } }, { { 1, 2, 3, 4 }, { 1, 2, 3, 4 } } },
	{ "gather without padding", "2", "[2]",
	  "all_gather %x {axis=0, part=[3]}", 3,
	  { { 1, 2 }, { 3, 9 } }, { { 1, 2, 3 }, { 1, 2, 3 } } },
	{ "scatter of a sum", "2", "[3]",
	  "reduce_scatter %x {axis=0, part=[3]}", 2,
	  { { 1, 2, 3 }, { 10, 20, 30 } }, { { 11, 22 }, { 33, 0 } } },
	{ "exchange", "2", "[1,4]", "all_to_all %x {axis=0, part=[2], "
	  "to_axis=1, to_lead=1, to_part=[2,2]}", 4,
	  { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } },
	  { { 1, 3, 5, 7 }, { 2, 4, 6, 8 } } },
	{ "own", "4", "[4]", "own %x {axis=0, shared=2, part=[2,2]}", 2,
	  { { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, { 1, 2, 3, 4 }, { 1, 2, 3, 4 } },
	  { { 1, 3 }, { 1, 3 }, { 2, 4 }, { 2, 4 } } },
	{ "own's gradient", "4", "[1]",
	  "own_grad %x {axis=0, shared=2, part=[2]}", 2,
	  { { 1 }, { 2 }, { 3 }, { 4 } },
	  { { 1, 0 }, { 2, 0 }, { 0, 3 }, { 0, 4 } } },
	{ "replicate", "2", "[1]", "replicate %x", 1,
	  { { 5 }, { 5 } }, { { 5 }, { 5 } } },
	{ "a table's piece", "2", "[2]", "gather %x, %i {part=3}", 4,
	  { { 5, 6 }, { 7, 0 } }, { { 5, 0, 6, 0 }, { 0, 7, 0, 7 } } },
	{ "a table's gradient", "2", "[4]",
	  "scatter_add %i, %x {shape=[2], part=3}", 2,
	  { { 1, 2, 3, 4 }, { 10, 20, 30, 40 } }, { { 1, 3 }, { 60, 0 } } },
	{ "what a rank knows of its classes", "2", "[1,2]",
	  "vocab_stats %x, %l {part=3}", 3,
	  { { 5, 5 }, { 7, 99 } }, { { 5, 2, 0 }, { 7, 1, 7 } } },
	{ "squares", "2", "[2]", "sum_squares %x, %x", 1,
	  { { 1, 2 }, { 3, 0 } }, { { 10 }, { 18 } } },
	{ "norm", "2", "[1]", "grad_norm %x, %four {sums=1}", 1,
	  { { 3 }, { 3 } }, { { 3.605551275463989 }, { 3.605551275463989 } } },
};

static void
fault(const char *what, int rank, const char *why)
{
	printf("FAIL %s, rank %d: %s\n", what, rank, why);
	nfault++;
}

static void
expect(struct spmd *s, const char *what, int rank, ValId v, const double *want,
       int n)
{
	const double *x = interp_get(spmd_rank(s, rank), v);
	char text[96];

	for (int i = 0; i < n; i++) {
		if (x != NULL && fabs(x[i] - want[i]) < 1e-12)
			continue;
		snprintf(text, sizeof text, "element %d is %g, expected %g",
		         i, x ? x[i] : NAN, want[i]);
		fault(what, rank, text);
		return;
	}
}

static Graph *
parse(const char *what, const char *text)
{
	Diag *d = diag_new(what, stdout);
	Graph *g = text_parse(what, text, strlen(text), d);

	diag_free(d);
	if (g == NULL)
		exit(1);
	return g;
}

/* In, as pieces, and out again. */
static void
check_piece(const struct piece_case *c)
{
	char text[512];
	double whole[32], back[32] = { 0 };
	struct spmd *s;
	Shape shape;
	size_t n;
	Graph *g;
	ValId v;

	snprintf(text, sizeof text, "graph @f {\n\tranks %s\n"
	         "\tinput %%x: f32%s split %s\n\t%%y = neg %%x\n}\n", c->ranks,
	         c->type, c->split);
	g = parse(c->what, text);
	s = spmd_new(g);
	v = val_find(g, "x");
	shape = spmd_shape(&g->val[v].placement, &g->val[v].shape);
	n = (size_t)shape_nelem(&shape);
	for (int i = 0; i < 32; i++)
		whole[i] = i + 1;
	spmd_set(s, v, whole);
	for (int r = 0; r < spmd_ranks(s); r++)
		expect(s, c->what, r, v, c->want[r], c->n);
	if (!spmd_get(s, v, back) || memcmp(back, whole, n * sizeof *back) != 0)
		fault(c->what, 0, "joined again it is something else");
	interp_set(spmd_rank(s, 1), v, whole + 1);
	if (c->want[0][0] == c->want[1][0] && spmd_get(s, v, back))
		fault(c->what, 1, "that it differs is not found");
	spmd_free(s);
	graph_free(g);
}

static void
check_comm(const struct comm_case *c)
{
	char text[1024];
	struct spmd *s;
	Graph *g;

	snprintf(text, sizeof text, "graph @f {\n\tranks %s\n"
	         "\tinput %%x: f32%s\n\tconst %%i: i64[4] = {0, 2, 1, -1}\n"
	         "\tconst %%l: i64[1] = {2}\n\tconst %%four: f32[] = {4}\n"
	         "\t%%y = %s\n}\n", c->ranks, c->x, c->op);
	g = parse(c->what, text);
	s = spmd_new(g);
	for (int r = 0; r < spmd_ranks(s); r++)
		interp_set(spmd_rank(s, r), val_find(g, "x"), c->in[r]);
	if (!spmd_run_all(s))
		fault(c->what, 0, spmd_error(s));
	for (int r = 0; r < spmd_ranks(s); r++)
		expect(s, c->what, r, val_find(g, "y"), c->out[r], c->ny);
	spmd_free(s);
	graph_free(g);
}

int
main(void)
{
	for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
		check_piece(&pieces[i]);
	for (size_t i = 0; i < sizeof comms / sizeof *comms; i++)
		check_comm(&comms[i]);
	printf("%d faults\n", nfault);
	return nfault > 0;
}
