/* Constants that may be the size of the batch.
 *
 * A file says nothing of why it scales a sum: PyTorch writes y.sum() / N with
 * the number N of the export.  Of one replica that number is another, so such a
 * node is refused.  A constant is taken for a size if samples divide it, or if
 * it turns a mean into an unbiased one (Bessel's correction); small ones are
 * more likely plain factors and get a note.
 */
#include "passes/data_parallel/dp_partition.h"

#include <math.h>
#include <string.h>

static bool
is_extent_value(const struct dp_partition *d, ValId v, int depth)
{
	const Val *x = &d->g->val[v];
	const Node *n = &d->g->node[x->def];

	if (!x->def || depth == 0)
		return val_is_const(x);
	for (int k = 0; k < n->nin; k++)
		if (!n->in[k] || !is_extent_value(d, n->in[k], depth - 1))
			return false;
	return n->nin > 0 || n->op == OP_EXTENT;
}

/* Whether the value depends on numbers of the batch size and constants only. */
static bool
is_extent(const struct dp_partition *d, ValId v)
{
	enum { DEPTH = 8 };

	return is_extent_value(d, v, DEPTH);
}

/* Elements that v, a summand, is the sum of; 0: unknown. */
static int64_t
count_summed(const struct dp_partition *d, ValId v)
{
	const Graph *g = d->g;

	while (dp_has_kind(d, v, PLACEMENT_PARTIAL) && g->val[v].def
	       && g->node[g->val[v].def].nin) {
		v = g->node[g->val[v].def].in[0];
		if (dp_has_kind(d, v, PLACEMENT_SHARD))
			return val_nelem(&g->val[v]);
	}
	return 0;
}

/* Whether v, a summand, is a mean over samples, or follows from one. */
static bool
is_from_mean(const struct dp_partition *d, ValId v)
{
	const Graph *g = d->g;

	while (dp_has_kind(d, v, PLACEMENT_PARTIAL) && g->val[v].def) {
		const Node *n = &g->node[g->val[v].def];

		if (d->share && n->op == OP_MUL && n->in[1] == d->share)
			return true;
		v = n->nin ? n->in[0] : 0;
	}
	return false;
}

static bool
is_integral(double x)
{
	return x >= 1 && x < 1e15 && fabs(x - nearbyint(x)) < 1e-6 * x;
}

static bool
is_sample_count(const struct dp_partition *d, double x)
{
	return is_integral(x) && (int64_t)nearbyint(x) % d->samples == 0;
}

/* The factor of v, if it is a product with a number; else 0. */
static double
factor_of_product(const struct dp_partition *d, ValId v)
{
	const Node *n = &d->g->node[d->g->val[v].def];
	double x;

	for (int k = 0; d->g->val[v].def && n->op == OP_MUL && k < 2; k++)
		if (val_splat(d->g, n->in[k], &x))
			return x;
	return 0;
}

/* Of a sum: by may be its number of samples, of elements, or one less than that
 * of samples. */
static bool
divides_sum(const struct dp_partition *d, ValId v, double by)
{
	int64_t all = count_summed(d, v), n = (int64_t)nearbyint(by);

	return (is_sample_count(d, by) && (!all || all % n == 0))
		|| (is_integral(by) && n > 1 && n + 1 == d->samples);
}

/* Of a mean: n / (n - 1), in one or in two steps, or n. */
static bool
scales_mean(const struct dp_partition *d, ValId v, double by)
{
	double x = 1 / by, n = x / (x - 1);

	if (by > 1)
		return is_integral(by) && is_sample_count(d, by + 1)
			&& fabs(factor_of_product(d, v) - by - 1) < 1e-6 * by;
	return (x > 8.5 && is_sample_count(d, x))
		|| (x > 1 && n > 3.5 && is_sample_count(d, n));
}

/* What a number beside a sum over samples, or a mean over them, is: */
enum scaling {
	SCALE_FACTOR,
	SCALE_MAYBE_SIZE,               /* small, as factors of formulas are */
	SCALE_SIZE                      /* of the batch, or of what is summed:
	                                 * that does not grow with the batch */
};

struct scaled_sum {
	ValId sum;
	double by;                      /* it is divided by that */
	bool mean;
};

static enum scaling
classify_scaling(const struct dp_partition *d, const Node *n,
                 const struct scaled_sum *s)
{
	double x = 1 / s->by;

	if (s->mean)
		return scales_mean(d, s->sum, s->by) ? SCALE_SIZE
			: x > 1 && is_sample_count(d, x) ? SCALE_MAYBE_SIZE
			: SCALE_FACTOR;
	if (!divides_sum(d, s->sum, s->by))
		return SCALE_FACTOR;
	/* halves and quarters are factors of many formulas */
	return n->op == OP_MUL && strcmp(node_type(d->g, n), "Div")
	       && s->by < 8.5 ? SCALE_MAYBE_SIZE : SCALE_SIZE;
}

static enum scaling
find_scaling(const struct dp_partition *d, const Node *n, struct scaled_sum *s)
{
	enum scaling found = SCALE_FACTOR;

	for (int k = 0; k < 2 && d->samples > 1 && found == SCALE_FACTOR; k++) {
		double x;

		if ((n->op != OP_DIV && n->op != OP_MUL)
		    || (n->op == OP_DIV && k > 0)
		    || !dp_has_kind(d, n->in[k], PLACEMENT_PARTIAL)
		    || n->in[1 - k] == d->share
		    || is_extent(d, n->in[k])
		    || !val_splat(d->g, n->in[1 - k], &x) || !(x > 0))
			continue;
		*s = (struct scaled_sum){ n->in[k], n->op == OP_DIV ? x : 1 / x,
		                          is_from_mean(d, n->in[k]) };
		found = classify_scaling(d, n, s);
	}
	return found;
}

static void
note_factor(const struct dp_partition *d, const Node *n,
            const struct scaled_sum *s)
{
	if (d->p->opt->dp != DP_SUMS && !diag_is_soft(d->p->diag))
		diag_note(d->p->diag, "node '%s' (%s): a %s over samples is "
		          "scaled by %g, which is treated as a constant; if it "
		          "is the batch size, use a %s without the factor",
		          node_label(d->g, n), node_type(d->g, n),
		          s->mean ? "mean" : "sum", 1 / s->by,
		          s->mean ? "sum" : "mean");
}

bool
dp_divides_by_size(const struct dp_partition *d, const Node *n)
{
	struct scaled_sum s;
	enum scaling found = find_scaling(d, n, &s);

	if (found == SCALE_MAYBE_SIZE)
		note_factor(d, n, &s);
	return found == SCALE_SIZE;
}

/* The number by which v is divided. */
static double
divisor_of(const Graph *g, ValId v)
{
	double by = 1, x;

	for (;;) {
		const Node *n = &g->node[g->val[v].def];
		bool divides = n->op == OP_DIV;
		int k = divides || !n->nin || !val_splat(g, n->in[0], &x);

		if (!g->val[v].def || (!divides && n->op != OP_MUL)
		    || !val_splat(g, n->in[k], &x) || !(x > 0))
			return by;
		by *= divides ? x : 1 / x;
		v = n->in[1 - k];
	}
}

void
dp_note_divided_samples(const struct dp_partition *d, const Node *n)
{
	struct scaled_sum s = { .sum = n->out[0] };

	if (n->op != OP_REDUCE_SUM || d->samples < 2
	    || !dp_has_kind(d, n->in[0], PLACEMENT_SHARD)
	    || !dp_has_kind(d, n->out[0], PLACEMENT_PARTIAL))
		return;
	s.by = divisor_of(d->g, n->in[0]);
	if (s.by > 1 && divides_sum(d, s.sum, s.by))
		note_factor(d, n, &s);
}

const char *
dp_mean_hint(const struct dp_partition *d, const Node *n)
{
	struct scaled_sum s;
	int64_t size;

	if (find_scaling(d, n, &s) != SCALE_SIZE)
		return "";
	if (s.mean)
		return s.by < 1 && is_sample_count(d, 1 / s.by)
			? ": replace y.mean() * N by y.sum()" : "";
	size = (int64_t)nearbyint(s.by);
	if (size == count_summed(d, s.sum))
		return ": replace y.sum() / N by y.mean()";
	return size == d->samples
		? ": replace y.sum() / N by y.flatten(1).sum(1).mean(), where "
		  "y may be kl_div(..., reduction='none')" : "";
}
