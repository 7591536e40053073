/* Linear and 0-1 programs by GLPK: silent, limited by work, never fatal.
 *
 * GLPK reports its own faults through a hook that must not return; the hook
 * jumps back here, the environment is thrown away and the answer is
 * ILP_FAILED.  Every call is guarded that way.
 */
#include "passes/ilp.h"

#include <glpk.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stddef.h>

struct Ilp {
	Arena *arena;
	glp_prob *prob;
	bool broken;
	const struct ilp_limit *limit;
	int64_t nodes;
	double bound;
	bool given;                     /* start point handed over */
	double *start;                  /* from 1, as GLPK counts */
	jmp_buf fault;
};

static void
on_fault(void *info)
{
	Ilp *p = info;

	p->broken = true;
	glp_free_env();
	longjmp(p->fault, 1);
}

/* GUARD(p) ... : false after a fault, now or earlier. */
#define GUARD(p) (!(p)->broken && setjmp((p)->fault) == 0)

static void
enter(Ilp *p)
{
	glp_term_out(GLP_OFF);
	glp_error_hook(on_fault, p);
}

static void
leave(void)
{
	glp_error_hook(NULL, NULL);
}

Ilp *
ilp_new(Arena *arena)
{
	Ilp *p = arena_alloc(arena, sizeof *p);

	p->arena = arena;
	if (GUARD(p)) {
		enter(p);
		p->prob = glp_create_prob();
		glp_set_obj_dir(p->prob, GLP_MIN);
		leave();
	}
	return p;
}

void
ilp_free(Ilp *p)
{
	if (GUARD(p)) {
		enter(p);
		glp_delete_prob(p->prob);
		leave();
		p->broken = true;
	}
}

void
ilp_end(void)
{
	glp_free_env();
}

static int
bound_type(double lower, double upper)
{
	bool l = isfinite(lower), u = isfinite(upper);

	return l && u ? (lower == upper ? GLP_FX : GLP_DB)
		: l ? GLP_LO : u ? GLP_UP : GLP_FR;
}

int
ilp_col(Ilp *p, double lower, double upper, double cost, bool integer)
{
	volatile int j = 1;

	if (GUARD(p)) {
		enter(p);
		j = glp_add_cols(p->prob, 1);
		glp_set_col_bnds(p->prob, j, bound_type(lower, upper), lower,
		                 upper);
		glp_set_obj_coef(p->prob, j, cost);
		if (integer)
			glp_set_col_kind(p->prob, j, GLP_IV);
		leave();
	}
	return j - 1;
}

void
ilp_row(Ilp *p, double lower, double upper, int n, const int *col,
        const double *coef)
{
	int *index = arena_array(p->arena, (size_t)n + 1, sizeof *index);
	double *value = arena_array(p->arena, (size_t)n + 1, sizeof *value);

	for (int i = 0; i < n; i++) {
		index[i + 1] = col[i] + 1;
		value[i + 1] = coef[i];
	}
	if (GUARD(p)) {
		enter(p);
		int i = glp_add_rows(p->prob, 1);

		glp_set_row_bnds(p->prob, i, bound_type(lower, upper), lower,
		                 upper);
		glp_set_mat_row(p->prob, i, n, index, value);
		leave();
	}
}

static int
clip(int64_t n)
{
	return n <= 0 || n > INT_MAX ? INT_MAX : (int)n;
}

static int
milliseconds(double sec)
{
	return sec <= 0 || sec > 2e6 ? INT_MAX : (int)(sec * 1000) + 1;
}

static int
simplex(Ilp *p, const struct ilp_limit *limit)
{
	glp_smcp c;

	glp_init_smcp(&c);
	c.msg_lev = GLP_MSG_OFF;
	c.meth = GLP_DUALP;
	c.it_lim = clip(limit->pivots);
	c.tm_lim = milliseconds(limit->sec);
	return glp_simplex(p->prob, &c);
}

static const struct ilp_answer failed = {
	ILP_FAILED, INFINITY, -INFINITY, NULL
};

static double *
columns(Ilp *p, Arena *arena, double (*value)(glp_prob *, int))
{
	int n = glp_get_num_cols(p->prob);
	double *x = arena_array(arena, (size_t)n + 1, sizeof *x);

	for (int j = 0; j < n; j++)
		x[j] = value(p->prob, j + 1);
	return x;
}

struct ilp_answer
ilp_relax(Ilp *p, const struct ilp_limit *limit, Arena *arena)
{
	struct ilp_answer a;
	int code, status;

	if (!GUARD(p))
		return failed;
	enter(p);
	a = failed;
	code = simplex(p, limit);
	status = glp_get_status(p->prob);
	if (status == GLP_OPT) {
		a.status = ILP_OPTIMAL;
		a.objective = a.bound = glp_get_obj_val(p->prob);
		a.x = columns(p, arena, glp_get_col_prim);
	} else if (status == GLP_NOFEAS) {
		a.status = ILP_INFEASIBLE;
		a.bound = INFINITY;
	} else if (code == GLP_EITLIM || code == GLP_ETMLIM) {
		a.status = ILP_NONE;
	}
	leave();
	return a;
}

static void
on_event(glp_tree *tree, void *info)
{
	Ilp *p = info;

	int best = glp_ios_best_node(tree);

	if (best)
		p->bound = glp_ios_node_bound(tree, best);
	switch (glp_ios_reason(tree)) {
	case GLP_IHEUR:
		if (p->start && !p->given)
			glp_ios_heur_sol(tree, p->start);
		p->given = true;
		break;
	case GLP_ISELECT:
		if (p->limit->nodes > 0 && ++p->nodes > p->limit->nodes)
			glp_ios_terminate(tree);
		else if (glp_mip_status(glp_ios_get_prob(tree)) == GLP_FEAS
		         && best && glp_mip_obj_val(glp_ios_get_prob(tree))
		         - p->bound <= p->limit->gap)
			glp_ios_terminate(tree);
		break;
	default:
		break;
	}
}

/* Branch and bound from an optimal basis; bound: that of the relaxation. */
static struct ilp_answer
branch(Ilp *p, const struct ilp_limit *limit, double bound, Arena *arena)
{
	struct ilp_answer a;
	glp_iocp c;
	int code, status;

	if (!GUARD(p))
		return failed;
	enter(p);
	glp_init_iocp(&c);
	c.msg_lev = GLP_MSG_OFF;
	c.br_tech = GLP_BR_MFV;
	c.bt_tech = limit->for_bound ? GLP_BT_BLB : GLP_BT_BPH;
	c.tm_lim = milliseconds(limit->sec);
	c.cb_func = on_event;
	c.cb_info = p;
	p->bound = bound;
	code = glp_intopt(p->prob, &c);
	status = glp_mip_status(p->prob);
	a = failed;
	a.bound = p->bound;
	if (status == GLP_OPT || status == GLP_FEAS) {
		a.status = code == 0 ? ILP_OPTIMAL : ILP_FEASIBLE;
		a.objective = glp_mip_obj_val(p->prob);
		if (code == 0)
			a.bound = a.objective;
		a.x = columns(p, arena, glp_mip_col_val);
	} else if (status == GLP_NOFEAS) {
		a.status = ILP_INFEASIBLE;
		a.bound = INFINITY;
	} else {
		a.status = ILP_NONE;
	}
	leave();
	return a;
}

struct ilp_answer
ilp_solve(Ilp *p, const struct ilp_limit *limit, Arena *arena)
{
	struct ilp_answer a = ilp_relax(p, limit, arena);
	int n;

	if (a.status != ILP_OPTIMAL)
		return a;
	n = glp_get_num_cols(p->prob);
	p->limit = limit;
	p->nodes = 0;
	p->given = false;
	p->start = NULL;
	if (limit->start) {
		p->start = arena_array(arena, (size_t)n + 1,
		                       sizeof *p->start);
		for (int j = 0; j < n; j++)
			p->start[j + 1] = limit->start[j];
	}
	return branch(p, limit, a.bound, arena);
}
