/* Indices and offsets of the tensors of a compiled model.
 *
 * in      the plans of a library's schedules
 * out     the order of its tensors, their offsets and the step that writes each
 *
 * Values that schedules share (parameters, buffers, constants, inputs, states)
 * come first, at the same indices and resident offsets, so that the run time
 * binds them once.  Everything else follows the plan: offsets in the arena are
 * the plan's, aliases lie in their owner.  The evaluation schedule has its own
 * graph; its own constants follow its arena.
 */
#include "codegen/tables.h"
#include "ir/element.h"

#include <string.h>

static void
mark_plan_values(bool *used, const Plan *plan)
{
	for (int64_t i = 0; plan && i < plan->ntensor; i++)
		used[plan->tensor[i].val] = true;
}

/* Constants in constants.bin stand where the text of tables_emit aligns. */
enum { DATA_ALIGN = 64 };

static void
add_data(uint64_t *at, uint64_t *end, const Val *v)
{
	*at = *end;
	*end += (uint64_t)val_data_bytes(v) + DATA_ALIGN - 1;
	*end -= *end % DATA_ALIGN;
}

/* The order of values that programs share; 0: they do not.  What libraries of
 * one model share comes first, without sums over micro-batches. */
static int
shared_rank(const Val *v)
{
	static const int rank[V_KIND_COUNT] = { [V_PARAM] = 1, [V_BUFFER] = 2,
		[V_STATE] = 3, [V_CONST] = 5, [V_INPUT] = 6 };

	return rank[v->kind]
	       + (v->kind == V_STATE && v->state
	          && (!v->param || !strcmp(v->state, "grad")));
}

struct shared_values
tables_shared(Arena *a, const Graph *g, const Plan *plan,
              const Plan *reference_plan)
{
	struct shared_values s = { 0 };
	size_t nval = g->nval;
	bool *used;

	for (int64_t i = 0; reference_plan && i < reference_plan->ntensor; i++)
		if (reference_plan->tensor[i].val >= nval)
			nval = reference_plan->tensor[i].val + 1;
	used = arena_array(a, nval, sizeof *used);
	mark_plan_values(used, plan);
	mark_plan_values(used, reference_plan);
	s.val = arena_array(a, g->nval, sizeof *s.val);
	s.offset = arena_array(a, g->nval, sizeof *s.offset);
	s.data = arena_array(a, g->nval, sizeof *s.data);
	for (int rank = 1; rank <= 6; rank++)
		for (ValId id = 1; id < g->nval; id++) {
			const Val *v = &g->val[id];
			uint64_t *end;

			if (shared_rank(v) != rank || !used[id])
				continue;
			end = v->host ? &s.host_bytes : &s.bytes;
			s.offset[s.n] = *end;
			*end += (uint64_t)v->nbytes;
			if (v->kind == V_CONST)
				add_data(&s.data[s.n], &s.data_bytes, v);
			s.val[s.n++] = id;
		}
	return s;
}

/* What v of another graph is in g; 0: nothing.  Stages are cut anew, and states
 * are added later. */
static ValId
same_value(const Graph *g, const Graph *of, ValId v)
{
	if (g->stages || of->val[v].kind == V_STATE)
		return val_counterpart(g, of, v);
	return element_same(of, g, v) ? v : 0;
}

static void
program_shared(struct emitted_program *p, const struct shared_values *s,
               const Graph *of)
{
	for (uint32_t i = 0; i < s->n; i++) {
		ValId v = of == p->g ? s->val[i] : same_value(p->g, of,
		                                              s->val[i]);

		p->offset[i] = s->offset[i];
		p->data[i] = s->data[i];
		p->host[i] = of->val[s->val[i]].host;
		p->resident[i] = !p->host[i];
		if (!v)
			continue;
		p->val[i] = v;
		p->index_of_val[v] = i;
	}
	p->ntensor = s->n;
	p->resident_bytes = s->bytes;
	p->arena_bytes = (uint64_t)p->plan->sum.arena;
	p->host_bytes = s->host_bytes;
	p->peak = p->plan->sum.peak;
}

/* A constant that the other schedules have not got. */
static bool
own_constant(struct emitted_program *p, int64_t at, const struct plan_tensor *t,
             struct shared_values *s, Diag *d)
{
	const Val *v = &p->g->val[p->val[at]];

	if (v->kind != V_CONST)
		return diag_internal(d, "codegen: '%s' is only in the "
		                     "evaluation schedule", t->name);
	add_data(&p->data[at], &s->data_bytes, v);
	p->offset[at] = p->arena_bytes;
	p->arena_bytes += (uint64_t)t->bytes;
	return true;
}

static uint64_t
max_bytes(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static bool
program_tensors(struct emitted_program *p, struct shared_values *s, bool apart,
                Diag *d)
{
	const Plan *plan = p->plan;

	for (int64_t i = 0; i < plan->ntensor; i++) {
		const struct plan_tensor *t = &plan->tensor[i];
		int64_t at = p->ntensor;

		if (t->val && p->g->val[t->val].kind != V_TEMP
		    && (!apart || p->index_of_val[t->val] >= 0)) {
			at = p->index_of_val[t->val];
			p->plan_tensor[at] = i;
			p->index_of_plan[i] = at;
			continue;
		}
		p->ntensor++;
		p->plan_tensor[at] = i;
		p->index_of_plan[i] = at;
		p->val[at] = t->val;
		if (t->val)
			p->index_of_val[t->val] = at;
		if (t->alias_of >= 0)
			continue;
		p->resident[at] = t->resident && !apart;
		p->host[at] = t->host;
		if (t->resident && apart) {
			if (!own_constant(p, at, t, s, d))
				return false;
		} else if (t->resident) {
			p->offset[at] = p->resident_bytes;
			p->resident_bytes += (uint64_t)t->bytes;
		} else if (t->offset < 0) {
			return diag_internal(d, "codegen: '%s' has no offset "
			                     "in the arena",
			                     t->name);
		} else if (t->host) {
			p->offset[at] = s->host_bytes + (uint64_t)t->offset;
			p->host_bytes = max_bytes(p->host_bytes, p->offset[at]
			                          + (uint64_t)t->bytes);
		} else {
			p->offset[at] = (uint64_t)t->offset;
		}
	}
	return true;
}

/* Aliases after their owners have places.  Kernels count from a value's first
 * element; the plan's alias_offset is the lowest byte that the value reaches,
 * which is another one where a stride is negative. */
static void
program_aliases(struct emitted_program *p)
{
	for (int64_t i = 0; i < p->ntensor; i++) {
		int64_t at = p->plan_tensor[i], of;
		const Val *v = &p->g->val[p->val[i]];

		of = at < 0 ? -1 : p->plan->tensor[at].alias_of;
		if (of < 0)
			continue;
		of = p->index_of_plan[of];
		p->resident[i] = p->resident[of];
		p->host[i] = p->host[of];
		p->offset[i] = p->offset[of]
			+ (uint64_t)(v->start * dtype_info[v->dt].nbytes);
	}
}

/* The step behind which each tensor is there.  Lives are no help: what is
 * resident lives from the first step on, also a gradient that a late step
 * accumulates. */
static void
program_ready(struct emitted_program *p)
{
	for (int64_t i = 0; i < p->plan->nstep; i++) {
		const struct plan_step *s = &p->plan->step[i];

		for (int k = 0; k < s->nwrite; k++)
			if (s->write[k] >= 0)
				p->ready[p->index_of_plan[s->write[k]]] =
					plan_end(p->plan, i);
	}
}

bool
tables_program(struct emitted_program *p, Arena *a, const Graph *g,
               const Plan *plan, struct shared_values *s, const Graph *of,
               Diag *d)
{
	bool apart = of != NULL;
	size_t n = (size_t)plan->ntensor + s->n + 1;

	*p = (struct emitted_program){ .g = g, .plan = plan,
		.nshared = s->n, .own_at = s->n };
	p->plan_tensor = arena_array(a, n, sizeof *p->plan_tensor);
	p->val = arena_array(a, n, sizeof *p->val);
	p->offset = arena_array(a, n, sizeof *p->offset);
	p->data = arena_array(a, n, sizeof *p->data);
	p->resident = arena_array(a, n, sizeof *p->resident);
	p->host = arena_array(a, n, sizeof *p->host);
	p->ready = arena_array(a, n, sizeof *p->ready);
	memset(p->ready, 0xff, n * sizeof *p->ready);
	p->index_of_val = arena_array(a, g->nval, sizeof *p->index_of_val);
	p->index_of_plan = arena_array(a, (size_t)plan->ntensor + 1,
	                               sizeof *p->index_of_plan);
	n = (size_t)plan->nstep + 1;
	p->kernel = arena_array(a, n, sizeof *p->kernel);
	p->constant = arena_array(a, n, sizeof *p->constant);
	p->nconst = arena_array(a, n, sizeof *p->nconst);
	memset(p->index_of_val, 0xff, g->nval * sizeof *p->index_of_val);
	for (uint32_t i = 0; i < s->n; i++)
		p->plan_tensor[i] = -1;
	program_shared(p, s, apart ? of : g);
	if (!program_tensors(p, s, apart, d))
		return false;
	program_aliases(p);
	program_ready(p);
	return true;
}
