/* Evaluation, between steps: of a batch, and of a data set by its batches. */
#include "runtime/model/rt.h"

#include <math.h>
#include <string.h>

/* ---- a batch ---- */

/* Run program[2].  A library without one runs program[0] until the loss and all
 * outputs are computed; that uses the statistics of the batch.  It may include
 * instructions of backward: a fused classifier computes the loss and its
 * gradient together. */
static ckr_status
run_evaluation(ckr_ctx *c, double *loss)
{
	const struct ckr_program *p = &c->lib->program[0];

	c->evaluated = c->forward.p;
	if (c->forward.p)
		return rt_run_forward(c, &c->forward,
		                      (int32_t)c->forward.p->ninstr - 1, loss);
	if (c->finite.nsaved)
		return err_set(&c->err, CKR_EUNSUPPORTED, "the library has no "
		               "evaluation program, which uses running "
		               "statistics: %s", ckr_why_no_eval(c));
	return rt_run_forward(c, &c->plan, rt_last_output(p), loss);
}

const char *
ckr_why_no_eval(const ckr_ctx *c)
{
	return !c->lib || c->forward.p ? NULL
	       : c->lib->no_forward ? c->lib->no_forward : "ckc compiled none";
}

int64_t
ckr_bad_number(const ckr_ctx *c)
{
	return c->env.fault_value;
}

ckr_status
ckr_eval(ckr_ctx *c, double *loss)
{
	struct trace *trace = c->trace;
	struct profile *profile = c->profile;
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	CKR_TRY(rt_need_inputs(c, loss));
	CKR_TRY(rt_make_copies(c));
	/* these are of steps */
	c->trace = NULL;
	c->profile = NULL;
	s = run_evaluation(c, loss);
	c->trace = trace;
	c->profile = profile;
	return s;
}

/* ---- a data set ---- */

/* A scalar of the program that has just run. */
static ckr_status
read_scalar(ckr_ctx *c, const struct ckr_tensor *t, double *x)
{
	double at;

	CKR_TRY(rt_gather_whole(c, c->outputs, t, &at));
	*x = dtype_double(t->dtype, &at);
	return CKR_OK;
}

/* The value of an output that ckc has added; 0: there is none. */
static ckr_status
read_metric(ckr_ctx *c, const char *name, bool *is, double *x)
{
	const struct ckr_program *p = c->outputs->p;

	*x = 0;
	for (uint32_t i = c->lib->nshared; i < p->ntensor; i++)
		if (p->tensor[i].flags & CKR_METRIC
		    && !strcmp(p->tensor[i].name, name)) {
			*is = true;
			return read_scalar(c, &p->tensor[i], x);
		}
	return CKR_OK;
}

static ckr_status
add_terms(ckr_ctx *c, double times)
{
	const struct ckr_program *p = c->outputs->p;

	for (uint32_t i = 0; i < c->lib->nterm; i++) {
		const struct ckr_formula_term *t = &c->lib->term[i];
		double x, *sum = &c->score.term[i];

		if (t->tensor < 0)
			continue;
		CKR_TRY(read_scalar(c, &p->tensor[t->tensor], &x));
		*sum = t->op == FORMULA_SAME ? x : *sum + times * x;
	}
	return CKR_OK;
}

/* A loss that depends on how samples are batched cannot be corrected for a last
 * batch that was filled up, so that batch does not count unless it is the only
 * one. */
static void
add_loss(ckr_ctx *c, double times, double loss, double weight)
{
	struct score_sums *s = &c->score;
	bool whole = c->lib->by_batch && !c->lib->nterm;

	if (whole && times < 0 && s->weight > 0) {
		s->last[0] = s->last[1] = 0;
	} else if (!whole || times > 0) {
		s->loss += s->last[0];
		s->weight += s->last[1];
		s->last[0] = times * loss;
		s->last[1] = times * weight;
	}
}

/* Without a formula the loss is treated as a mean over samples, or over labels
 * that are not ignored; a batch without such labels has no loss. */
static ckr_status
add_batch(ckr_ctx *c, double times, double loss)
{
	struct score_sums *s = &c->score;
	double counted, correct, entropy, weight;

	CKR_TRY(read_metric(c, "eval.counted", &s->labels, &counted));
	CKR_TRY(read_metric(c, "eval.correct", &s->labels, &correct));
	CKR_TRY(read_metric(c, "eval.entropy", &s->nats, &entropy));
	CKR_TRY(add_terms(c, times));
	weight = s->labels ? counted : 1;
	s->batches += times;
	s->counted += times * counted;
	s->correct += times * correct;
	s->entropy += counted > 0 ? times * entropy : 0;
	add_loss(c, times, weight > 0 ? weight * loss : 0, weight);
	return CKR_OK;
}

static double
apply_unary(uint8_t op, double x)
{
	switch (op) {
	case FORMULA_NEG:
		return -x;
	case FORMULA_ABS:
		return fabs(x);
	case FORMULA_RECIP:
		return 1 / x;
	case FORMULA_SQRT:
		return sqrt(x);
	case FORMULA_EXP:
		return exp(x);
	default:
		return log(x);
	}
}

static double
apply_binary(uint8_t op, double x, double y)
{
	switch (op) {
	case FORMULA_ADD:
		return x + y;
	case FORMULA_SUB:
		return x - y;
	case FORMULA_MUL:
		return x * y;
	case FORMULA_DIV:
		return x / y;
	case FORMULA_MIN:
		return x < y || isnan(x) ? x : y;
	case FORMULA_MAX:
		return x > y || isnan(x) ? x : y;
	default:
		return pow(x, y);
	}
}

/* The formula, of sums over all batches. */
static double
evaluate_formula(const ckr_ctx *c)
{
	const struct score_sums *s = &c->score;
	double stack[FORMULA_TERMS];
	uint32_t n = 0;

	for (uint32_t i = 0; i < c->lib->nterm; i++) {
		const struct ckr_formula_term *t = &c->lib->term[i];

		if (t->op <= FORMULA_SAME) {
			stack[n++] = t->op == FORMULA_NUMBER ? t->number
				: t->op == FORMULA_MEAN
				? s->term[i] / s->batches
				: s->term[i];
		} else if (t->op < FORMULA_NEG) {
			n--;
			stack[n - 1] = apply_binary(t->op, stack[n - 1],
			                            stack[n]);
		} else {
			stack[n - 1] = apply_unary(t->op, stack[n - 1]);
		}
	}
	return stack[0];
}

bool
score_is_sane(const struct ckr_library *lib)
{
	const struct ckr_program *p = lib->program;
	uint32_t n = 0;

	p = p[2].ninstr ? &p[2] : p;
	if (lib->nterm > FORMULA_TERMS)
		return false;
	for (uint32_t i = 0; i < lib->nterm; i++) {
		const struct ckr_formula_term *t = &lib->term[i];
		uint32_t needs = t->op <= FORMULA_SAME ? 0
			: t->op < FORMULA_NEG          ? 2
						       : 1;
		bool has = t->op > FORMULA_NUMBER && t->op <= FORMULA_SAME;

		if (t->op >= FORMULA_OPS || n < needs || has != (t->tensor >= 0)
		    || t->tensor >= (int64_t)p->ntensor
		    || (has
		        && (rt_nelem(&p->tensor[t->tensor]) != 1
		            || dtype_row[p->tensor[t->tensor].dtype].nbytes
		                    > sizeof(double))))
			return false;
		n += 1 - needs;
	}
	return n == (lib->nterm > 0);
}

ckr_status
ckr_score_begin(ckr_ctx *c)
{
	CKR_TRY(rt_need_ready(c));
	c->score = (struct score_sums){ .batches = 0 };
	return CKR_OK;
}

ckr_status
ckr_score_add(ckr_ctx *c, double times)
{
	double loss;

	CKR_TRY(rt_need_ready(c));
	if (!isfinite(times))
		return err_set(&c->err, CKR_EARG, "the weight of a batch must "
		               "be finite, got %g", times);
	CKR_TRY(ckr_eval(c, &loss));
	return add_batch(c, times, loss);
}

ckr_status
ckr_score_end(ckr_ctx *c, struct ckr_score *score)
{
	const struct score_sums *s = &c->score;

	CKR_TRY(rt_need_ready(c));
	if (!(s->batches > 0))
		return err_set(&c->err, CKR_EARG, "no batch has been added");
	*score = (struct ckr_score){
		.loss = c->lib->nterm ? evaluate_formula(c)
		        : (s->loss + s->last[0]) / (s->weight + s->last[1]),
		.accuracy = s->labels ? s->correct / s->counted : (double)NAN,
		.perplexity = s->nats ? exp(s->entropy / s->counted)
		                      : (double)NAN,
		.by_batch = c->lib->nterm ? NULL : c->lib->by_batch };
	return CKR_OK;
}

/* ---- a run's validations ---- */

ckr_status
ckr_record_validation(ckr_ctx *c, double loss, bool *best)
{
	CKR_TRY(rt_need_ready(c));
	*best = loss < c->best.loss;
	c->best.worse = *best ? 0 : c->best.worse + 1;
	c->best.loss = *best ? loss : c->best.loss;
	return CKR_OK;
}

double
ckr_best_loss(const ckr_ctx *c, uint64_t *worse)
{
	if (worse)
		*worse = c->best.worse;
	return c->best.loss;
}
