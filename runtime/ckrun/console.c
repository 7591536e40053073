#include "runtime/ckrun/console.h"

#include <math.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/err.h"
#include "runtime/support/number.h"
#include "runtime/team/launch.h"

/* ---- streams ---- */

static FILE *loud, *silent;

void
console_begin(void)
{
	struct launch l = launch_find();

	loud = stderr;
	if (!l.by)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	silent = fopen("/dev/null", "w");
	/* the streams alone: what else writes to these files is heard */
	if (l.rank && silent)
		stdout = stderr = silent;
}

bool
console_is_terminal(void)
{
	struct launch l = launch_find();

	return isatty(STDOUT_FILENO) && !l.by && !l.size_by;
}

FILE *
console_errors(const ckr_ctx *m)
{
	return ckr_is_reporter(m) || !silent ? loud : silent;
}

/* ---- numbers ---- */

double
console_number(double x)
{
	return isnan(x) ? (double)NAN : x;
}

/* ---- evaluation ---- */

void
score_print(const struct score *s, FILE *f)
{
	fprintf(f, "loss %.9g", console_number(s->loss));
	if (!isnan(s->accuracy))
		fprintf(f, "  accuracy %.6g %%", 100 * s->accuracy);
	if (!isnan(s->perplexity))
		fprintf(f, "  perplexity %.6g", s->perplexity);
}

/* ---- steps ---- */

/* "3 h 20 min", of a duration. */
static void
print_left(double sec, FILE *f)
{
	uint64_t s = (uint64_t)(sec + 0.5);

	if (s >= 3600)
		fprintf(f, "  %llu h %llu min left",
		        (unsigned long long)(s / 3600),
		        (unsigned long long)(s / 60 % 60));
	else if (s >= 60)
		fprintf(f, "  %llu min left", (unsigned long long)(s / 60));
	else
		fprintf(f, "  %llu s left", (unsigned long long)s);
}

void
row_print(const struct step_row *r, bool over, FILE *f)
{
	char peak[24];

	fprintf(f, "%sstep %llu/%llu", over ? "\r\033[K" : "",
	        (unsigned long long)r->step, (unsigned long long)r->steps);
	if (r->has_loss)
		fprintf(f, "  loss %.9g", console_number(r->loss));
	if (r->has_norm)
		fprintf(f, "  norm %.6g", console_number(r->norm));
	if (r->scale > 0)
		fprintf(f, "  scale %g%s", r->scale,
		        r->overflow ? " overflows: skipped" : "");
	fprintf(f, "  %.6g %s/s  peak %s",
	        (double)r->units / (r->sec > 0 ? r->sec : 1e-9),
	        r->tokens ? "tokens" : "samples",
	        number_bytes(peak, (double)r->peak_bytes));
	if (over && r->left >= 0 && r->left < 1e9)
		print_left(r->left, f);
	if (!over)
		fputc('\n', f);
	fflush(f);
}

/* ---- --check ---- */

void
checked_add(struct ckr_checked *n, const struct ckr_checked *step)
{
	n->compared += step->compared;
	n->again += step->again;
	n->alone += step->alone;
	n->rounded = step->rounded;
	n->differ = fmax(n->differ, step->differ);
	n->median = fmax(n->median, step->median);
	if (step->largest >= n->largest) {
		n->largest = step->largest;
		n->where = step->where;
	}
}

void
checked_print(const struct ckr_checked *n)
{
	char name[NAME_TEXT];

	printf("check: %llu tensors compared, %llu of them recomputed, all "
	       "bits equal", (unsigned long long)n->compared,
	       (unsigned long long)n->again);
	if (n->alone)
		printf("; %llu not compared: only the plan has them",
		       (unsigned long long)n->alone);
	putchar('\n');
	if (!n->rounded)
		return;
	printf("check: bits were compared in the forward pass only; %llu "
	       "values are saved in 16 bits, and gradients differ by %.2e of "
	       "their norm (per parameter: median %.2e, largest %.2e, %s)\n",
	       (unsigned long long)n->rounded, n->differ, n->median,
	       n->largest, err_name(name, sizeof(name),
	                            n->where ? n->where : "none"));
}
