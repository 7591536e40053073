/* The object `memory` of --json: memory by layer, and FLOPs. */
#include "passes/report/step_report.h"
#include "runtime/support/utf8.h"

#include <inttypes.h>
#include <stdlib.h>

static void
json_values(const struct memory_report *r, int32_t layer, FILE *out)
{
	const char *sep = "";

	putc('[', out);
	for (int64_t i = 0; i < r->nsaved; i++) {
		const struct saved *s = &r->saved[i];

		if (s->layer != layer)
			continue;
		fprintf(out, "%s\n{\"block\": \"%s\", \"op\": ", sep,
		        memory_block[s->block]);
		utf8_json(out, s->op);
		fputs(", \"name\": ", out);
		utf8_json(out, s->name);
		fputs(", \"read_by\": ", out);
		utf8_json(out, s->reader);
		fprintf(out, ", \"bytes\": %" PRId64 "}", s->bytes);
		sep = ",";
	}
	putc(']', out);
}

static void
json_numbers(const char *key, const int64_t *x, int32_t n, FILE *out)
{
	fprintf(out, "\"%s\": [", key);
	for (int32_t i = 0; i < n; i++)
		fprintf(out, "%s%" PRId64, i ? ", " : "", x[i]);
	putc(']', out);
}

static void
json_cheap(const struct one_percent *c, FILE *out)
{
	fprintf(out, ",\n\"one_percent\": {\"extra\": %.17g, "
	        "\"saved_bytes\": %" PRId64 ", \"outside_bytes\": %" PRId64
	        ", ", c->extra, c->saved, c->outside);
	json_numbers("layer_bytes", c->layer, c->nlayer, out);
	fputs(", ", out);
	json_numbers("statistics_bytes", c->stats, c->nlayer, out);
	putc('}', out);
}

static void
json_layers(const struct memory_report *r, const struct options *opt,
            FILE *out)
{
	int32_t n = r->seg.nlayer;

	fprintf(out, "\"layers\": %d, \"layer_input_elements\": %" PRId64
	        ", \"outside_bytes\": %" PRId64 ",\n", n, r->unit,
	        r->outside);
	json_numbers("layer_bytes", r->layer, n, out);
	fputs(",\n", out);
	json_numbers("statistics_bytes", r->stats, n, out);
	if (opt->tp) {
		fputs(",\n", out);
		json_numbers("device_layer_bytes", r->layer, n, out);
	}
	fprintf(out, ",\n\"layer\": {\"number\": %d, \"values\": ", n / 2);
	json_values(r, n ? n / 2 : -2, out);
	fputs("},\n\"outside\": ", out);
	json_values(r, -1, out);
	fprintf(out, ",\n\"transformer\": {\"batch\": %" PRId64 ", \"seq\": %"
	        PRId64 ", \"hidden\": %" PRId64 ", \"heads\": %" PRId64
	        ", \"vocab\": %" PRId64 "}", r->batch, r->seq, r->hidden,
	        r->heads, r->vocab);
	fprintf(out, ",\n\"trained_elements\": %" PRId64, r->param);
}

static void
json_pipeline(const struct pipeline *l, FILE *out)
{
	if (!l->n)
		return;
	fprintf(out, ",\n\"pipeline\": {\"interleave\": %" PRId64
	        ", \"microbatches\": %" PRId64 ", \"stages\": [",
	        l->interleave, l->microbatches);
	for (int64_t i = 0; i < l->n; i++) {
		const struct pipeline_stage *s = &l->stage[i];

		fprintf(out, "%s\n{\"layers\": %.17g, \"in_flight\": %.17g, "
		        "\"saved_bytes\": %.17g, \"weight_bytes\": %.17g, "
		        "\"keep_everything\": ", i ? "," : "", s->layers,
		        s->in_flight, s->saved, s->weights);
		if (s->keep_all >= 0)
			fprintf(out, "%.17g}", s->keep_all);
		else
			fputs("null}", out);
	}
	fputs("]}", out);
}

char *
memory_json(const Pass *p, const Plan *plan, Arena *keep)
{
	Arena *arena = arena_new();
	struct memory_report *r = memory_report_new(p, plan, arena);
	char *text = NULL, *copy = NULL;
	size_t n;
	FILE *out = r ? open_memstream(&text, &n) : NULL;

	if (out) {
		struct flop_report f = flop_report(p, plan, r);
		struct pipeline l = pipeline_report(p, plan, r, arena);

		fputs("{", out);
		json_layers(r, p->opt, out);
		if (p->planned.one_percent)
			json_cheap(p->planned.one_percent, out);
		fprintf(out, ",\n\"flops\": {\"model\": %.17g, \"causal\": "
		        "%.17g, \"hardware\": %.17g, \"all\": %.17g, "
		        "\"formula_model\": %.17g, \"formula_third\": %.17g, "
		        "\"formula_ninth\": %.17g}", f.model, f.causal,
		        f.hardware, f.all, f.paper_model, f.paper_third,
		        f.paper_ninth);
		json_pipeline(&l, out);
		fputs("}", out);
		if (fclose(out) == 0)
			copy = arena_str(keep, text);
	}
	free(text);
	arena_free(arena);
	return copy;
}
