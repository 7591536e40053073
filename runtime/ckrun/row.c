#include "runtime/ckrun/row.h"

#include <math.h>

/* ,"key":x, of which JSON knows finite ones. */
static void
log_number(FILE *f, const char *key, double x, bool exact)
{
	if (isfinite(x))        /* reads back exactly */
		fprintf(f, ",\"%s\":%.*g", key, exact ? 9 : 17, x);
	else
		fprintf(f, ",\"%s\":null", key);
}

void
row_log(const struct row *r, FILE *f)
{
	fprintf(f, "{\"step\":%llu", (unsigned long long)r->step);
	if (r->has_loss)
		log_number(f, "loss", r->loss, r->exact);
	if (r->has_norm)
		log_number(f, "grad_norm", r->norm, true);
	if (r->scale > 0)
		log_number(f, "loss_scale", r->scale, true);
	fprintf(f, ",\"lr\":%.9g,\"seconds\":%.9g,\"%s\":%llu,"
	        "\"peak_bytes\":%llu%s}\n", r->lr, r->sec,
	        r->tokens ? "tokens" : "samples",
	        (unsigned long long)r->units,
	        (unsigned long long)r->peak_bytes,
	        r->skipped ? ",\"skipped\":true" : "");
	fflush(f);
}

void
row_print(const struct row *r, bool over, FILE *f)
{
	fprintf(f, "%sstep %llu/%llu", over ? "\r\033[K" : "",
	        (unsigned long long)r->step, (unsigned long long)r->steps);
	if (r->has_loss)
		fprintf(f, "  loss %.9g", r->loss);
	if (r->has_norm)
		fprintf(f, "  norm %.6g", r->norm);
	if (r->scale > 0)
		fprintf(f, "  scale %g%s", r->scale,
		        r->overflow ? " overflows: skipped" : "");
	fprintf(f, "  %.6g %s/s  peak %.1f MiB%s",
	        (double)r->units / (r->sec > 0 ? r->sec : 1e-9),
	        r->tokens ? "tokens" : "samples",
	        (double)r->peak_bytes / 1048576, over ? "" : "\n");
	fflush(f);
}
