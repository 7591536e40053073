/* Profiles: seconds per op, compared with the roofline of the machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/model/peers.h"
#include "runtime/support/utf8.h"

struct profile {
	uint32_t n;
	/* per step of the program; a first call, which loads code and touches
	 * memory for the first time, counts only where it is the only one */
	double *sec, *least, *wait;     /* wait: for what it has begun */
	uint64_t *calls;
	uint64_t first;                 /* training step it began at */
};

void
profile_free(ckr_ctx *c)
{
	if (!c->profile)
		return;
	free(c->profile->sec);
	free(c->profile->least);
	free(c->profile->wait);
	free(c->profile->calls);
	free(c->profile);
	c->profile = NULL;
}

static ckr_status
profile_start(ckr_ctx *c)
{
	uint32_t n = c->lib->program[0].ninstr;
	struct profile *f = calloc(1, sizeof(*f));

	if (!f)
		return rt_no_memory(c);
	profile_free(c);
	c->profile = f;
	f->n = n;
	f->sec = calloc(n + 1, sizeof(*f->sec));
	f->least = calloc(n + 1, sizeof(*f->least));
	f->wait = calloc(n + 1, sizeof(*f->wait));
	f->calls = calloc(n + 1, sizeof(*f->calls));
	f->first = c->step;
	if (f->sec && f->least && f->wait && f->calls)
		return CKR_OK;
	profile_free(c);
	return rt_no_memory(c);
}

void
profile_op(struct profile *f, uint32_t step, double sec)
{
	if (step >= f->n)
		return;
	if (f->calls[step]++ < 2) {
		f->sec[step] = f->least[step] = sec;
		return;
	}
	f->sec[step] += sec;
	if (sec < f->least[step])
		f->least[step] = sec;
}

void
profile_wait(struct profile *f, uint32_t step, double sec)
{
	/* as profile_op counts the call that began it */
	if (f->calls[step] <= 2)
		f->wait[step] = 0;
	f->wait[step] += sec;
}

static double
mean_without_first(const struct profile *f, uint32_t step, double sum)
{
	uint64_t n = f->calls[step];

	return n > 1 ? sum / (double)(n - 1) : sum;
}

static double
mean_sec(const struct profile *f, uint32_t step)
{
	return mean_without_first(f, step, f->sec[step]);
}

static unsigned
count_cold(const struct profile *f)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < f->n; i++)
		n += f->calls[i] == 1;
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
 * nothing; in one process what moves is copied.  far: between processes, where
 * what others compute meanwhile takes no time that shows. */
static void
write_link_rate(FILE *f, const struct profile *m, const struct ckr_program *p,
                const struct ckr_env *env, bool far)
{
	uint32_t ranks = env->ranks > 1 ? env->ranks : env->replicas;
	double all = 0, sec = 0, least = -1, n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		double bytes = trace_sent(env, p, i);

		if (!m->calls[i] || bytes <= 0 || (far && trace_is_apart(p, i)))
			continue;
		n++;
		all += bytes;
		sec += mean_sec(m, i);
		if (least < 0 || mean_sec(m, i) < least)
			least = mean_sec(m, i);
	}
	if (all <= 0 || sec <= 0)
		return;
	/* of equal ones nothing would be left */
	if (sec <= 2 * n * least)
		least = 0;
	fprintf(f, "\"link_bytes_per_second\":%.6g,"
	        "\"link_latency_seconds\":%.6g,", all / (sec - n * least),
	        least / (ranks - 1));
}

static ckr_status
write_profile_file(FILE *f, void *ctx)
{
	const ckr_ctx *c = ctx;
	const struct ckr_program *p = &c->lib->program[0];
	const struct profile *m = c->profile;
	double flops, bytes;
	const char *comma = "";

	best_rates(m, p, &flops, &bytes);
	fputs("{\"format\":\"ckc-profile\",\"version\":1,\"name\":\"measured\","
	      "\"model\":", f);
	utf8_json(f, c->lib->name);
	fprintf(f, ",\"threads\":%d,\"blas\":", c->env.threads);
	utf8_json(f, c->device->libraries);
	fprintf(f, ",\"steps\":%llu,\"peak_flops\":{\"f32\":%.6g},"
	        "\"bandwidth\":%.6g,",
	        (unsigned long long)(c->step - m->first), flops, bytes);
	write_link_rate(f, m, p, &c->env, c->team);
	fprintf(f, "\"cold\":%u,\"ops\":[", count_cold(m));
	for (uint32_t i = 0; i < m->n; i++) {
		const struct ckr_instr *s = &p->instr[i];
		double far = trace_sent(&c->env, p, i);

		if (!m->calls[i])
			continue;
		fprintf(f, "%s\n{\"index\":%u,\"op\":", comma, i);
		utf8_json(f, s->op);
		fprintf(f, ",\"phase\":\"%s\",\"onnx\":",
		        trace_phase(s->phase));
		utf8_json(f, s->origin ? s->origin : "");
		fprintf(f, ",\"seconds\":%.9g,\"least\":%.9g,\"planned\":%.9g",
		        mean_sec(m, i), m->least[i], s->sec);
		if (trace_is_apart(p, i))
			fprintf(f, ",\"wait_seconds\":%.9g",
			        mean_without_first(m, i, m->wait[i]));
		if (far > 0)
			fprintf(f, ",\"sent_bytes\":%.17g}", far);
		else
			fprintf(f, ",\"flops\":%.17g,\"bytes\":%.17g,"
			        "\"roof\":%.9g}", s->flops, s->bytes,
			        roofline_seconds(s, flops, bytes));
		comma = ",";
	}
	fputs("\n]}\n", f);
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

		if (!f->calls[i])
			continue;
		for (k = 0; k < n; k++)
			if (kind[k].phase == s->phase
			    && !strcmp(kind[k].op, s->op))
				break;
		if (k == n)
			kind[n++] = (struct op_kind){ s->op, s->phase,
				0, 0, 0 };
		kind[k].count++;
		kind[k].sec += f->least[i];
		kind[k].roof += s->comm ? 0 : roofline_seconds(s, flops, bytes);
	}
	qsort(kind, n, sizeof(*kind), by_seconds);
	return n;
}

static void
write_op_kind(FILE *f, const struct op_kind *k, double all)
{
	fprintf(f, "%-18s %-9s %5u %10.6f %4.0f %%", k->op,
	        trace_phase(k->phase), k->count, k->sec,
	        100 * k->sec / all);
	if (k->roof > 0 && k->sec > 0)
		fprintf(f, "  %4.2f", k->roof / k->sec);
	fputc('\n', f);
}

ckr_status
ckr_profile_table(ckr_ctx *c, FILE *f)
{
	const struct ckr_program *p = &c->lib->program[0];
	double flops, bytes, all = 0;
	struct op_kind *kind;
	uint32_t n;

	CKR_TRY(rt_need_quiet(c));
	if (!c->profile)
		return err_set(&c->err, CKR_EARG, "profiling has not started");
	kind = calloc(p->ninstr + 1, sizeof(*kind));
	if (!kind)
		return rt_no_memory(c);
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
ckr_profile(ckr_ctx *c, const char *path)
{
	struct new_file out;
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	if (!path)
		return profile_start(c);
	if (!c->profile)
		return err_set(&c->err, CKR_EARG, "profiling has not started");
	s = peers_first(c) ? new_file_open(&out, path, &c->err) : CKR_OK;
	if (s == CKR_OK && peers_first(c))
		s = new_file_print(&out, write_profile_file, c, &c->err);
	return peers_agree(c, s, "writing a profile");
}
