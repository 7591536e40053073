/* Parameters that seem to belong to a teacher or reference model: exports lose
 * no_grad().
 *
 * Parameters are grouped by the first part of their names in which they
 * differ.  A group is reported if its values meet those of others only in the
 * loss, after the last use of parameters, and
 *   - no term of the loss depends on this group alone, one depends on others
 *     alone, and the group enters as probabilities or is subtracted; or
 *   - the group enters as probabilities and others as logarithms of them; or
 *   - its name says so.
 * Equal towers, as in CLIP, or an actor and its critic match none of these.
 *
 * cost   linear in the nodes for each of at most 64 groups
 */
#include "frontend/lint/lint_context.h"
#include "frontend/onnx/onnx_op.h"
#include "frontend/params/params.h"
#include "frontend/params/signature.h"

#include <string.h>

enum { MOST_GROUPS = 64, MOST_HOPS = 8, MOST_STEPS = 200 };

struct param_groups {
	struct lint_context *s;
	size_t prefix;                  /* length of common prefix */
	int n;
	const char *name[MOST_GROUPS];  /* with the prefix */
	uint64_t *of;                   /* groups a value depends on */
	bool *data;                     /* value depends on inputs */
};

/* ---- groups ---- */

static bool
is_named_weight(const struct flat_val *v)
{
	return v->verdict == VERDICT_PARAM && !v->frozen && v->nuse
		&& flat_is_path(v->name);
}

/* Length of the longest common prefix of all names that ends at a dot. */
static size_t
common_prefix(const struct flat *f)
{
	const char *first = NULL;
	size_t n = 0;

	FOR_FLAT_VALS (v, f) {
		const char *name = v->name;
		size_t k = 0;

		if (!is_named_weight(v))
			continue;
		if (!first) {
			first = name;
			n = strlen(name);
		}
		while (k < n && name[k] == first[k])
			k++;
		while (k > 0 && first[k - 1] != '.')
			k--;
		n = k;
	}
	return n;
}

static int
param_group(struct param_groups *g, const char *name)
{
	size_t n = g->prefix + strcspn(name + g->prefix, ".");

	for (int i = 0; i < g->n; i++)
		if (strlen(g->name[i]) == n
		    && strncmp(g->name[i], name, n) == 0)
			return i;
	if (g->n == MOST_GROUPS)
		return -1;
	g->name[g->n] = arena_printf(g->s->arena, "%.*s", (int)n, name);
	return g->n++;
}

static void
propagate_groups(struct param_groups *g)
{
	const struct flat *f = g->s->f;

	FOR_FLAT_NODES (n, f) {
		uint64_t of = 0;
		bool data = false;

		for (int k = 0; k < n->nin; k++) {
			if (!n->op || k > 31 || !(n->op->stop & 1u << k))
				of |= g->of[n->in[k]];
			data |= g->data[n->in[k]];
		}
		for (int k = 0; k < n->nout; k++) {
			g->of[n->out[k]] = n->out[k] ? of : 0;
			g->data[n->out[k]] = n->out[k] && data;
		}
	}
}

/* False if there are fewer than two groups, or too many. */
static bool
find_param_groups(struct param_groups *g)
{
	const struct flat *f = g->s->f;

	g->prefix = common_prefix(f);
	FOR_FLAT_VALS (v, f) {
		int k = is_named_weight(v) ? param_group(g, v->name) : 0;

		if (k < 0)
			return false;
		if (is_named_weight(v))
			g->of[v - f->val] = (uint64_t)1 << k;
		g->data[v - f->val] = v->info && !v->init;
	}
	propagate_groups(g);
	return g->n > 1;
}

/* ---- nodes where values of groups meet ---- */

static bool
is_joint(const struct param_groups *g, int v, uint64_t a)
{
	return (g->of[v] & a) && (g->of[v] & ~a);
}

/* Whether a node close behind v has that type. */
static bool
reaches_type(const struct param_groups *g, int v, const char *type, int hops,
             int *steps)
{
	const struct flat_node *n = producer_of(g->s->f, v);

	if (!n || hops == 0 || --*steps < 0)
		return false;
	if (is_op_type(n, type))
		return true;
	for (int k = 0; k < n->nin; k++)
		if (g->of[n->in[k]]
		    && reaches_type(g, n->in[k], type, hops - 1, steps))
			return true;
	return false;
}

static bool
is_made_by(const struct param_groups *g, int v, const char *type)
{
	int steps = MOST_STEPS;

	return reaches_type(g, v, type, MOST_HOPS, &steps);
}

struct meeting {
	bool late;              /* after the last use of parameters */
	bool chances;           /* the group enters as probabilities */
	bool target;            /* the group is subtracted */
	bool logs;              /* others enter as logarithms */
};

static void
check_meeting(const struct param_groups *g, const struct flat_node *n,
              uint64_t a, struct meeting *m)
{
	for (int k = 0; k < n->nin; k++) {
		int v = n->in[k];
		uint64_t of = g->of[v];
		bool chance;

		if (of && !g->data[v])
			m->late = false;
		if (!of || is_joint(g, v, a))
			continue;
		if (!(of & a)) {
			m->logs &= is_op_type(n, "SoftmaxCrossEntropyLoss")
				|| is_made_by(g, v, "LogSoftmax");
			continue;
		}
		chance = is_made_by(g, v, "Softmax")
			|| is_made_by(g, v, "Sigmoid");
		m->chances &= chance;
		m->target &= chance || is_op_type(n, "Sub");
	}
}

static struct meeting
find_meeting(const struct param_groups *g, uint64_t a)
{
	const struct flat *f = g->s->f;
	struct meeting m = { true, true, true, true };

	for (int i = 0; i < f->nnode && m.late; i++) {
		const struct flat_node *n = &f->node[i];

		for (int k = 0; n->needed && k < n->nout; k++)
			if (is_joint(g, n->out[k], a)) {
				check_meeting(g, n, a, &m);
				break;
			}
	}
	return m;
}

/* ---- terms of the loss ---- */

struct terms {
	bool joint, ours, others;       /* kinds of terms that exist */
	int steps;                      /* remaining steps of the search */
};

static void
find_terms(const struct param_groups *g, int v, uint64_t a, struct terms *t)
{
	const struct flat_node *n = t->steps > 0 ? sum_producer(g->s->f, v)
		: NULL;
	uint64_t of = g->of[v];

	t->steps--;
	if (n && of) {
		for (int k = 0; k < n->nin; k++)
			find_terms(g, n->in[k], a, t);
		return;
	}
	t->joint |= is_joint(g, v, a);
	t->ours |= of && !(of & ~a);
	t->others |= of && !(of & a);
}

/* ---- teachers ---- */

static bool
has_teacher_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return word_is_listed("teacher ref reference ref_model reference_model "
	                      "target_network ema momentum_encoder frozen",
	                      dot ? dot + 1 : name);
}

static bool
is_teacher(const struct param_groups *g, int k, int loss)
{
	uint64_t a = (uint64_t)1 << k;
	struct meeting m = find_meeting(g, a);
	struct terms t = { .steps = MOST_STEPS };

	if (!m.late)
		return false;
	find_terms(g, loss, a, &t);
	if (!t.joint || t.ours)
		return false;
	return has_teacher_name(g->name[k]) || (m.target && t.others)
		|| (m.chances && m.logs);
}

void
lint_teacher(struct lint_context *s)
{
	size_t n = (size_t)s->f->nval;
	struct param_groups g = { .s = s, .of = arena_array(s->arena, n,
	                                                    sizeof *g.of),
	                          .data = arena_array(s->arena, n,
	                                              sizeof *g.data) };
	int *target, ntarget;

	flat_targets(s->f, s->opt, &target, &ntarget);
	if (ntarget != 1 || !find_param_groups(&g))
		return;
	for (int k = 0; k < g.n; k++)
		if (is_teacher(&g, k, *target))
			add_warning(s, NULL,
			    "the parameters '%s.*' are trained, but look like "
			    "a teacher network, because only the loss connects "
			    "them to the others; exports do not store "
			    "no_grad() and requires_grad; if they are frozen "
			    "in PyTorch, try: --freeze '%s.*'", g.name[k],
			    g.name[k]);
}
