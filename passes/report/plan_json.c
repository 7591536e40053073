/* Write a plan as JSON: one object, one tensor and one step per line. */
#include "passes/report/report.h"

#include "passes/cost/cost.h"
#include "passes/planner/pareto_front.h"
#include "passes/report/step_report.h"
#include "ir/placement.h"
#include "runtime/support/json_write.h"

enum { DIGITS = 17 };                   /* a double reads back exactly */

static const char *const kind_text[K_COUNT] = {
	[K_PARAM] = "param", [K_BUFFER] = "buffer", [K_CONSTANT] = "constant",
	[K_INPUT] = "input", [K_GRAD] = "grad", [K_STATE] = "state",
	[K_ACTIVATION] = "activation", [K_ADJOINT] = "adjoint",
	[K_RECOMPUTED] = "recomputed", [K_WORKSPACE] = "workspace",
	[K_TRANSFERRED] = "transferred",
};

static const char *const decision_text[] = {
	[D_KEEP] = "keep", [D_RECOMPUTE] = "recompute", [D_FREE] = "free",
	[D_OFFLOAD] = "offload",
};

static void
put_summary_object(struct json_out *j, const struct plan_summary *s)
{
	const struct {
		const char *key;
		int64_t x;
	} count[] = {
		{ "budget_bytes", s->budget },
		{ "baseline_peak_bytes", s->baseline_peak },
		{ "alignment", s->alignment },
		{ "peak_bytes", s->peak },
		{ "resident_bytes", s->resident },
		{ "arena_bytes", s->arena },
		{ "live_bound_bytes", s->live_bound },
		{ "param_bytes", s->param },
		{ "buffer_bytes", s->buffer },
		{ "constant_bytes", s->constant },
		{ "input_bytes", s->input },
		{ "grad_bytes", s->grad },
		{ "optimizer_bytes", s->optimizer },
		{ "workspace_bytes", s->workspace },
		{ "saved_bytes", s->saved },
	};
	const struct {
		const char *key;
		double x;
	} real[] = {
		{ "forward_seconds", s->forward_sec },
		{ "backward_seconds", s->backward_sec },
		{ "update_seconds", s->update_sec },
		{ "recompute_seconds", s->recompute_sec },
		{ "step_seconds", s->step_sec },
		{ "exposed_seconds", s->exposed_sec },
		{ "recompute_flops", s->recompute_flops },
		{ "step_flops", s->step_flops },
		{ "bound_seconds", s->bound_sec },
		{ "overhead", s->overhead },
		{ "gap", s->gap },
		{ "solver_seconds", s->solver_sec },
	};

	json_open(j, "summary", '{', JSON_TABBED);
	for (size_t i = 0; i < sizeof count / sizeof count[0]; i++)
		json_id(j, count[i].key, count[i].x);
	for (size_t i = 0; i < sizeof real / sizeof real[0]; i++)
		json_real(j, real[i].key, DIGITS, real[i].x);
	if (s->weight_sec > 0)
		json_real(j, "weight_seconds", DIGITS, s->weight_sec);
	if (s->nlow_precision) {
		json_int(j, "half_count", s->nlow_precision);
		json_int(j, "half_bytes", s->low_precision_bytes);
	}
	json_text(j, "bound_class", s->bound_class ? s->bound_class : "any");
	json_close(j);
}

static void
put_extents(struct json_out *j, const char *key, const Shape *s)
{
	if (s->rank < 0)
		json_text(j, key, NULL);
	else
		json_ids(j, key, s->dim, s->rank);
}

/* Where it is not simply whole: the state, how it is cut, the whole shape. */
static void
put_placement(struct json_out *j, const struct plan_tensor *t)
{
	static const char *const state[] = { "I", "R", "S", "P" };
	const Placement *p = &t->placement;
	Shape whole = placement_whole(p, &t->shape);

	if (p->kind == PLACEMENT_REPLICATE || t->shape.rank < 0)
		return;
	json_open(j, "split", '{', JSON_SPACED);
	json_text(j, "state", state[p->kind]);
	if (p->kind == PLACEMENT_SHARD) {
		json_int(j, "axis", p->axis);
		json_int(j, "shared", p->replication);
		json_ids(j, "parts", p->segment, p->nsegment);
		put_extents(j, "whole", &whole);
	}
	json_close(j);
}

static void
put_tensor_object(struct json_out *j, const struct plan_tensor *t, int64_t id)
{
	json_open(j, NULL, '{', JSON_SPACED);
	json_int(j, "id", id);
	json_text(j, "name", t->name);
	json_text(j, "onnx", t->onnx);
	json_id(j, "node", t->node);
	json_text(j, "kind", kind_text[t->kind]);
	json_text(j, "dtype", t->dt == DT_NONE ? NULL : dtype_info[t->dt].text);
	put_extents(j, "shape", &t->shape);
	json_int(j, "bytes", t->bytes);
	json_bool(j, "resident", t->resident);
	if (t->host)
		json_bool(j, "host", true);
	json_id(j, "offset", t->offset);
	json_id(j, "of", t->of);
	if (t->low_precision_of >= 0)
		json_int(j, "half_of", t->low_precision_of);
	if (plan_copy_of(t) >= 0)
		json_int(j, "copy_of", t->copy_of);
	json_id(j, "alias_of", t->alias_of);
	json_int(j, "alias_offset", t->alias_offset);
	json_bool(j, "output", t->output);
	json_text(j, "decision", decision_text[t->decision]);
	json_bool(j, "saved", t->saved);
	json_int(j, "first", t->first);
	json_int(j, "last", t->last);
	put_placement(j, t);
	/* what replicas have pieces of: extents on a rank that had all of it */
	if (t->shard)
		put_extents(j, "piece", &t->shard->shape);
	json_close(j);
}

/* Which transfers each step waits for when it has run: as a list by step,
 * chained in the order of their beginning. */
struct waits {
	int64_t *first, *next;          /* -1: none */
};

static struct waits
waits_of(const Plan *p, Arena *a)
{
	struct waits w = {
		.first = arena_array(a, (size_t)p->nstep + 1, sizeof *w.first),
		.next = arena_array(a, (size_t)p->nstep + 1, sizeof *w.next),
	};

	for (int64_t i = 0; i < p->nstep; i++)
		w.first[i] = -1;
	for (int64_t i = p->nstep; i-- > 0;) {
		int64_t end = plan_end(p, i);

		if (end > i) {
			w.next[i] = w.first[end];
			w.first[end] = i;
		}
	}
	return w;
}

static void
put_inlined(struct json_out *j, const struct plan_step *s)
{
	json_open(j, "inlined", '[', JSON_SPACED);
	for (int i = 0; i < s->ninlined; i++) {
		json_open(j, NULL, '{', JSON_SPACED);
		json_int(j, "of", s->inlined[i].of);
		json_real(j, "flops", DIGITS, s->inlined[i].flops);
		json_real(j, "seconds", DIGITS, s->inlined[i].seconds);
		json_close(j);
	}
	json_close(j);
}

static void
put_step_object(struct json_out *j, const struct plan_step *s, int64_t id,
                const struct waits *w)
{
	json_open(j, NULL, '{', JSON_SPACED);
	json_int(j, "id", id);
	json_text(j, "op", s->op);
	json_open(j, "onnx", '[', JSON_SPACED);
	for (int i = 0; i < s->nonnx; i++)
		json_text(j, NULL, s->onnx[i]);
	json_close(j);
	json_id(j, "node", s->node);
	json_text(j, "phase", report_phase[s->phase]);
	json_id(j, "of", s->of);
	json_bool(j, "view", s->view);
	put_inlined(j, s);
	json_ids(j, "reads", s->read, s->nread);
	json_ids(j, "writes", s->write, s->nwrite);
	json_int(j, "workspace_bytes", s->workspace);
	json_real(j, "flops", DIGITS, s->flops);
	json_real(j, "bytes", DIGITS, s->bytes);
	json_real(j, "seconds", DIGITS, s->seconds);
	if (s->sent > 0 || s->wait)     /* or would to more replicas */
		json_real(j, "sent_bytes", DIGITS, s->sent);
	if (s->lane_sec != s->seconds)
		json_real(j, "lane_seconds", DIGITS, s->lane_sec);
	if (s->lane == LANE_NETWORK)
		json_bool(j, "network", true);
	if (lane_is_host(s->lane))
		json_text(j, "lane", s->lane == LANE_FETCH ? "fetch"
		          : "offload");
	if (s->wait)
		json_bool(j, "begins", true);
	if (w->first[id] >= 0) {
		json_open(j, "waits", '[', JSON_SPACED);
		for (int64_t i = w->first[id]; i >= 0; i = w->next[i])
			json_int(j, NULL, i);
		json_close(j);
	}
	json_close(j);
}

static void
put_communication(struct json_out *j, const Plan *plan)
{
	if (plan->ranks) {
		json_open(j, "mesh", '{', JSON_SPACED);
		json_int(j, "tp", plan->ranks);
		json_close(j);
	}
	if (!plan->ranks && plan->sum.sent <= 0)
		return;
	json_open(j, "comm", '{', JSON_SPACED);
	json_real(j, "bytes", DIGITS, plan->sum.sent);
	json_real(j, "seconds", DIGITS, plan->sum.sent_sec);
	json_real(j, "hidden_seconds", DIGITS,
	          plan->sum.step_sec - plan->sum.exposed_sec);
	json_close(j);
}

static void
put_host(struct json_out *j, const struct plan_summary *s)
{
	if (s->host <= 0)
		return;
	json_open(j, "host", '{', JSON_SPACED);
	json_int(j, "bytes", s->host);
	json_real(j, "fetched_bytes", DIGITS, s->fetched);
	json_real(j, "offloaded_bytes", DIGITS, s->offloaded);
	json_real(j, "seconds", DIGITS, s->host_sec);
	json_close(j);
}

void
plan_write_source(struct json_out *j, const struct report_source *of,
                  const char *workload)
{
	json_int(j, "version", 1);
	json_text(j, "workload", workload);
	json_text(j, "model", of->model);
	json_open(j, "flags", '[', JSON_SPACED);
	for (int i = 0; i < of->nflag; i++)
		json_text(j, NULL, of->flag[i]);
	json_close(j);
}

void
plan_write_members(struct json_out *j, const Pass *p, const Plan *plan)
{
	Arena *a = arena_new();
	struct waits w;

	json_print(j, "device", "%s", plan->device
	           ? device_json(plan->device, a) : "null");
	put_communication(j, plan);
	put_host(j, &plan->sum);
	if (p)
		memory_write_json(j, p, plan);
	if (p && p->planned.pareto_front)
		pareto_front_write_json(j, p->planned.pareto_front);
	put_summary_object(j, &plan->sum);
	json_open(j, "tensors", '[', JSON_LINES);
	for (int64_t i = 0; i < plan->ntensor; i++)
		put_tensor_object(j, &plan->tensor[i], i);
	json_close(j);
	json_open(j, "schedule", '[', JSON_LINES);
	w = waits_of(plan, a);
	for (int64_t i = 0; i < plan->nstep; i++)
		put_step_object(j, &plan->step[i], i, &w);
	arena_free(a);
	json_close(j);
}

bool
plan_write_json(const Pass *p, const Plan *plan,
                const struct report_source *of, FILE *out)
{
	struct json_out j = { .f = out };

	if (!plan->replayed)
		return false;
	json_open(&j, NULL, '{', JSON_LINES);
	plan_write_source(&j, of, plan->from_graph ? "graph" : "model");
	plan_write_members(&j, p, plan);
	json_close(&j);
	putc('\n', out);
	return true;
}
