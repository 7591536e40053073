/* Measuring: chrome-trace files and seconds per op. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ranks/comm.h"
#include "runtime/model/peers.h"
#include "runtime/support/utf8.h"

enum { TRACED_STEPS = 3 };

/* ---- trace ---- */

struct event {
	uint32_t step;                  /* of the program */
	uint32_t micro, rank;
	uint64_t train_step;
	double from, to;
	bool waits;                     /* for what the step has begun */
};

struct trace {
	struct new_file file;
	struct event *event;
	size_t n, cap;
	unsigned steps;
	bool far;                       /* each process has a rank */
	const struct ckr_env *env;      /* NULL before the first step */
	double start;
	uint64_t *live;                 /* bytes during each step, at the end */
};

ckr_status
ckr_trace(ckr_ctx *c, const char *path)
{
	struct trace *t;
	ckr_status s;

	CKR_TRY(rt_need_quiet(c));
	if (c->trace)
		CKR_TRY(trace_close(c));
	if (!path)
		return CKR_OK;
	t = calloc(1, sizeof(*t));
	if (!t)
		return rt_no_memory(c);
	/* a step, and waiting for what it begins */
	t->cap = (size_t)c->lib->program[0].nstep * ckr_micro_batches(c)
	         * (c->world.count + 1) * TRACED_STEPS;
	t->event = malloc((t->cap + 1) * sizeof(*t->event));
	t->file.fd = -1;
	t->far = c->team;
	s = t->event ? CKR_OK : rt_no_memory(c);
	if (s == CKR_OK && peers_first(c))
		s = new_file_open(&t->file, path, &c->err);
	c->trace = t;
	s = peers_agree(c, s, "opening a trace");
	/* the same moment for all: clocks of machines differ */
	t->start = now_sec();
	if (s != CKR_OK)
		trace_drop(c);
	return s;
}

void
trace_drop(ckr_ctx *c)
{
	struct trace *t = c->trace;

	if (!t)
		return;
	new_file_abort(&t->file);
	free(t->event);
	free(t->live);
	free(t);
	c->trace = NULL;
}

/* Events of all processes, to the first one. */
static ckr_status
collect(ckr_ctx *c)
{
	struct team_task w = { .op = "gathering a trace", .patient = true };
	struct trace *t = c->trace;
	size_t mine = t->n, most = TEAM_ROOM / sizeof(*t->event);
	struct event *all;

	for (size_t i = 0; i < t->n; i++) {
		t->event[i].from -= t->start;
		t->event[i].to -= t->start;
	}
	t->start = 0;
	/* all take part in as many steps */
	all = realloc(t->event, (mine * c->team->size + 1) * sizeof(*all));
	CKR_TRY(peers_agree(c, all ? CKR_OK : rt_no_memory(c), w.op));
	t->event = all;
	for (uint32_t r = 0; r < c->team->size; r++)
		for (size_t i = 0, n; i < mine; i += n) {
			n = mine - i < most ? mine - i : most;
			if (r != c->team->rank)
				all = (struct event *)c->team->out;
			else
				all = t->event + i;
			CKR_TRY(team_spread(c->team, r, all,
			                    (int)(n * sizeof(*all)), &w,
			                    &c->err));
			if (r && !c->team->rank)
				memcpy(t->event + r * mine + i, all,
				       n * sizeof(*all));
		}
	t->n = mine * (peers_first(c) ? c->team->size : 1);
	return CKR_OK;
}

void
trace_step_begin(struct trace *t, const struct ckr_env *env)
{
	t->env = env;
	t->steps++;
}

static void
note(struct trace *t, uint32_t step, double from, double to, bool waits)
{
	if (t->n < t->cap && t->env)
		t->event[t->n++] = (struct event){ step, t->env->micro,
			t->env->replica * t->env->ranks + t->env->rank,
			t->env->step, from, to, waits };
}

void
trace_op(struct trace *t, uint32_t step, double from, double to)
{
	note(t, step, from, to, false);
}

static const char *
phase_text(int32_t phase)
{
	static const char *const text[] = { "forward", "recompute", "backward",
	                                    "update" };

	return phase >= 0 && phase < 4 ? text[phase] : "other";
}

/* Bytes that step i sends from a rank; one alone has nobody to send to. */
static double
sent(const struct ckr_env *env, const struct ckr_program *p, uint32_t i)
{
	const struct ckr_step *s = &p->step[i];
	const int32_t *arg = p->arg + s->arg0;

	return s->comm ? comm_sent(s->comm, s->comm->axis ? env->replicas
	                           : env->ranks, &p->tensor[arg[0]],
	                           &p->tensor[arg[1]]) : 0;
}

/* Whether step i ends what it begins. */
static bool
is_apart(const struct ckr_program *p, uint32_t i)
{
	return p->step[i].comm && p->step[i].comm->end > i;
}

/* "all_reduce", or what of it this is. */
static void
put_name(FILE *f, const struct ckr_program *p, const struct event *e)
{
	char name[80];

	snprintf(name, sizeof(name), "%s%s", e->waits ? "wait for "
	         : is_apart(p, e->step) ? "begin " : "", p->step[e->step].op);
	utf8_json(f, name);
}

/* What moves between ranks of one process has a row below theirs. */
static void
put_event(FILE *f, const struct trace *t, const struct event *e,
          const struct ckr_program *p, uint64_t live)
{
	const struct ckr_step *s = &p->step[e->step];
	uint32_t ranks = t->env->ranks * t->env->replicas;
	uint32_t row = s->comm && !t->far ? ranks : e->rank;
	double sec = e->to - e->from, far = sent(t->env, p, e->step);
	double bytes = far > 0 ? far * (t->far ? 1 : ranks) : s->bytes;

	fprintf(f, "{\"name\":");
	put_name(f, p, e);
	fprintf(f, ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%u,"
	        "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"step\":%llu,\"micro\":%u,"
	        "\"index\":%u,\"onnx\":", phase_text(s->phase),
	        row + 1, (e->from - t->start) * 1e6, sec * 1e6,
	        (unsigned long long)e->train_step + 1, e->micro, e->step);
	utf8_json(f, s->origin ? s->origin : "");
	if (e->waits) {
		fprintf(f, ",\"waits\":true}},\n");
		return;
	}
	fprintf(f, ",\"planned_us\":%.3f", s->sec * 1e6);
	if (far > 0)
		fprintf(f, ",\"sent_bytes\":%.17g", far);
	else
		fprintf(f, ",\"gflops\":%.3f",
		        sec > 0 ? s->flops / sec * 1e-9 : 0);
	fprintf(f, ",\"gbytes\":%.3f}},\n",
	        sec > 0 ? bytes / sec * 1e-9 : 0);
	fprintf(f, "{\"name\":\"memory\",\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,"
	        "\"args\":{\"resident\":%llu,\"arena in use\":%llu}},\n",
	        (e->from - t->start) * 1e6,
	        (unsigned long long)p->resident_bytes,
	        (unsigned long long)live);
}

static void
put_rows(FILE *f, uint32_t ranks, bool far)
{
	for (uint32_t r = 0; ranks > 1 && r + far <= ranks; r++) {
		fprintf(f, "{\"name\":\"thread_name\",\"ph\":\"M\","
		        "\"pid\":1,\"tid\":%u,\"args\":{\"name\":", r + 1);
		if (r < ranks)
			fprintf(f, "\"rank %u\"}},\n", r);
		else
			fputs("\"between ranks\"}},\n", f);
	}
}

static void
put_trace(FILE *f, void *ctx)
{
	const ckr_ctx *c = ctx;
	const struct ckr_program *p = &c->lib->program[0];
	const struct trace *t = c->trace;
	const uint64_t *live = t->live;

	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n", f);
	for (size_t i = 0; i < t->n; i++)
		put_event(f, t, &t->event[i], p, live[t->event[i].step]);
	put_rows(f, c->world.tp * c->world.dp, t->far);
	fputs("{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":"
	      "{\"name\":", f);
	utf8_json(f, c->lib->name);
	fputs("}}\n]}\n", f);
}

static ckr_status
write_trace(ckr_ctx *c)
{
	struct trace *t = c->trace;

	t->live = rt_live_bytes(&c->lib->program[0]);
	return t->live ? new_file_print(&t->file, put_trace, c, &c->err)
	       : rt_no_memory(c);
}

ckr_status
trace_close(ckr_ctx *c)
{
	ckr_status s = c->team ? collect(c) : CKR_OK;

	if (s == CKR_OK && peers_first(c))
		s = write_trace(c);
	s = peers_agree(c, s, "writing a trace");
	trace_drop(c);
	return s;
}

ckr_status
trace_step_end(ckr_ctx *c)
{
	return c->trace->steps < TRACED_STEPS ? CKR_OK : trace_close(c);
}

/* ---- profile ---- */

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
	uint32_t n = c->lib->program[0].nstep;
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
trace_wait(ckr_ctx *c, uint32_t step, double from, double to)
{
	struct profile *f = c->profile;

	if (c->trace)
		note(c->trace, step, from, to, true);
	if (!f)
		return;
	/* as profile_op counts the call that began it */
	if (f->calls[step] <= 2)
		f->wait[step] = 0;
	f->wait[step] += (to - from) / c->world.count;
}

static double
mean(const struct profile *f, uint32_t step, double sum)
{
	uint64_t n = f->calls[step];

	return n > 1 ? sum / (double)(n - 1) : sum;
}

static double
mean_sec(const struct profile *f, uint32_t step)
{
	return mean(f, step, f->sec[step]);
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

		if (sec < 20e-6 || p->step[i].comm)
			continue;
		if (p->step[i].flops / sec > *flops)
			*flops = p->step[i].flops / sec;
		if (p->step[i].bytes / sec > *bytes)
			*bytes = p->step[i].bytes / sec;
	}
}

/* Under which all collectives take what they took, the shortest sending
 * nothing; in one process what moves is copied.  far: between processes, where
 * what others compute meanwhile takes no time that shows. */
static void
put_link(FILE *f, const struct profile *m, const struct ckr_program *p,
         const struct ckr_env *env, bool far)
{
	uint32_t ranks = env->ranks > 1 ? env->ranks : env->replicas;
	double all = 0, sec = 0, least = -1, n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		double bytes = sent(env, p, i);

		if (!m->calls[i] || bytes <= 0 || (far && is_apart(p, i)))
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

static void
put_profile(FILE *f, void *ctx)
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
	utf8_json(f, c->gemm.text);
	fprintf(f, ",\"steps\":%llu,\"peak_flops\":{\"f32\":%.6g},"
	        "\"bandwidth\":%.6g,",
	        (unsigned long long)(c->step - m->first), flops, bytes);
	put_link(f, m, p, &c->env, c->team);
	fprintf(f, "\"cold\":%u,\"ops\":[", count_cold(m));
	for (uint32_t i = 0; i < m->n; i++) {
		const struct ckr_step *s = &p->step[i];
		double far = sent(&c->env, p, i);

		if (!m->calls[i])
			continue;
		fprintf(f, "%s\n{\"index\":%u,\"op\":", comma, i);
		utf8_json(f, s->op);
		fprintf(f, ",\"phase\":\"%s\",\"onnx\":", phase_text(s->phase));
		utf8_json(f, s->origin ? s->origin : "");
		fprintf(f, ",\"seconds\":%.9g,\"least\":%.9g,\"planned\":%.9g",
		        mean_sec(m, i), m->least[i], s->sec);
		if (is_apart(p, i))
			fprintf(f, ",\"wait_seconds\":%.9g",
			        mean(m, i, m->wait[i]));
		if (far > 0)
			fprintf(f, ",\"sent_bytes\":%.17g}", far);
		else
			fprintf(f, ",\"flops\":%.17g,\"bytes\":%.17g}",
			        s->flops, s->bytes);
		comma = ",";
	}
	fputs("\n]}\n", f);
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
		return err_set(&c->err, CKR_EARG, "measuring has not begun");
	s = peers_first(c) ? new_file_open(&out, path, &c->err) : CKR_OK;
	if (s == CKR_OK && peers_first(c))
		s = new_file_print(&out, put_profile, c, &c->err);
	return peers_agree(c, s, "writing a profile");
}
