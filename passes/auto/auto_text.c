/* The report of --auto. */
#include "passes/auto/auto.h"
#include "runtime/support/number.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { RUNNERS = 10, REASONS = 8 };

/* ---- units ---- */

static const char *
write_seconds(double sec, Arena *a)
{
	return sec >= 1 ? arena_printf(a, "%.4g s", sec)
		: sec >= 1e-3 ? arena_printf(a, "%.4g ms", sec * 1e3)
		: arena_printf(a, "%.4g us", sec * 1e6);
}

static const char *
write_bytes(int64_t bytes, Arena *a)
{
	return number_bytes(arena_alloc(a, 24), (double)bytes);
}

/* ---- the fastest ---- */

static int64_t
count_state(const struct auto_found *f, enum auto_state least,
            enum auto_state most)
{
	int64_t n = 0;

	for (int64_t i = 0; i < f->n; i++)
		n += f->candidate[i].state >= least
			&& f->candidate[i].state <= most;
	return n;
}

/* Those that a search left out which was not stopped; their number. */
static int64_t
count_untried(const struct auto_found *f)
{
	int64_t n = 0;

	for (int64_t i = 0; i < f->n && !f->stopped; i++)
		n += auto_is_untried(f, &f->candidate[i]);
	return n;
}

static void
print_untried(const struct auto_found *f, FILE *out)
{
	double best = f->nplanned > 0 ? f->candidate[f->order[0]].plan.sec : 0;
	double least = best;
	int64_t n = count_untried(f), host = 0;

	for (int64_t i = 0; i < f->n && n > 0; i++) {
		const struct auto_candidate *c = &f->candidate[i];

		if (!auto_is_untried(f, c))
			continue;
		host += c->config.offload;
		least = fmin(least, c->bound);
	}
	if (n > 0)
		fprintf(out, "%lld more were not planned, though they may "
		        "be up to %.1f %% faster by their bounds%s\n",
		        (long long)n, 100 * (1 - least / best), host == n
		        ? ": all have --offload auto; try: --offload auto"
		        : "");
}

static void
print_counts(const struct auto_found *f, const struct auto_lines *l, FILE *out,
             Arena *a)
{
	const struct auto_request *r = &f->request;
	const char *budget = r->budget > 0 ? arena_printf(a, ", %s each",
		auto_size(r->budget, a)) : "";
	int64_t predicted = 0;

	for (int64_t i = 0; i < f->n; i++)
		predicted += auto_is_predicted(&f->candidate[i]);

	fprintf(out, "%s: %lld x %s%s, %lld samples a step\n"
	        "%lld configurations: %lld planned, %s%lld refused, %lld %s\n",
	        l->model, (long long)r->devices, l->device, budget,
	        (long long)r->samples, (long long)f->n,
	        (long long)(count_state(f, AUTO_PLANNED, AUTO_PLANNED)
	                    - predicted),
	        predicted ? arena_printf(a, "%lld predicted, ",
	                                 (long long)predicted) : "",
	        (long long)count_state(f, AUTO_REFUSED, AUTO_REFUSED),
	        (long long)(count_state(f, AUTO_OPEN, AUTO_BOUND)
	                    + count_state(f, AUTO_SAME, AUTO_SAME)
	                    - count_untried(f)),
	        f->stopped ? "not planned, which may be faster: the search "
	        "stopped after --plan-time" : "slower by their lower bound");
	if (f->cut)
		fprintf(out, "planning the best ones with all layers stopped "
		        "after %g s%s; try: --plan-time SECONDS, a limit of "
		        "the search\n", f->request.exact_sec,
		        f->candidate[f->order[0]].plan.predicted
		        ? ": the first is only predicted" : "");
	print_untried(f, out);
}

static void
print_rates(const struct auto_found *f, const struct auto_plan *p, FILE *out,
            Arena *a)
{
	const struct auto_request *r = &f->request;
	double rate = (double)r->samples / p->sec;
	double peak = f->peak_flops * (double)r->devices;

	fprintf(out, "\n%s a step, %.6g samples/s", write_seconds(p->sec, a),
	        rate);
	if (f->tokens > 0)
		fprintf(out, ", %.6g tokens/s", rate * (double)f->tokens);
	if (peak > 0)
		fprintf(out, ", MFU %.2f %%", 100 * rate * f->flops / peak);
	fprintf(out, "\n  computation %s, recomputation %s, %sexposed "
	        "communication %s of %s\n", write_seconds(p->compute, a),
	        write_seconds(p->recompute, a),
	        p->idle > 0 ? arena_printf(a, "idle %s, ",
	                                   write_seconds(p->idle, a)) : "",
	        write_seconds(auto_exposed(p), a),
	        write_seconds(p->sent_sec, a));
	fprintf(out, "  memory of a rank %s (%lld B)", write_bytes(p->peak, a),
	        (long long)p->peak);
	if (p->host > 0)
		fprintf(out, ", host memory %s", write_bytes(p->host, a));
	fprintf(out, "; sent by a rank %s a step\n",
	        write_bytes((int64_t)p->sent, a));
}

/* ---- runners-up ---- */

/* What a configuration has more of than the fastest: the largest part. */
static const char *
what_it_lacks(const struct auto_plan *p, const struct auto_plan *best, Arena *a)
{
	const struct { double more; const char *what; } part[] = {
		{ p->compute - best->compute, "computation" },
		{ p->recompute - best->recompute, "recomputation" },
		{ auto_exposed(p) - auto_exposed(best),
		  "exposed communication" },
		{ p->idle - best->idle, "idle time" },
	};
	size_t most = 0;

	for (size_t i = 1; i < sizeof part / sizeof *part; i++)
		if (part[i].more > part[most].more)
			most = i;
	if (part[most].more > 1e-6 * best->sec)
		return arena_printf(a, "%s more %s",
		                    write_seconds(part[most].more, a),
		                    part[most].what);
	return p->peak > best->peak
		? arena_printf(a, "no faster, %s more memory",
		               write_bytes(p->peak - best->peak, a))
		: "no faster";
}

static void
print_runners(const struct auto_found *f, FILE *out, Arena *a)
{
	const struct auto_plan *best = &f->candidate[f->order[0]].plan;

	if (f->nplanned > 1)
		fputs("\nrunners-up:\n", out);
	for (int64_t i = 1; i < f->nplanned && i <= RUNNERS; i++) {
		const struct auto_candidate *c = &f->candidate[f->order[i]];

		fprintf(out, "  %+8.2f %%  %s: %s%s\n",
		        100 * (c->plan.sec / best->sec - 1),
		        auto_options(&f->request, &c->config, a),
		        what_it_lacks(&c->plan, best, a),
		        c->plan.predicted ? " (predicted)" : "");
	}
}

/* ---- what is refused ---- */

/* Numbers aside, for which no group of its own is needed. */
static bool
is_same_reason(const char *a, const char *b)
{
	for (;;) {
		while (isdigit((unsigned char)*a))
			a++;
		while (isdigit((unsigned char)*b))
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
		a++;
		b++;
	}
}

static bool
lacks_memory(const struct auto_candidate *c)
{
	return c->state == AUTO_REFUSED && c->plan.least > 0;
}

static void
print_lack_of_memory(const struct auto_found *f, FILE *out, Arena *a)
{
	const struct auto_candidate *least = NULL;
	int64_t n = 0;

	for (int64_t i = 0; i < f->n; i++) {
		const struct auto_candidate *c = &f->candidate[i];

		if (!lacks_memory(c))
			continue;
		n++;
		if (!least || c->plan.least < least->plan.least)
			least = c;
	}
	if (n > 0)
		fprintf(out, "  %lld need more memory than %s; the least of "
		        "them, %s%lld B: %s\n", (long long)n,
		        auto_size(f->request.budget, a),
		        least->plan.at_least ? "at least " : "",
		        (long long)least->plan.least,
		        auto_options(&f->request, &least->config, a));
}

/* Those from i on that are refused for the same reason; 0: an earlier one is,
 * too. */
static int64_t
count_alike(const struct auto_found *f, int64_t i)
{
	int64_t n = 0;

	for (int64_t k = 0; k < f->n; k++) {
		const struct auto_candidate *c = &f->candidate[k];

		if (c->state != AUTO_REFUSED || lacks_memory(c)
		    || !is_same_reason(c->plan.why, f->candidate[i].plan.why))
			continue;
		if (k < i)
			return 0;
		n++;
	}
	return n;
}

static void
print_refused(const struct auto_found *f, FILE *out, Arena *a)
{
	int shown = 0;

	if (count_state(f, AUTO_REFUSED, AUTO_REFUSED) > 0)
		fputs("\nrefused:\n", out);
	print_lack_of_memory(f, out, a);
	for (int64_t i = 0; i < f->n && shown < REASONS; i++) {
		const struct auto_candidate *c = &f->candidate[i];
		int64_t n = 0;

		if (c->state == AUTO_REFUSED && !lacks_memory(c))
			n = count_alike(f, i);
		if (n == 0)
			continue;
		shown++;
		fprintf(out, "  %lld as %s: %s\n", (long long)n,
		        auto_options(&f->request, &c->config, a),
		        c->plan.why);
	}
}

void
auto_print(const struct auto_found *f, const struct auto_lines *l, FILE *out,
           Arena *a)
{
	print_counts(f, l, out, a);
	if (f->nplanned > 0) {
		print_rates(f, &f->candidate[f->order[0]].plan, out, a);
		fprintf(out, "  %s\n  %s\n", l->compile, l->run);
		print_runners(f, out, a);
	}
	print_refused(f, out, a);
}
