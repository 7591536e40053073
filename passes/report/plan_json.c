/* Write a plan as JSON: one object, one tensor and one step per line. */
#include "passes/report/report.h"
#include "ir/placement.h"
#include "runtime/support/utf8.h"

#include <inttypes.h>

static const char *const kind_text[K_COUNT] = {
	[K_PARAM] = "param", [K_BUFFER] = "buffer", [K_CONSTANT] = "constant",
	[K_INPUT] = "input", [K_GRAD] = "grad", [K_STATE] = "state",
	[K_ACTIVATION] = "activation", [K_ADJOINT] = "adjoint",
	[K_RECOMPUTED] = "recomputed", [K_WORKSPACE] = "workspace",
};

static const char *const phase_text[PH_COUNT] = {
	[PH_FORWARD] = "forward", [PH_RECOMPUTE] = "recompute",
	[PH_BACKWARD] = "backward", [PH_UPDATE] = "update",
};

static const char *const decision_text[] = {
	[D_NULL] = "null", [D_KEEP] = "\"keep\"",
	[D_RECOMPUTE] = "\"recompute\"", [D_FREE] = "\"free\"",
};

static void
put_int(const char *key, int64_t x, FILE *out)
{
	fprintf(out, "\"%s\": ", key);
	if (x < 0)
		fputs("null", out);
	else
		fprintf(out, "%" PRId64, x);
}

static void
put_real(const char *key, double x, FILE *out)
{
	fprintf(out, "\"%s\": %.17g", key, x);
}

static const char *
json_bool(bool b)
{
	return b ? "true" : "false";
}

static void
put_summary_object(const struct plan_summary *s, FILE *out)
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
		{ "recompute_flops", s->recompute_flops },
		{ "step_flops", s->step_flops },
		{ "bound_seconds", s->bound_sec },
		{ "overhead", s->overhead },
		{ "gap", s->gap },
		{ "solver_seconds", s->solver_sec },
	};

	fputs("\"summary\": {\n", out);
	for (size_t i = 0; i < sizeof count / sizeof count[0]; i++) {
		putc('\t', out);
		put_int(count[i].key, count[i].x, out);
		fputs(",\n", out);
	}
	for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
		putc('\t', out);
		put_real(real[i].key, real[i].x, out);
		fputs(",\n", out);
	}
	if (s->nlow_precision)
		fprintf(out, "\t\"half_count\": %" PRId64 ",\n"
		        "\t\"half_bytes\": %" PRId64 ",\n", s->nlow_precision,
		        s->low_precision_bytes);
	fputs("\t\"bound_class\": ", out);
	utf8_json(out, s->bound_class ? s->bound_class : "any");
	fputs("\n},\n", out);
}

/* Where it is not simply whole: the state, how it is cut, the whole shape. */
static void
put_placement(const struct plan_tensor *t, FILE *out)
{
	static const char *const state[] = { "I", "R", "S", "P" };
	Shape whole = placement_whole(&t->placement, &t->shape);

	if (t->placement.kind == PLACEMENT_REPLICATE || t->shape.rank < 0)
		return;
	fprintf(out, ", \"split\": {\"state\": \"%s\"",
	        state[t->placement.kind]);
	if (t->placement.kind == PLACEMENT_SHARD) {
		fprintf(out, ", \"axis\": %d, \"shared\": %" PRId64
		        ", \"parts\": [", t->placement.axis,
		        t->placement.replication);
		for (int i = 0; i < t->placement.nsegment; i++)
			fprintf(out, "%s%" PRId64, i ? ", " : "",
			        t->placement.segment[i]);
		fputs("], \"whole\": [", out);
		for (int i = 0; i < whole.rank; i++)
			fprintf(out, "%s%" PRId64, i ? ", " : "",
			        whole.dim[i]);
		putc(']', out);
	}
	putc('}', out);
}

/* What replicas have pieces of: extents on a rank that had all of it. */
static void
put_shard_extents(const Shape *s, FILE *out)
{
	fputs(", \"piece\": [", out);
	for (int i = 0; i < s->rank; i++)
		fprintf(out, "%s%" PRId64, i ? ", " : "", s->dim[i]);
	putc(']', out);
}

static void
put_tensor_object(const struct plan_tensor *t, int64_t id, FILE *out)
{
	fprintf(out, "{\"id\": %" PRId64 ", \"name\": ", id);
	utf8_json(out, t->name);
	fputs(", \"onnx\": ", out);
	utf8_json(out, t->onnx);
	fputs(", ", out);
	put_int("node", t->node, out);
	fprintf(out, ", \"kind\": \"%s\", \"dtype\": ", kind_text[t->kind]);
	utf8_json(out, t->dt == DT_NONE ? NULL : dtype_info[t->dt].text);
	fputs(", \"shape\": ", out);
	if (t->shape.rank < 0) {
		fputs("null", out);
	} else {
		putc('[', out);
		for (int i = 0; i < t->shape.rank; i++)
			fprintf(out, "%s%" PRId64, i ? ", " : "",
			        t->shape.dim[i]);
		putc(']', out);
	}
	fprintf(out, ", \"bytes\": %" PRId64 ", \"resident\": %s, ", t->bytes,
	        json_bool(t->resident));
	put_int("offset", t->offset, out);
	fputs(", ", out);
	put_int("of", t->of, out);
	if (t->low_precision_of >= 0)
		fprintf(out, ", \"half_of\": %" PRId64, t->low_precision_of);
	fputs(", ", out);
	put_int("alias_of", t->alias_of, out);
	fprintf(out, ", \"alias_offset\": %" PRId64 ", \"output\": %s, "
	        "\"decision\": %s, \"saved\": %s, \"first\": %" PRId64
	        ", \"last\": %" PRId64, t->alias_offset, json_bool(t->output),
	        decision_text[t->decision], json_bool(t->saved), t->first,
	        t->last);
	put_placement(t, out);
	if (t->shard)
		put_shard_extents(&t->shard->shape, out);
	putc('}', out);
}

static void
put_ids(const char *key, const int64_t *id, int n, FILE *out)
{
	fprintf(out, "\"%s\": [", key);
	for (int i = 0; i < n; i++) {
		if (i)
			fputs(", ", out);
		if (id[i] < 0)
			fputs("null", out);
		else
			fprintf(out, "%" PRId64, id[i]);
	}
	fputs("], ", out);
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
put_waits(const struct waits *w, int64_t id, FILE *out)
{
	if (w->first[id] < 0)
		return;
	for (int64_t i = w->first[id]; i >= 0; i = w->next[i])
		fprintf(out, "%s%" PRId64, i == w->first[id]
		        ? ", \"waits\": [" : ", ", i);
	putc(']', out);
}

static void
put_step_object(const struct plan_step *s, int64_t id, const struct waits *w,
                FILE *out)
{
	fprintf(out, "{\"id\": %" PRId64 ", \"op\": ", id);
	utf8_json(out, s->op);
	fputs(", \"onnx\": [", out);
	for (int i = 0; i < s->nonnx; i++) {
		if (i)
			fputs(", ", out);
		utf8_json(out, s->onnx[i]);
	}
	fputs("], ", out);
	put_int("node", s->node, out);
	fprintf(out, ", \"phase\": \"%s\", ", phase_text[s->phase]);
	put_int("of", s->of, out);
	fprintf(out, ", \"view\": %s, \"inlined\": [", json_bool(s->view));
	for (int i = 0; i < s->ninlined; i++)
		fprintf(out, "%s{\"of\": %" PRId64 ", \"flops\": %.17g, "
		        "\"seconds\": %.17g}", i ? ", " : "",
		        s->inlined[i].of, s->inlined[i].flops,
		        s->inlined[i].seconds);
	fputs("], ", out);
	put_ids("reads", s->read, s->nread, out);
	put_ids("writes", s->write, s->nwrite, out);
	fprintf(out, "\"workspace_bytes\": %" PRId64 ", \"flops\": %.17g, "
	        "\"bytes\": %.17g, \"seconds\": %.17g", s->workspace,
	        s->flops, s->bytes, s->seconds);
	if (s->sent > 0 || s->wait)     /* or would to more replicas */
		fprintf(out, ", \"sent_bytes\": %.17g", s->sent);
	if (s->wait)
		fputs(", \"begins\": true", out);
	put_waits(w, id, out);
	putc('}', out);
}

bool
plan_write_json(const Plan *plan, FILE *out)
{
	Arena *a;
	struct waits w;

	if (!plan->replayed)
		return false;
	fprintf(out, "{\n\"version\": 1,\n\"workload\": \"%s\",\n\"model\": ",
	        plan->from_graph ? "graph" : "model");
	utf8_json(out, plan->model ? plan->model : "");
	fputs(",\n\"flags\": [", out);
	for (int i = 0; i < plan->nflag; i++) {
		if (i)
			fputs(", ", out);
		utf8_json(out, plan->flag[i]);
	}
	fprintf(out, "],\n\"device\": %s,\n",
	        plan->device ? plan->device : "null");
	if (plan->ranks)
		fprintf(out, "\"mesh\": {\"tp\": %" PRId64 "},\n",
		        plan->ranks);
	if (plan->ranks || plan->sum.sent > 0)
		fprintf(out, "\"comm\": {\"bytes\": %.17g, \"seconds\": %.17g, "
		        "\"hidden_seconds\": %.17g},\n", plan->sum.sent,
		        plan->sum.sent_sec, plan->sum.hidden_sec);
	if (plan->memory)
		fprintf(out, "\"memory\": %s,\n", plan->memory);
	if (plan->curve)
		fprintf(out, "%s,\n", plan->curve);
	put_summary_object(&plan->sum, out);
	fputs("\"tensors\": [\n", out);
	for (int64_t i = 0; i < plan->ntensor; i++) {
		put_tensor_object(&plan->tensor[i], i, out);
		fputs(i + 1 < plan->ntensor ? ",\n" : "\n", out);
	}
	fputs("],\n\"schedule\": [\n", out);
	a = arena_new();
	w = waits_of(plan, a);
	for (int64_t i = 0; i < plan->nstep; i++) {
		put_step_object(&plan->step[i], i, &w, out);
		fputs(i + 1 < plan->nstep ? ",\n" : "\n", out);
	}
	arena_free(a);
	fputs("]\n}\n", out);
	return true;
}
