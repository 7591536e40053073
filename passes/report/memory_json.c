/* The object `memory` of --json: memory by layer, and FLOPs. */
#include "passes/report/step_report.h"
#include "runtime/support/json_write.h"

#include <math.h>

enum { DIGITS = 17 };

static void
put_layer_values(struct json_out *j, const char *key,
                 const struct memory_report *r, int32_t layer)
{
	json_open(j, key, '[', JSON_ROWS);
	for (int64_t i = 0; i < r->nsaved; i++) {
		const struct saved *s = &r->saved[i];

		if (s->layer != layer)
			continue;
		json_open(j, NULL, '{', JSON_SPACED);
		json_text(j, "block", memory_block[s->block]);
		json_text(j, "op", s->op);
		json_text(j, "name", s->name);
		json_text(j, "read_by", s->reader);
		json_int(j, "bytes", s->bytes);
		json_close(j);
	}
	json_close(j);
}

static void
put_one_percent(struct json_out *j, const struct one_percent *c)
{
	json_open(j, "one_percent", '{', JSON_SPACED);
	json_real(j, "extra", DIGITS, c->extra);
	json_int(j, "saved_bytes", c->saved);
	json_int(j, "outside_bytes", c->outside);
	json_ids(j, "layer_bytes", c->layer, c->nlayer);
	json_ids(j, "statistics_bytes", c->stats, c->nlayer);
	json_close(j);
}

static void
put_layers(struct json_out *j, const struct memory_report *r, bool tp)
{
	int32_t n = r->seg.nlayer;

	json_int(j, "layers", n);
	json_int(j, "layer_input_elements", r->unit);
	json_int(j, "outside_bytes", r->outside);
	j->level[j->depth].style = JSON_WRAPPED;
	json_ids(j, "layer_bytes", r->layer, n);
	json_ids(j, "statistics_bytes", r->stats, n);
	if (tp)
		json_ids(j, "device_layer_bytes", r->layer, n);
	json_open(j, "layer", '{', JSON_SPACED);
	json_int(j, "number", n / 2);
	put_layer_values(j, "values", r, n ? n / 2 : -2);
	json_close(j);
	put_layer_values(j, "outside", r, -1);
	json_open(j, "transformer", '{', JSON_SPACED);
	json_int(j, "batch", r->batch);
	json_int(j, "seq", r->seq);
	json_int(j, "hidden", r->hidden);
	json_int(j, "heads", r->heads);
	json_int(j, "vocab", r->vocab);
	json_close(j);
	json_int(j, "trained_elements", r->param);
}

static void
put_flop_counts(struct json_out *j, const struct flop_report *f)
{
	json_open(j, "flops", '{', JSON_SPACED);
	json_real(j, "model", DIGITS, f->model);
	json_real(j, "causal", DIGITS, f->causal);
	json_real(j, "hardware", DIGITS, f->hardware);
	json_real(j, "all", DIGITS, f->all);
	json_real(j, "formula_model", DIGITS, f->paper_model);
	json_real(j, "formula_third", DIGITS, f->paper_third);
	json_real(j, "formula_ninth", DIGITS, f->paper_ninth);
	json_close(j);
}

static void
put_stages(struct json_out *j, const struct pipeline_estimate *l)
{
	if (!l->n)
		return;
	json_open(j, "pipeline", '{', JSON_SPACED);
	json_int(j, "interleave", l->interleave);
	json_int(j, "microbatches", l->microbatches);
	json_open(j, "stages", '[', JSON_ROWS);
	for (const struct stage_estimate *s = l->stage; s < l->stage + l->n;
	     s++) {
		json_open(j, NULL, '{', JSON_SPACED);
		json_real(j, "layers", DIGITS, s->layers);
		json_real(j, "in_flight", DIGITS, s->in_flight);
		json_real(j, "saved_bytes", DIGITS, s->saved);
		json_real(j, "weight_bytes", DIGITS, s->weights);
		json_real(j, "keep_everything", DIGITS,
		          s->keep_all >= 0 ? s->keep_all : NAN);
		json_close(j);
	}
	json_close(j);
	json_close(j);
}

void
memory_write_json(struct json_out *j, const Pass *p, const Plan *plan)
{
	Arena *arena = arena_new();
	struct memory_report *r = memory_report_new(p, plan, arena);

	if (r) {
		struct flop_report f = flop_report(p, plan, r);
		struct pipeline_estimate l = pipeline_report(p, plan, r, arena);

		json_open(j, "memory", '{', JSON_SPACED);
		put_layers(j, r, p->opt->tp);
		if (p->planned.one_percent)
			put_one_percent(j, p->planned.one_percent);
		put_flop_counts(j, &f);
		put_stages(j, &l);
		json_close(j);
	}
	arena_free(arena);
}
