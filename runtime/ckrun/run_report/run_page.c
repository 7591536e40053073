/* The HTML page of ckrun report. */
#include <inttypes.h>
#include <math.h>

#include "runtime/ckrun/run_report/chart.h"
#include "runtime/ckrun/run_report/run_report.h"
#include "runtime/support/markup.h"

static const char style[] = "svg{margin:0 12px 12px 0}\n";

/* What is best of a series. */
enum best_kind { LOWEST, HIGHEST, NEITHER };

static const struct {
	const char *name;
	enum best_kind best;
	double factor;
} series[NSERIES] = {
	[S_LOSS] = { "loss", LOWEST, 1 },
	[S_VALID_LOSS] = { "validation loss", LOWEST, 1 },
	[S_ACCURACY] = { "validation accuracy, %", HIGHEST, 100 },
	[S_PERPLEXITY] = { "validation perplexity", LOWEST, 1 },
	[S_NORM] = { "gradient norm", NEITHER, 1 },
	[S_LR] = { "learning rate", NEITHER, 1 },
	[S_SPEED] = { "per second", HIGHEST, 1 },
	[S_SCALE] = { "loss scale", NEITHER, 1 },
};

static const char *
series_name(const struct history *h, size_t runs, int s)
{
	bool tokens = h->tokens;

	for (size_t i = 1; i < runs; i++)
		if (h[i].tokens != tokens)
			return "samples or tokens per second";
	if (s != S_SPEED)
		return series[s].name;
	return tokens ? "tokens per second" : "samples per second";
}

/* ---- tables ---- */

static void
put_runs(const struct history *h, size_t runs, FILE *out)
{
	fputs("<table id=\"runs\">\n<tr><th>run</th><th>rows</th><th>steps"
	      "</th><th>seconds</th><th>samples or tokens</th><th>peak bytes"
	      "</th></tr>\n", out);
	for (size_t i = 0; i < runs; i++, h++) {
		fprintf(out, "<tr><td><i style=\"background:%s\"></i> ",
		        chart_color(i));
		markup_text(h->path, out);
		fprintf(out, "</td><td class=\"n\">%zu</td><td class=\"n\">"
		        "%.0f to %.0f</td><td class=\"n\">%.6g</td>"
		        "<td class=\"n\">%.0f %s</td><td class=\"n\">%.0f</td>"
		        "</tr>\n", h->n, h->row[0].step,
		        h->row[h->n - 1].step, h->seconds, h->units,
		        h->tokens ? "tokens" : "samples", h->peak_bytes);
	}
	fputs("</table>\n", out);
}

static void
put_value_cells(const struct moment *m, int s, FILE *out)
{
	if (m)
		fprintf(out, "<td class=\"n\">%.6g</td><td class=\"n\">%.0f"
		        "</td>", m->v[s] * series[s].factor, m->step);
	else
		fputs("<td class=\"n\">-</td><td></td>", out);
}

/* Of one run: the last number, and the best one, the first if several are. */
static bool
put_series(const struct history *h, size_t i, int s, const char *name,
           FILE *out)
{
	const struct moment *last = NULL, *best = NULL;
	enum best_kind which = series[s].best;

	for (const struct moment *m = h->row; m < h->row + h->n; m++) {
		if (!(m->has >> s & 1) || isnan(m->v[s]))
			continue;
		last = m;
		if (which == NEITHER)
			continue;
		if (!best || (which == LOWEST ? m->v[s] < best->v[s]
		              : m->v[s] > best->v[s]))
			best = m;
	}
	if (!last)
		return false;
	fprintf(out, "<tr><td>%s</td><td><i style=\"background:%s\"></i> ",
	        name, chart_color(i));
	markup_text(h->path, out);
	fputs("</td>", out);
	put_value_cells(last, s, out);
	put_value_cells(best, s, out);
	fputs("</tr>\n", out);
	return true;
}

static void
put_value_table(const struct history *h, size_t runs, FILE *out)
{
	fputs("<h2>Last and best</h2>\n<table id=\"values\">\n<tr><th>series"
	      "</th><th>run</th><th>last</th><th>at step</th><th>best</th>"
	      "<th>at step</th></tr>\n", out);
	for (int s = 0; s < NSERIES; s++)
		for (size_t i = 0; i < runs; i++)
			put_series(&h[i], i, s, series_name(h, runs, s), out);
	fputs("</table>\n", out);
}

/* ---- notes ---- */

/* Rows in which it is no number, and the step of the first. */
static size_t
count_holes(const struct history *h, int s, double *step)
{
	size_t n = 0;

	for (size_t i = 0; i < h->n; i++) {
		if (!history_has(h, i, (enum series)s)
		    || !isnan(h->row[i].v[s]))
			continue;
		if (!n++)
			*step = h->row[i].step;
	}
	return n;
}

static void
put_note(const struct history *h, const char *text, FILE *out)
{
	fputs("<p class=\"note\">", out);
	markup_text(h->path, out);
	fprintf(out, ": %s</p>\n", text);
}

static void
put_notes(const struct history *h, FILE *out)
{
	char text[320];
	double step = 0;

	for (int s = 0; s < NSERIES; s++) {
		size_t n = count_holes(h, s, &step);

		if (!n)
			continue;
		snprintf(text, sizeof(text), "the %s is not a number in %zu "
		         "row%s, first at step %.0f; the curve has a gap and "
		         "a red mark there", series[s].name, n,
		         n == 1 ? "" : "s", step);
		put_note(h, text, out);
	}
	if (h->skipped) {
		snprintf(text, sizeof(text), "%" PRIu64 " steps were skipped",
		         h->skipped);
		put_note(h, text, out);
	}
	if (h->again) {
		snprintf(text, sizeof(text), "%" PRIu64 " rows were "
		         "repeated by a run that resumed: the later ones are "
		         "shown", h->again);
		put_note(h, text, out);
	}
	if (h->broken) {
		fputs("<p class=\"note\">", out);
		markup_text(h->path, out);
		fprintf(out, ": skipped %" PRIu64 " malformed lines, the "
		        "first at line %" PRIu64 ": ", h->broken,
		        h->broken_line);
		markup_text(h->why, out);
		fputs("</p>\n", out);
	}
}

/* How curves are to be read, by the longest run. */
static void
put_reading(const struct history *h, size_t runs, FILE *out)
{
	size_t n = 0, half;

	for (size_t i = 0; i < runs; i++)
		n = h[i].n > n ? h[i].n : n;
	half = chart_half(n);
	fputs("<p id=\"reading\">Thin lines show ", out);
	if (n > CHART_POINTS)
		fprintf(out, "the minimum and maximum of every %zu rows",
		        (n + CHART_POINTS / 2 - 1) / (CHART_POINTS / 2));
	else
		fputs("every row", out);
	if (half)
		fprintf(out, "; thick lines show the mean of %zu neighbouring "
		        "rows", 2 * half + 1);
	fputs(".  Dashed lines show validation.</p>\n", out);
}

bool
page_put(const struct history *h, size_t runs, FILE *out)
{
	const struct chart chart[] = {
		{ "loss", S_LOSS, S_VALID_LOSS, 1, true, true },
		{ series[S_ACCURACY].name, S_ACCURACY, -1, 100, false, false },
		{ series[S_PERPLEXITY].name, S_PERPLEXITY, -1, 1, true, false },
		{ "gradient norm, before clipping", S_NORM, -1, 1, true, true },
		{ "learning rate", S_LR, -1, 1, false, false },
		{ series_name(h, runs, S_SPEED), S_SPEED, -1, 1, false, true },
		{ "loss scale", S_SCALE, -1, 1, true, false },
	};
	bool ok = true;

	markup_page(h->path, runs > 1 ? "training, compared with other "
	            "runs" : "training",
	            style, out);
	put_runs(h, runs, out);
	for (size_t i = 0; i < runs; i++)
		put_notes(&h[i], out);
	fputs("<h2>Curves</h2>\n", out);
	put_reading(h, runs, out);
	for (size_t i = 0; i < sizeof(chart) / sizeof(*chart) && ok; i++)
		ok = chart_put(&chart[i], h, runs, out);
	put_value_table(h, runs, out);
	markup_page_end(out);
	return ok;
}
