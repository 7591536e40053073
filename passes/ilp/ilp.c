/* Linear and 0-1 programs by GLPK: silent, limited by work, never fatal.
 *
 * GLPK reports its own faults through a hook that must not return; the hook
 * jumps back here, the environment is thrown away and the answer is
 * ILP_FAILED.  Every call is guarded that way.  An interrupt ends a solution
 * like a fault; the time that is left is GLPK's limit.
 */
#include "passes/ilp/ilp.h"

#include <glpk.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stddef.h>

/* Milliseconds between two looks at whether somebody interrupts. */
enum { TEXT_EVERY = 50 };

struct Ilp {
	Arena *arena;
	glp_prob *prob;
	bool broken;
	const struct ilp_limit *limit;  /* while solving; else NULL */
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

/* Every now and then GLPK has something to say, which is the only time that
 * the simplex method lets anyone in.  Nothing it says is shown. */
static int
on_text(void *info, const char *text)
{
	Ilp *p = info;

	(void)text;
	if (p->limit && watch_off(p->limit->watch))
		on_fault(p);
	return 1;
}

typedef void ilp_call(Ilp *, void *);

/* Make calls to GLPK; false after a fault, now or earlier. */
static bool
call_glpk(Ilp *p, ilp_call *call, void *arg)
{
	if (p->broken)
		return false;
	if (setjmp(p->fault) != 0)
		return false;
	glp_term_hook(on_text, p);
	glp_error_hook(on_fault, p);
	call(p, arg);
	glp_error_hook(NULL, NULL);
	glp_term_hook(NULL, NULL);
	return true;
}

static void
create(Ilp *p, void *none)
{
	(void)none;
	p->prob = glp_create_prob();
	glp_set_obj_dir(p->prob, GLP_MIN);
}

Ilp *
ilp_new(Arena *arena)
{
	Ilp *p = arena_alloc(arena, sizeof *p);

	p->arena = arena;
	call_glpk(p, create, NULL);
	return p;
}

static void
delete(Ilp *p, void *none)
{
	(void)none;
	glp_delete_prob(p->prob);
}

void
ilp_free(Ilp *p)
{
	call_glpk(p, delete, NULL);
	p->broken = true;
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

struct column_args {
	double lower, upper, cost;
	bool integer;
	int number;                     /* as GLPK counts, from 1 */
};

static void
add_column(Ilp *p, void *arg)
{
	struct column_args *c = arg;
	int j = c->number = glp_add_cols(p->prob, 1);

	glp_set_col_bnds(p->prob, j, bound_type(c->lower, c->upper), c->lower,
	                 c->upper);
	glp_set_obj_coef(p->prob, j, c->cost);
	if (c->integer)
		glp_set_col_kind(p->prob, j, GLP_IV);
}

int
ilp_col(Ilp *p, double lower, double upper, double cost, bool integer)
{
	struct column_args c = { lower, upper, cost, integer, 1 };

	call_glpk(p, add_column, &c);
	return c.number - 1;
}

struct row_args {
	double lower, upper;
	int n, *index;                  /* from 1, as GLPK counts */
	double *value;
};

static void
add_glpk_row(Ilp *p, void *arg)
{
	const struct row_args *r = arg;
	int i = glp_add_rows(p->prob, 1);

	glp_set_row_bnds(p->prob, i, bound_type(r->lower, r->upper), r->lower,
	                 r->upper);
	glp_set_mat_row(p->prob, i, r->n, r->index, r->value);
}

void
ilp_row(Ilp *p, double lower, double upper, int n, const int *col,
        const double *coef)
{
	struct row_args r = { .lower = lower, .upper = upper, .n = n };

	r.index = arena_array(p->arena, (size_t)n + 1, sizeof *r.index);
	r.value = arena_array(p->arena, (size_t)n + 1, sizeof *r.value);
	for (int i = 0; i < n; i++) {
		r.index[i + 1] = col[i] + 1;
		r.value[i + 1] = coef[i];
	}
	call_glpk(p, add_glpk_row, &r);
}

static int
clip(int64_t n)
{
	return n <= 0 || n > INT_MAX ? INT_MAX : (int)n;
}

static int
milliseconds(const struct ilp_limit *limit)
{
	double sec = watch_left(limit->watch);

	return sec > 2e6 ? INT_MAX : (int)(sec * 1000) + 1;
}

static int
simplex(Ilp *p, const struct ilp_limit *limit)
{
	glp_smcp c;

	glp_init_smcp(&c);
	c.msg_lev = GLP_MSG_ON;
	c.out_frq = TEXT_EVERY;
	c.meth = GLP_DUALP;
	c.it_lim = clip(limit->pivots);
	c.tm_lim = milliseconds(limit);
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

/* A solution under way. */
struct solving {
	const struct ilp_limit *limit;
	Arena *arena;                   /* of the answer */
	struct ilp_answer a;
};

static void
solve_relaxed(Ilp *p, void *arg)
{
	struct solving *s = arg;
	int code = simplex(p, s->limit);
	int status = glp_get_status(p->prob);

	if (status == GLP_OPT) {
		s->a.status = ILP_OPTIMAL;
		s->a.objective = s->a.bound = glp_get_obj_val(p->prob);
		s->a.x = columns(p, s->arena, glp_get_col_prim);
	} else if (status == GLP_NOFEAS) {
		s->a.status = ILP_INFEASIBLE;
		s->a.bound = INFINITY;
	} else if (code == GLP_EITLIM || code == GLP_ETMLIM) {
		s->a.status = ILP_NONE;
	}
}

struct ilp_answer
ilp_relax(Ilp *p, const struct ilp_limit *limit, Arena *arena)
{
	struct solving s = { limit, arena, failed };
	bool ok;

	p->limit = limit;
	ok = call_glpk(p, solve_relaxed, &s);
	p->limit = NULL;
	return ok ? s.a : failed;
}

static void
on_event(glp_tree *tree, void *info)
{
	Ilp *p = info;

	int best = glp_ios_best_node(tree);

	if (best)
		p->bound = glp_ios_node_bound(tree, best);
	if (watch_over(p->limit->watch))
		glp_ios_terminate(tree);
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

/* Branch and bound from an optimal basis; p->bound: that of the relaxation. */
static void
branch(Ilp *p, void *arg)
{
	struct solving *s = arg;
	const struct ilp_limit *limit = s->limit;
	struct ilp_answer *a = &s->a;
	glp_iocp c;
	int code, status;

	glp_init_iocp(&c);
	c.msg_lev = GLP_MSG_ON;
	c.out_frq = TEXT_EVERY;
	c.br_tech = GLP_BR_MFV;
	c.bt_tech = limit->for_bound ? GLP_BT_BLB : GLP_BT_BPH;
	c.tm_lim = milliseconds(limit);
	c.cb_func = on_event;
	c.cb_info = p;
	code = glp_intopt(p->prob, &c);
	status = glp_mip_status(p->prob);
	a->bound = p->bound;
	if (status == GLP_OPT || status == GLP_FEAS) {
		a->status = code == 0 ? ILP_OPTIMAL : ILP_FEASIBLE;
		a->objective = glp_mip_obj_val(p->prob);
		if (code == 0)
			a->bound = a->objective;
		a->x = columns(p, s->arena, glp_mip_col_val);
	} else if (status == GLP_NOFEAS) {
		a->status = ILP_INFEASIBLE;
		a->bound = INFINITY;
	} else {
		a->status = ILP_NONE;
	}
}

struct ilp_answer
ilp_solve(Ilp *p, const struct ilp_limit *limit, Arena *arena)
{
	struct solving s = { limit, arena, ilp_relax(p, limit, arena) };
	bool ok;
	int n;

	if (s.a.status != ILP_OPTIMAL)
		return s.a;
	p->bound = s.a.bound;
	s.a = failed;
	n = glp_get_num_cols(p->prob);
	p->nodes = 0;
	p->given = false;
	p->start = NULL;
	if (limit->start) {
		p->start = arena_array(arena, (size_t)n + 1,
		                       sizeof *p->start);
		for (int j = 0; j < n; j++)
			p->start[j + 1] = limit->start[j];
	}
	p->limit = limit;
	ok = call_glpk(p, branch, &s);
	p->limit = NULL;
	return ok ? s.a : failed;
}
