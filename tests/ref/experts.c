/* Experts that replicas share, in double precision, beside one rank with the
 * samples of all replicas.
 *
 *     ref_experts WHOLE.ck PART.ck --stop-after=PASS CKC-ARGUMENTS...
 *
 * WHOLE has the batch of a step, PART that of one of the replicas that the
 * arguments declare.  Random inputs and parameters; the loss, every gradient
 * and every updated parameter on all ranks of all replicas must be those of
 * WHOLE to 1e-12 of the largest of its kind.  In planned memory behind pass
 * place, by 1e-4.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/ref/interp_int.h"
#include "tests/ref/train.h"

enum { ARGS = 64 };

struct part {
	struct run whole, run;
	int replicas, ranks;
	struct interp **it;             /* by replica, then rank */
	double tolerance, worst;
	int n, faults;
};

static bool
open_form(struct run *r, char *const *first, int nfirst, char *const *more,
          int nmore)
{
	char *args[ARGS];

	if (nfirst + nmore > ARGS)
		return false;
	memcpy(args, first, (size_t)nfirst * sizeof *args);
	memcpy(args + nfirst, more, (size_t)nmore * sizeof *args);
	r->dir = "-";
	r->steps = 1;
	return run_open(r, nfirst + nmore, args) == 0;
}

/* Where this rank's element i is in the whole; -1: padding. */
static int64_t
whole_index(struct interp *it, const Val *v, int64_t i)
{
	const struct replica_shard *s = v->shard;

	if (!s)
		return interp_whole(it, &v->placement, &v->shape, i);
	i += interp_shard(it, s->rows) * val_nelem(v);
	return i < shape_nelem(&s->shape)
		? interp_whole(it, &s->placement, &s->shape, i) : -1;
}

/* Samples of a replica lie side by side. */
static void
give(struct part *p, ValId v)
{
	const Val *to = &p->run.g->val[v];
	ValId from = val_find(p->whole.g, to->name);
	const double *x = from ? run_get(&p->whole, from) : NULL;
	int64_t n = val_nelem(to);
	double *y = calloc((size_t)n + 1, sizeof *y);

	for (int k = 0; x && y && k < p->replicas * p->ranks; k++) {
		int64_t context = p->run.g->context ? p->run.g->context : 1;
		int64_t first = to->batch ? k / p->ranks / context * n : 0;

		for (int64_t i = 0; i < n; i++) {
			int64_t at = whole_index(p->it[k], to, i);

			y[i] = at < 0 ? 0 : x[first + at];
		}
		interp_set(p->it[k], v, y);
	}
	free(y);
}

static void
compare(struct part *p, ValId a, ValId b, const char *what)
{
	const Val *v = &p->run.g->val[b];
	const double *x = run_get(&p->whole, a);
	double most = p->tolerance > 1e-12 ? 0.1 : 1e-2, worst = 0;

	for (int64_t i = 0; i < run_elements(&p->whole, a); i++)
		most = fmax(most, fabs(x[i]));
	for (int k = 0; k < p->replicas * p->ranks; k++) {
		const double *y = interp_get(p->it[k], b);

		for (int64_t i = 0; i < val_nelem(v); i++) {
			int64_t at = whole_index(p->it[k], v, i);

			if (at >= 0 && !same_number(y[i], x[at])
			    && !(fabs(y[i] - x[at]) <= worst))
				worst = fabs(y[i] - x[at]);
		}
	}
	p->n++;
	p->worst = fmax(p->worst, worst / most);
	if (worst / most <= p->tolerance)
		return;
	printf("%s of %s: differs by %.3g\n", what, v->name, worst / most);
	p->faults++;
}

static ValId
gradient_of(const Graph *g, const char *param)
{
	FOR_VALS (v, g)
		if (v->kind == V_TEMP && v->def && v->param
		    && strcmp(g->val[v->param].name, param) == 0)
			return val_id(g, v);
	return 0;
}

/* What the step has made of a parameter. */
static ValId
updated(const Graph *g, const char *param)
{
	FOR_NODES (n, g)
		if (op_info[n->op].flags & F_UPDATE
		    && strcmp(g->val[n->in[0]].name, param) == 0)
			return n->out[0];
	return 0;
}

static void
compare_all(struct part *p)
{
	const Graph *g = p->run.g, *of = p->whole.g;

	compare(p, of->loss, g->loss, "loss");
	FOR_VALS (v, of) {
		ValId a = gradient_of(of, v->name), b = gradient_of(g, v->name);

		if (v->kind != V_PARAM)
			continue;
		if (!a || !b) {
			printf("gradient of %s: missing\n", v->name);
			p->faults++;
			continue;
		}
		compare(p, a, b, "gradient");
		a = updated(of, v->name);
		b = updated(g, v->name);
		if (a && b)
			compare(p, a, b, "update");
	}
}

static bool
run_all(struct part *p)
{
	for (NodeId i = 1; i < p->run.g->nnode; i++)
		for (int k = 0; k < p->replicas * p->ranks; k++)
			if (!interp_run(p->it[k], i, i + 1)) {
				printf("replica %d: %s\n", k / p->ranks,
				       interp_error(p->it[k]));
				return false;
			}
	return true;
}

static bool
open_replicas(struct part *p)
{
	const Graph *g = p->run.g;
	bool ok = true, placed = (g->props & P_PLACED) != 0;

	p->replicas = (int)g->replicas;
	p->ranks = g->ranks > 0 ? (int)g->ranks : 1;
	p->tolerance = placed ? 1e-4 : 1e-12;
	p->it = calloc((size_t)(p->replicas * p->ranks) + 1, sizeof *p->it);
	if (!p->it || p->replicas < 1)
		return false;
	for (int k = 0; k < p->replicas * p->ranks; k++)
		p->it[k] = interp_new(g);
	interp_world(p->it, p->replicas, p->ranks);
	for (int k = 0; k < p->replicas * p->ranks; k++) {
		interp_env(p->it[k])->replicas = p->replicas;
		ok &= !placed || interp_place(p->it[k]);
	}
	return ok;
}

int
main(int argc, char **argv)
{
	struct part p = { .n = 0 };
	char *first[] = { argv[0], NULL, "--stop-after=optim" };
	char *both[] = { NULL, NULL };  /* of both */
	int nboth = 0;
	bool ok;

	for (int i = 3; i < argc; i++)
		if (nboth < 2 && (!strncmp(argv[i], "--optimizer=", 12)
		                  || !strncmp(argv[i], "--attention=", 12)))
			both[nboth++] = argv[i];
	if (argc < 5) {
		fputs("usage: ref_experts WHOLE.ck PART.ck --stop-after=PASS "
		      "CKC-ARGUMENTS...\n", stderr);
		return 2;
	}
	first[1] = argv[1];
	ok = open_form(&p.whole, first, 3, both, nboth);
	first[1] = argv[2];
	ok = ok && open_form(&p.run, first, 2, argv + 3, argc - 3)
		&& open_replicas(&p);
	if (ok) {
		run_fill(&p.whole);
		FOR_VALS (v, p.run.g)
			if (v->kind == V_INPUT || v->kind == V_PARAM)
				give(&p, val_id(p.run.g, v));
		ok = run_step(&p.whole, 0) && run_all(&p);
	}
	if (ok)
		compare_all(&p);
	printf("%d compared, %d replicas of %d ranks, %.2g, %d faults\n", p.n,
	       p.replicas, p.ranks, p.worst, p.faults);
	for (int k = 0; p.it && k < p.replicas * p.ranks; k++)
		interp_free(p.it[k]);
	free(p.it);
	run_close(&p.whole);
	run_close(&p.run);
	return !ok || p.n < 2 || p.faults > 0;
}
