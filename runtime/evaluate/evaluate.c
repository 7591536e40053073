#include "runtime/evaluate/evaluate.h"
#include "runtime/base/dtype.h"
#include "runtime/support/loss_formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Over the batches added so far. */
struct sums {
	double batches;
	double term[FORMULA_TERMS];     /* values of library.term */
	bool labels, nats;              /* which sums of metrics are valid: */
	double counted, correct, entropy;       /* labels */
	double loss, weight;            /* of loss times weight, and weight */
	double last[2];                 /* these two of the last batch */
};

struct evaluation {
	struct err *err;                /* the world's */
	const struct ckr_library *lib;
	struct world *world;
	struct stepping *steps;
	struct sums sums;
};

/* ---- a batch ---- */

/* A scalar of the program that has just run. */
static ckr_status
read_scalar(struct evaluation *c, const struct ckr_tensor *t, double *x)
{
	double at;

	CKR_TRY(world_gather(c->world, stepping_outputs(c->steps), t, &at));
	*x = dtype_double(t->dtype, &at);
	return CKR_OK;
}

/* The value of an output that ckc has added; 0: there is none. */
static ckr_status
read_metric(struct evaluation *c, const char *name, bool *is, double *x)
{
	const struct ckr_program *p = stepping_outputs(c->steps)->p;

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
add_terms(struct evaluation *c, double times)
{
	const struct ckr_program *p = stepping_outputs(c->steps)->p;

	for (uint32_t i = 0; i < c->lib->nterm; i++) {
		const struct ckr_formula_term *t = &c->lib->term[i];
		double x, *sum = &c->sums.term[i];

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
add_loss(struct evaluation *c, double times, double loss, double weight)
{
	struct sums *s = &c->sums;
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
add_batch(struct evaluation *c, double times, double loss)
{
	struct sums *s = &c->sums;
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

/* ---- the formula of the loss ---- */

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
evaluate_formula(const struct evaluation *c)
{
	const struct sums *s = &c->sums;
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

/* ---- a data set ---- */

void
evaluation_begin(struct evaluation *c)
{
	c->sums = (struct sums){ .batches = 0 };
}

ckr_status
evaluation_add(struct evaluation *c, double times)
{
	double loss;

	if (!isfinite(times))
		return err_set(c->err, CKR_EARG, "the weight of a batch must "
		               "be finite, got %g", times);
	CKR_TRY(stepping_eval(c->steps, &loss));
	return add_batch(c, times, loss);
}

ckr_status
evaluation_end(struct evaluation *c, struct ckr_score *score)
{
	const struct sums *s = &c->sums;

	if (!(s->batches > 0))
		return err_set(c->err, CKR_EARG, "no batch has been added");
	*score = (struct ckr_score){
		.loss = c->lib->nterm ? evaluate_formula(c)
		        : (s->loss + s->last[0]) / (s->weight + s->last[1]),
		.accuracy = s->labels ? s->correct / s->counted : (double)NAN,
		.perplexity = s->nats ? exp(s->entropy / s->counted)
		                      : (double)NAN,
		.by_batch = c->lib->nterm ? NULL : c->lib->by_batch };
	return CKR_OK;
}

struct evaluation *
evaluation_open(struct world *w, struct stepping *steps)
{
	struct evaluation *c = malloc(sizeof(*c));

	if (c)
		*c = (struct evaluation){ .err = w->err, .lib = w->lib,
			.world = w, .steps = steps };
	return c;
}

void
evaluation_close(struct evaluation *c)
{
	free(c);
}
