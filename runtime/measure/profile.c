/* Profiles: seconds per op, compared with the roofline of the machine. */
#include "runtime/measure/inside.h"
#include "runtime/file/file.h"
#include "runtime/support/json_write.h"

#include <stdlib.h>
#include <string.h>

struct profile {
	struct measure *c;
	struct observer observer;
	uint64_t first;                 /* training step it began at */
	uint32_t n;
	/* of instructions; a first call, which loads code and touches memory
	 * for the first time, counts only where it is the only one */
	struct timed {
		double sec, least, wait;        /* wait: for what it began */
		uint64_t calls;
	} of[];
};

/* ---- while steps run ---- */

static void
profile_instr(void *user, uint32_t i, double from, double to, bool moves)
{
	struct profile *f = user;
	/* all ranks at once: a rank's share */
	double sec = (to - from) / (moves ? f->c->world->count : 1);
	struct timed *t = &f->of[i];

	if (i >= f->n)
		return;
	if (t->calls++ < 2) {
		t->sec = t->least = sec;
		return;
	}
	t->sec += sec;
	if (sec < t->least)
		t->least = sec;
}

static void
profile_wait(void *user, uint32_t i, double from, double to)
{
	struct profile *f = user;

	/* as profile_instr counts the call that began it */
	if (f->of[i].calls <= 2)
		f->of[i].wait = 0;
	f->of[i].wait += (to - from) / f->c->world->count;
}

void
profile_free(struct measure *c)
{
	if (c->profile)
		stepping_unobserve(c->steps, &c->profile->observer);
	free(c->profile);
	c->profile = NULL;
}

static ckr_status
profile_start(struct measure *c)
{
	uint32_t n = c->lib->program[0].ninstr;
	struct profile *f = calloc(1, sizeof(*f) + n * sizeof(f->of[0]));

	if (!f)
		return err_no_memory(c->err);
	profile_free(c);
	c->profile = f;
	f->c = c;
	f->n = n;
	f->first = stepping_progress(c->steps)->step;
	f->observer = (struct observer){ .ran = profile_instr,
		.waited = profile_wait, .user = f };
	stepping_observe(c->steps, &f->observer);
	return CKR_OK;
}

/* ---- what they come to ---- */

static double
mean_without_first(const struct profile *f, uint32_t step, double sum)
{
	uint64_t n = f->of[step].calls;

	return n > 1 ? sum / (double)(n - 1) : sum;
}

static double
mean_sec(const struct profile *f, uint32_t step)
{
	return mean_without_first(f, step, f->of[step].sec);
}

static unsigned
count_cold(const struct profile *f)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += f->of[i].calls == 1;
	return n;
}

/* The best rates reached, over calls long enough to be believed. */
static void
best_rates(const struct profile *f, const struct ckr_program *p,
           double *flops, double *bytes)
{
	*flops = *bytes = 0;
	for (uint32_t i = 0; i < f->n; i++) {
		double sec = mean_sec(f, i);

		if (sec < 20e-6 || p->instr[i].comm)
			continue;
		if (p->instr[i].flops / sec > *flops)
			*flops = p->instr[i].flops / sec;
		if (p->instr[i].bytes / sec > *bytes)
			*bytes = p->instr[i].bytes / sec;
	}
}

/* Seconds below which a step does not get at these rates. */
static double
roofline_seconds(const struct ckr_instr *s, double flops, double bytes)
{
	double by_flops = flops > 0 ? s->flops / flops : 0;
	double by_bytes = bytes > 0 ? s->bytes / bytes : 0;

	return by_flops > by_bytes ? by_flops : by_bytes;
}

/* Under which all collectives take what they took, the shortest sending
 * nothing; in one process what moves is copied.  Between processes,
 * what others compute meanwhile takes no time that shows. */
static void
write_link_rate(struct json_out *j, const struct profile *m,
                const struct ckr_program *p, const struct world *w)
{
	uint32_t ranks = 0;             /* of the shortest one */
	bool far = w->team;
	double all = 0, sec = 0, least = -1, n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		double bytes = instr_sent(w, i);

		if (!m->of[i].calls || bytes <= 0
		    || (far && program_is_apart(p, i)))
			continue;
		n++;
		all += bytes;
		sec += mean_sec(m, i);
		if (least < 0 || mean_sec(m, i) < least) {
			least = mean_sec(m, i);
			ranks = instr_ranks(w, i);
		}
	}
	if (all <= 0 || sec <= 0)
		return;
	/* of equal ones nothing would be left */
	if (sec <= 2 * n * least)
		least = 0;
	json_real(j, "link_bytes_per_second", 6, all / (sec - n * least));
	json_real(j, "link_latency_seconds", 6, least / (ranks - 1));
}

static ckr_status
write_profile_file(FILE *f, void *ctx)
{
	const struct measure *c = ctx;
	const struct ckr_program *p = &c->lib->program[0];
	const struct profile *m = c->profile;
	double flops, bytes, host = world_host_rate(c->world);
	struct json_out json = { .f = f, .tight = true }, *j = &json;

	best_rates(m, p, &flops, &bytes);
	json_open(j, NULL, '{', JSON_TIGHT);
	json_text(j, "format", "ckc-profile");
	json_int(j, "version", 1);
	json_text(j, "name", "measured");
	json_text(j, "model", c->lib->name);
	json_int(j, "threads", c->world->threads);
	json_text(j, "blas", c->world->device->libraries);
	json_int(j, "steps", (int64_t)(stepping_progress(c->steps)->step
	         - m->first));
	json_open(j, "peak_flops", '{', JSON_TIGHT);
	json_real(j, "f32", 6, flops);
	json_close(j);
	json_real(j, "bandwidth", 6, bytes);
	write_link_rate(j, m, p, c->world);
	if (host > 0)
		json_real(j, "host_bytes_per_second", 6, host);
	json_int(j, "cold", count_cold(m));
	json_open(j, "ops", '[', JSON_LINES);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct ckr_instr *s = &p->instr[i];
		double far = instr_sent(c->world, i);

		if (!m->of[i].calls)
			continue;
		json_open(j, NULL, '{', JSON_TIGHT);
		json_int(j, "index", i);
		json_text(j, "op", s->op);
		json_text(j, "phase", instr_phase(s->phase));
		json_text(j, "onnx", s->origin ? s->origin : "");
		json_real(j, "seconds", 9, mean_sec(m, i));
		json_real(j, "least", 9, m->of[i].least);
		json_real(j, "planned", 9, s->sec);
		if (program_is_apart(p, i))
			json_real(j, "wait_seconds", 9,
			          mean_without_first(m, i, m->of[i].wait));
		if (far > 0) {
			json_real(j, "sent_bytes", 17, far);
		} else {
			json_real(j, "flops", 17, s->flops);
			json_real(j, "bytes", 17, s->bytes);
			json_real(j, "roof", 9,
			          roofline_seconds(s, flops, bytes));
		}
		json_close(j);
	}
	json_close(j);
	json_close(j);
	putc('\n', f);
	return CKR_OK;
}

/* ---- a table ---- */

/* Ops of one name and phase. */
struct op_kind {
	const char *op;
	int32_t phase;
	uint32_t count;
	double sec, roof;
};

static int
by_seconds(const void *a, const void *b)
{
	const struct op_kind *x = a, *y = b;

	return (x->sec < y->sec) - (x->sec > y->sec);
}

/* Sums over the steps measured; how many kinds there are. */
static uint32_t
sum_kinds(const struct profile *f, const struct ckr_program *p, double flops,
          double bytes, struct op_kind *kind)
{
	uint32_t n = 0, k;

	for (uint32_t i = 0; i < f->n; i++) {
		const struct ckr_instr *s = &p->instr[i];

		if (!f->of[i].calls)
			continue;
		for (k = 0; k < n; k++)
			if (kind[k].phase == s->phase
			    && !strcmp(kind[k].op, s->op))
				break;
		if (k == n)
			kind[n++] = (struct op_kind){ s->op, s->phase,
				0, 0, 0 };
		kind[k].count++;
		kind[k].sec += f->of[i].least;
		kind[k].roof += s->comm ? 0 : roofline_seconds(s, flops, bytes);
	}
	qsort(kind, n, sizeof(*kind), by_seconds);
	return n;
}

static void
write_op_kind(FILE *f, const struct op_kind *k, double all)
{
	fprintf(f, "%-18s %-9s %5u %10.6f %4.0f %%", k->op,
	        instr_phase(k->phase), k->count, k->sec,
	        100 * k->sec / all);
	if (k->roof > 0 && k->sec > 0)
		fprintf(f, "  %4.2f", k->roof / k->sec);
	fputc('\n', f);
}

ckr_status
measure_profile_table(struct measure *c, FILE *f)
{
	const struct ckr_program *p = &c->lib->program[0];
	double flops, bytes, all = 0;
	struct op_kind *kind;
	uint32_t n;

	if (!c->profile)
		return err_set(c->err, CKR_EARG, "profiling has not started");
	kind = calloc(p->ninstr + 1, sizeof(*kind));
	if (!kind)
		return err_no_memory(c->err);
	best_rates(c->profile, p, &flops, &bytes);
	n = sum_kinds(c->profile, p, flops, bytes, kind);
	for (uint32_t i = 0; i < n; i++)
		all += kind[i].sec;
	fprintf(f, "time by op: minimum seconds, and the fraction of the "
	        "roofline given by the\nbest rates in this profile (%.4g "
	        "GFLOP/s, %.4g GB/s)\n", flops * 1e-9, bytes * 1e-9);
	fprintf(f, "%-18s %-9s %5s %10s %6s  %s\n", "op", "phase", "ops",
	        "seconds", "share", "of roof");
	for (uint32_t i = 0; i < n && kind[i].sec > 0.01 * all; i++)
		write_op_kind(f, &kind[i], all);
	free(kind);
	return CKR_OK;
}

ckr_status
measure_profile(struct measure *c, const char *path)
{
	struct new_file out;
	ckr_status s = CKR_OK;

	if (!path)
		return profile_start(c);
	if (!c->profile)
		return err_set(c->err, CKR_EARG, "profiling has not started");
	if (world_is_first(c->world)) {
		s = new_file_open(&out, path, c->err);
		if (s == CKR_OK)
			s = new_file_print(&out, write_profile_file, c, c->err);
	}
	return world_agree(c->world, s, "writing a profile");
}
