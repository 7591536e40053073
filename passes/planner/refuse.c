/* Refuse a budget: the smallest one that works, the values alive at the
 * tightest step of that plan, and what would help.
 */
#include "passes/offload/offload.h"
#include "passes/planner/choose.h"
#include "runtime/support/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <stdio.h>

enum { SHOWN = 8, BATCHES = 64 };

struct alive {
	const char *name;
	int64_t size;
};

/* Insert by size; ties stay in order. */
static void
insert_by_size(struct alive *top, struct alive a)
{
	int i = SHOWN;

	if (a.size <= top[SHOWN - 1].size)
		return;
	for (i = SHOWN - 1; i > 0 && top[i - 1].size < a.size; i--)
		top[i] = top[i - 1];
	top[i] = a;
}

static void
find_largest_alive(const struct schedule *w, int32_t step, struct alive *top)
{
	const struct remat *r = w->r;

	for (int32_t i = 0; i < w->ninst; i++) {
		const struct storage *s = &r->store[w->of_inst[i]];

		if (w->first[i] >= 0 && w->block[i] == i
		    && w->first[i] <= step && w->last[i] >= step)
			insert_by_size(top,
			               (struct alive){ r->g->val[s->owner].name,
			                              s->size });
	}
	insert_by_size(top, (struct alive){ "workspace",
		r->node[w->step[step].node].workspace });
}

/* In device memory.  What no optimizer would spare is kept of micro-batches. */
static bool
is_of_optimizer(const Val *v)
{
	return v->kind == V_STATE && v->param && !v->host
		&& strcmp(v->state, "grad") != 0;
}

static bool
is_average(const Val *v)
{
	return v->kind == V_STATE && strcmp(v->state, "ema") == 0;
}

/* Resident bytes by what they are; states: an optimizer's. */
static int64_t
bytes_of_kind(const Graph *g, ValKind kind)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (v->kind == kind && !v->base && !v->host
		    && (kind != V_STATE || is_of_optimizer(v)))
			sum += v->nbytes;
	return sum;
}

/* Of gradients and totals that are summed over micro-batches. */
static int64_t
accumulated_bytes(const Graph *g)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (v->kind == V_STATE && !v->base && !v->host
		    && !is_of_optimizer(v))
			sum += v->nbytes;
	return sum;
}

/* Of averages of parameters. */
static int64_t
average_bytes(const Graph *g)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (is_average(v) && !v->base)
			sum += v->nbytes;
	return sum;
}

/* What states of the shape of their parameters, in float32, would save. */
static int64_t
half_of_states(const Graph *g)
{
	int64_t sum = 0;

	FOR_VALS (v, g)
		if (is_of_optimizer(v) && !is_average(v)
		    && v->dt == DT_F32 && !v->base
		    && shape_eq(&v->shape, &g->val[v->param].shape)
		    && g->val[v->param].shape.rank > 0)
			sum += v->nbytes - (v->nbytes / 2 + 63) / 64 * 64;
	return sum;
}

static void
print_item_bytes(Diag *d, const char *name, int64_t bytes)
{
	if (bytes)
		diag_more(d, "%12" PRId64 " B  %s", bytes, name);
}

/* Bytes of the arena at a step: of gradients of parameters, and of what grows
 * with the batch. */
struct tight {
	int64_t grad, batch;
};

/* Parts of gradients that are added up stand in for a parameter, too. */
static bool
like_param(const Graph *g, const Val *v)
{
	FOR_VALS (p, g)
		if (p->kind == V_PARAM && shape_eq(&p->shape, &v->shape))
			return g->node[v->def].phase != PH_FORWARD;
	return false;
}

static struct tight
measure_step(const struct schedule *w, int32_t step)
{
	const struct remat *r = w->r;
	struct tight t = { 0, r->node[w->step[step].node].workspace
	                      + w->other_slots };

	for (int32_t y = 0; y < w->ninst; y++) {
		const struct storage *s = &r->store[w->of_inst[y]];
		const Val *v = &r->g->val[s->owner];

		if (w->first[y] < 0 || w->block[y] != y || w->first[y] > step
		    || w->last[y] < step)
			continue;
		if (v->param)
			t.grad += s->size;
		else if (!like_param(r->g, v))
			t.batch += s->size;
	}
	return t;
}

/* Whether it binds the first axis of an input. */
static bool
binds_batch(const Graph *g, const struct dim_binding *d)
{
	char axis[256];

	FOR_VALS (v, g) {
		if (v->kind != V_INPUT || v->shape.rank < 1)
			continue;
		snprintf(axis, sizeof axis, "%s.0", v->onnx ? v->onnx
		                                    : v->name);
		if ((v->dim_name[0] && strcmp(v->dim_name[0], d->name) == 0)
		    || strcmp(axis, d->name) == 0)
			return true;
	}
	return false;
}

/* The size of the batch, if it is bound by name; 0: the file fixes it. */
static int64_t
bound_batch(const Pass *p, const Graph *g)
{
	for (int i = 0; i < p->opt->ndim; i++)
		if (binds_batch(g, &p->opt->dim[i]))
			return p->opt->dim[i].size;
	return 0;
}

/* The options that bind it, with another size instead; what has no room is
 * left out. */
static void
write_batch(const Pass *p, const Graph *g, int64_t from, int64_t to,
            char *line, size_t size)
{
	for (int i = 0; i < p->opt->ndim; i++) {
		const struct dim_binding *d = &p->opt->dim[i];
		const char *quote = d->name[strcspn(d->name, " *()'")] ? "'"
			: "";
		int n;

		if (d->size != from || !binds_batch(g, d))
			continue;
		n = snprintf(line, size, "--dim %s%s=%" PRId64 "%s ", quote,
		             d->name, to, quote);
		if (n < 0 || (size_t)n >= size)
			break;
		line += n;
		size -= (size_t)n;
	}
	*line = '\0';
}

/* The smallest of the numbers of parts that so many samples can be cut into,
 * where as many ranks get equal shares, for which the rest fits; the least
 * number if none will do, 1 if there is none. */
static int64_t
parts_for(const Pass *p, int64_t bytes, int64_t samples)
{
	int64_t ranks = p->opt->dp > 1 ? p->opt->dp : 1, least = 1;

	for (int64_t n = 2; n <= samples && n <= BATCHES; n++) {
		if (samples % n || samples / n % ranks)
			continue;
		if (p->planned.minimum_peak - (bytes - bytes / n)
		    <= p->planned.budget)
			return n;
		least = least == 1 ? n : least;
	}
	return least;
}

/* One line: by how many bytes it helps, whether it suffices, what to type. */
static void
print_suggestion(const Pass *p, const char *about, int64_t bytes,
                 const char *why, const char *line)
{
	if (bytes > 0)
		diag_more(p->diag, "  %s%" PRId64 " B less%s: %s; try: %s",
		          about, bytes,
		          p->planned.minimum_peak - bytes <= p->planned.budget
		                  ? p->least_behind
		                    ? ", which is enough for this stage"
		                    : ", which is enough"
		                  : "",
		          why, line);
}

static void
suggest_batch(const Pass *p, const Graph *g, struct tight t)
{
	const struct options *o = p->opt;
	const Graph *inputs = p->whole ? p->whole : g;
	int64_t batch = bound_batch(p, inputs);
	int64_t n = parts_for(p, t.batch, batch);
	int64_t less = t.batch - t.batch / n;
	/* accumulators stay in memory and stand in for gradients */
	int64_t held = o->grad_accum > 1 ? 0
		: bytes_of_kind(g, V_PARAM) - t.grad;
	char line[512], more[600];

	if (n == 1) {
		if (t.batch > 0 && batch == 0)
			diag_more(p->diag, "  a smaller batch: the file fixes "
			          "the batch size; export the model with a "
			          "smaller or a dynamic batch size");
		return;
	}
	write_batch(p, inputs, batch, batch / n, line, sizeof line);
	snprintf(more, sizeof more, "%s--%s %" PRId64, line,
	         g->stages > 1 ? "microbatches" : "grad-accum",
	         n * o->grad_accum);
	if (!*line)
		return;
	line[strlen(line) - 1] = '\0';
	print_suggestion(p, "about ", less, "fewer samples", line);
	print_suggestion(p, "about ",
	                 o->optimizer != OPT_NONE ? less - held : 0,
	                 "same samples in micro-batches, gradients are "
	                 "accumulated", more);
}

static bool
suggest_help(const Pass *p, const Graph *g, struct tight t)
{
	const struct options *o = p->opt;
	bool late = g->stages <= 1 && g->props & P_UPD
		&& !p->planned.updates_in_backward
		&& o->update_in_backward != TRI_ON && o->grad_accum == 1
		&& o->optimizer != OPT_NONE && !graph_has_op(g, OP_LOSS_SCALE);

	diag_more(p->diag, "what would help:");
	if (o->keep.n || o->recompute.n)
		diag_more(p->diag, "  drop --keep and --recompute-values, "
		          "which exclude plans");
	if (o->remat != REMAT_AUTO)
		diag_more(p->diag, "  a plan that uses less memory; try: "
		          "--recompute auto");
	print_suggestion(p, "up to ", late ? t.grad : 0,
	                 "gradients are freed once they are applied",
	                 "--update-in-backward on");
	suggest_batch(p, g, t);
	print_suggestion(p, "about ", o->offload == OFFLOAD_OFF
	                 && g->stages <= 1
	                 ? offload_would_free(g, p->scratch) : 0,
	                 "optimizer state, and activations where that is "
	                 "faster, in host memory", "--offload auto");
	print_suggestion(p, "", o->optimizer == OPT_ADAFACTOR ? 0
	                 : half_of_states(g), "optimizer state in 16 bits",
	                 "--state-dtype bf16");
	print_suggestion(p, "", bytes_of_kind(g, V_STATE) - average_bytes(g),
	                 "an optimizer without state", "--optimizer sgd");
	print_suggestion(p, "", average_bytes(g),
	                 "no moving averages of parameters",
	                 "the same without --ema");
	return false;
}

/* Empty: there is nothing to compare with. */
static void
write_percent(const Pass *p, int64_t bytes, char text[32])
{
	double percent = planned_percent(&p->planned, bytes);

	*text = '\0';
	if (percent > 0)
		snprintf(text, 32, "%.0f %%", percent);
}

/* Which stage of a pipeline it is; empty: there is none. */
static void
write_stage(const Graph *g, char text[64])
{
	*text = '\0';
	if (g->stages > 1)
		snprintf(text, 64, " for stage %" PRId64 " of %" PRId64,
		         g->stage, g->stages);
}

/* What works for all stages: in percent, each of its own peak, if the budget
 * is. */
static void
write_all_stages(Pass *p, char text[64])
{
	int64_t least = p->planned.minimum_peak, bytes;
	double percent;

	*text = '\0';
	if (!p->least_behind)
		return;
	p->least_behind(p, &bytes, &percent);
	if (watch_over(p->watch))
		return;
	if (p->opt->budget_pct > 0)
		snprintf(text, 64, ", for all stages: %.0f %%",
		         fmax(percent, planned_percent(&p->planned, least)));
	else
		snprintf(text, 64, ", for all stages: %" PRId64 " B",
		         bytes > least ? bytes : least);
}

bool
remat_refuse(Pass *p, const struct schedule *w)
{
	const Graph *g = w->r->g;
	struct alive top[SHOWN] = { 0 };
	const Node *tight = &g->node[w->step[w->cost.tight].node];
	const char *where = tight->norigin ? g->origin[tight->origin[0]].name
		: op_info[tight->op].text;
	int64_t sums = accumulated_bytes(g);
	bool preset = p->opt->remat != REMAT_AUTO;
	Diag *d = p->diag;
	char least[24], works[32], stage[64], all[64];

	p->planned.refused = true;
	if (p->variant.allow_refusal)
		return false;
	write_percent(p, p->planned.minimum_peak, works);
	if (p->least_behind && p->opt->budget_pct <= 0)
		*works = '\0';
	write_stage(g, stage);
	write_all_stages(p, all);
	diag_error(d,
	           "memory budget %" PRId64 " B is too small%s%s; smallest "
	           "budget that works%s: %" PRId64 " B (%s%s%s)%s",
	           p->planned.budget, stage,
	           preset ? " for this --recompute" : "",
	           preset                         ? " with it"
	                   : watch_over(p->watch) ? " among plans found within "
	                                            "--plan-time"
	                                          : "",
	           p->planned.minimum_peak,
	           number_bytes(least, (double)p->planned.minimum_peak),
	           *works ? ", " : "", works, all);
	diag_more(d, "memory use peaks at %s (%s); largest live tensors:",
	          where, op_info[tight->op].text);
	print_item_bytes(d, "parameters and buffers",
	                 bytes_of_kind(g, V_PARAM)
	                 + bytes_of_kind(g, V_BUFFER));
	print_item_bytes(d, "accumulated gradients", sums);
	print_item_bytes(d, "optimizer state", bytes_of_kind(g, V_STATE));
	print_item_bytes(d, "inputs", bytes_of_kind(g, V_INPUT));
	find_largest_alive(w, w->cost.tight, top);
	for (int i = 0; i < SHOWN && top[i].size; i++)
		print_item_bytes(d, top[i].name, top[i].size);
	if (top[0].size > p->planned.budget)
		diag_more(d, "'%s' alone exceeds the budget; no plan can meet "
		          "it", top[0].name);
	return suggest_help(p, g, measure_step(w, w->cost.tight));
}
