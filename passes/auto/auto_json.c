/* All configurations of --auto as JSON. */
#include "passes/auto/auto.h"
#include "runtime/support/json_write.h"

enum { DIGITS = 17 };                   /* a double reads back exactly */

static const char *const state_text[] = {
	[AUTO_OPEN] = "slower", [AUTO_BOUND] = "slower",
	[AUTO_PLANNED] = "planned", [AUTO_REFUSED] = "refused",
	[AUTO_SAME] = "same",
};

static void
put_plan(struct json_out *j, const struct auto_found *f,
         const struct auto_plan *p)
{
	double samples = (double)f->request.samples;
	double peak = f->peak_flops * (double)f->request.devices;

	json_real(j, "seconds", DIGITS, p->sec);
	json_real(j, "samples_per_second", DIGITS, samples / p->sec);
	if (f->tokens > 0)
		json_real(j, "tokens_per_second", DIGITS,
		          samples * (double)f->tokens / p->sec);
	if (peak > 0)
		json_real(j, "mfu", DIGITS, f->flops * samples / p->sec / peak);
	json_real(j, "compute_seconds", DIGITS, p->compute);
	json_real(j, "recompute_seconds", DIGITS, p->recompute);
	json_real(j, "exposed_communication_seconds", DIGITS, auto_exposed(p));
	json_real(j, "idle_seconds", DIGITS, p->idle);
	json_real(j, "communication_seconds", DIGITS, p->sent_sec);
	json_real(j, "sent_bytes", DIGITS, p->sent);
	json_int(j, "peak_bytes", p->peak);
	json_int(j, "resident_bytes", p->resident);
	json_int(j, "host_bytes", p->host);
}

static void
put_candidate(struct json_out *j, const struct auto_found *f,
              const struct auto_candidate *c, Arena *a)
{
	const struct auto_config *x = &c->config;

	json_open(j, NULL, '{', JSON_SPACED);
	json_text(j, "options", auto_options(&f->request, x, a));
	json_text(j, "state", auto_is_untried(f, c) ? "open"
	          : auto_is_predicted(c) ? "predicted" : state_text[c->state]);
	json_int(j, "tp", x->tp);
	json_bool(j, "sp", x->sp);
	json_bool(j, "halves", x->halves);
	json_int(j, "dp", x->dp);
	json_int(j, "pp", x->pp);
	json_int(j, "ep", x->ep);
	json_int(j, "zero", x->zero);
	json_int(j, "zero_group", x->zero_group);
	json_int(j, "batch", x->batch);
	json_int(j, "grad_accum", x->accum);
	json_bool(j, "offload", x->offload);
	json_real(j, "bound_seconds", DIGITS, c->bound);
	if (c->state == AUTO_PLANNED)
		put_plan(j, f, &c->plan);
	if (c->predicted_sec > 0 || auto_is_predicted(c)) {
		bool made = c->predicted_sec > 0;

		json_real(j, "predicted_seconds", DIGITS,
		          made ? c->predicted_sec : c->plan.sec);
		json_int(j, "predicted_peak_bytes",
		         made ? c->predicted_peak : c->plan.peak);
	}
	if (c->state == AUTO_REFUSED) {
		json_text(j, "reason", c->plan.why);
		json_id(j, c->plan.at_least ? "least_bytes_above"
		        : "least_bytes", c->plan.least ? c->plan.least : -1);
	}
	json_close(j);
}

void
auto_write_json(const struct auto_found *f, const struct auto_lines *l,
                FILE *out, Arena *a)
{
	const struct auto_request *r = &f->request;
	struct json_out j = { .f = out };

	json_open(&j, NULL, '{', JSON_LINES);
	json_int(&j, "version", 1);
	json_text(&j, "model", l->model);
	json_text(&j, "device", l->device);
	json_int(&j, "devices", r->devices);
	json_int(&j, "global_batch", r->samples);
	json_id(&j, "budget_bytes", r->budget > 0 ? r->budget : -1);
	json_bool(&j, "complete", !f->stopped && !f->cut);
	json_id(&j, "best", f->nplanned > 0 ? f->order[0] : -1);
	json_text(&j, "compile", f->nplanned > 0 ? l->compile : NULL);
	json_text(&j, "run", f->nplanned > 0 ? l->run : NULL);
	json_open(&j, "candidates", '[', JSON_ROWS);
	for (int64_t i = 0; i < f->n; i++)
		put_candidate(&j, f, &f->candidate[i], a);
	json_close(&j);
	json_close(&j);
	fputc('\n', out);
}
