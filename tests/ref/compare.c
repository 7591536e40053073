/* Compare two forms of one model, say unsharded and sharded, in double
 * precision: is the loss, is every gradient and everything updated the same?
 *
 *     ref_compare [--states] DIR CKC-ARGUMENTS... -- MORE-ARGUMENTS...
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
 * it says.
 *
 * Rounding errors of what should be zero, such as the gradient of a key's
 * bias, are not measured by themselves: no tensor counts as smaller than that
 * difference, times 1000, of the largest of its kind, and no parameter as
 * smaller than what a step moves.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/ref/train.h"

enum kind { LOSS, NORM, GRADIENT, PARAMETER, STATE_1, STATE_2, OUTPUT, NKIND };

static const char *const kind_name[NKIND] = {
	"loss", "norm", "gradients", "parameters", "first states",
	"second states", "outputs",
};

struct whole {
	double *x;                      /* NULL: there is none */
	int64_t n;
};

struct entry {
	enum kind kind;
	const char *name;
	ValId a, b;
	struct whole x, y;              /* of a and b */
	double most;                    /* absolute value in x */
};

struct pair {
	struct run a, b;
	struct entry *e;
	int n, faults;
	bool states;                    /* look at those, too */
	double tolerance;
};

/* ---- what there is to compare ---- */

static bool
kind_of(const Graph *g, const Val *v, enum kind *k)
{
	static const char *const first[] = { "m", "row" };

	*k = OUTPUT;
	if (val_id(g, v) == g->loss)
		*k = LOSS;
	else if (v->kind == V_PARAM || v->kind == V_BUFFER)
		*k = PARAMETER;
	else if (v->kind == V_TEMP && v->def && v->param)
		*k = GRADIENT;
	else if (v->kind == V_TEMP && v->def
	         && g->node[v->def].op == OP_GRAD_NORM)
		*k = NORM;
	else if (v->kind == V_STATE)
		*k = strcmp(v->state, first[0]) && strcmp(v->state, first[1])
			? STATE_2 : STATE_1;
	else if (!v->output)
		return false;
	return v->kind != V_STATE || strcmp(v->state, "grad") != 0;
}

/* The same thing in another graph. */
static ValId
other_of(const Graph *g, enum kind kind, const char *name)
{
	FOR_VALS (v, g) {
		enum kind k;

		if (!kind_of(g, v, &k) || k != kind)
			continue;
		if (kind == LOSS || kind == NORM
		    || strcmp(kind == GRADIENT ? g->val[v->param].name
		              : v->name, name) == 0)
			return val_id(g, v);
	}
	return 0;
}

static void
complain(struct pair *p, const struct entry *e, const char *what)
{
	printf("%s of %s: %s\n", kind_name[e->kind], e->name, what);
	p->faults++;
}

static void
list_entries(struct pair *p)
{
	const Graph *g = p->a.g;
	int nb = 0;

	p->e = arena_array(p->a.arena, g->nval, sizeof *p->e);
	FOR_VALS (v, g) {
		struct entry *e = &p->e[p->n];

		if (!kind_of(g, v, &e->kind))
			continue;
		e->name = e->kind == GRADIENT ? g->val[v->param].name
		                              : v->name;
		e->a = val_id(g, v);
		e->b = other_of(p->b.g, e->kind, e->name);
		if (e->b)
			p->n++;
		else
			complain(p, e, "not in the second form");
	}
	FOR_VALS (v, p->b.g) {
		enum kind k;

		nb += kind_of(p->b.g, v, &k);
	}
	if (nb != p->n) {
		printf("%d against %d things to compare\n", p->n, nb);
		p->faults++;
	}
}

/* ---- contents ---- */

static struct whole
contents(struct run *r, ValId v)
{
	if (r->g->val[v].split.kind == SPLIT_P) {
		printf("%s is not the same on all ranks: a summand\n",
		       r->g->val[v].name);
		return (struct whole){ NULL, 0 };
	}
	return (struct whole){ run_get(r, v), run_elements(r, v) };
}

static void
read_entries(struct pair *p)
{
	for (struct entry *e = p->e; e < p->e + p->n; e++) {
		e->x = contents(&p->a, e->a);
		e->y = contents(&p->b, e->b);
		e->most = 0;
		for (int64_t i = 0; e->x.x && i < e->x.n; i++)
			if (!(fabs(e->x.x[i]) <= e->most))
				e->most = fabs(e->x.x[i]);
	}
}

/* ---- comparison ---- */

/* What differences are relative to. */
static double
scale_of(const struct pair *p, const struct entry *e)
{
	double most = 0;

	for (const struct entry *o = p->e; o < p->e + p->n; o++)
		if (o->kind == e->kind)
			most = fmax(most, o->most);
	most = fmax(e->most, 1e3 * p->tolerance * most);
	if (e->kind == PARAMETER)
		most = fmax(most, p->a.env.lr);
	return most > 0 ? most : 1;
}

static double
difference(const struct pair *p, const struct entry *e)
{
	double scale = scale_of(p, e), worst = 0;

	for (int64_t i = 0; i < e->x.n; i++) {
		double x = e->x.x[i], y = e->y.x[i];

		if (x == y || (isnan(x) && isnan(y)))
			continue;
		if (!(fabs(x - y) <= worst * scale))
			worst = fabs(x - y) / scale;
		if (isnan(worst))
			return INFINITY;
	}
	return worst;
}

static void
compare(struct pair *p, int step)
{
	double worst[NKIND] = { 0 };

	read_entries(p);
	for (struct entry *e = p->e; e < p->e + p->n; e++) {
		double d;
		char text[64];

		if (!e->x.x || !e->y.x || e->x.n != e->y.n) {
			complain(p, e, "contents or extents are missing");
			continue;
		}
		d = difference(p, e);
		worst[e->kind] = fmax(worst[e->kind], d);
		snprintf(text, sizeof text, "step %d: differs by %.3g", step,
		         d);
		if (d > p->tolerance)
			complain(p, e, text);
	}
	printf("step %d:", step);
	for (int k = 0; k < NKIND; k++)
		printf(" %s %.2g", kind_name[k], worst[k]);
	printf("\n");
}

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
	if (!p->states || spmd_check(p->b.s, 1, p->b.g->nnode))
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

	p.states = argc > 1 && strcmp(argv[1], "--states") == 0;
	if (p.states) {
		argv[1] = argv[0];
		argv++;
		argc--;
	}
	more = find_more(argc, argv);
	if (more < 3 || more >= argc - 1) {
		fputs("usage: ref_compare [--states] DIR CKC-ARGUMENTS... -- "
		      "MORE-ARGUMENTS...\n", stderr);
		return 2;
	}
	ok = open_both(&p, argc, argv, more);
	p.tolerance = p.a.env.round || p.b.env.round ? 1e-5 : 1e-9;
	if (ok)
		list_entries(&p);
	for (int s = 0; ok && s < p.a.steps; s++) {
		ok = run_step(&p.a, s) && run_step(&p.b, s);
		if (!ok)
			break;
		compare(&p, s);
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
