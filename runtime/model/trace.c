/* Chrome trace files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/ranks/comm.h"
#include "runtime/model/peers.h"
#include "runtime/support/json_write.h"

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
	t->cap = (size_t)c->lib->program[0].ninstr * ckr_micro_batches(c)
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
gather_events(ckr_ctx *c)
{
	struct pg_task w = { .op = "gathering a trace", .patient = true };
	struct trace *t = c->trace;
	size_t mine = t->n, most = PG_BUFFER / sizeof(*t->event);
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
			CKR_TRY(pg_broadcast(c->team, r, all,
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
append_event(struct trace *t, uint32_t step, double from, double to, bool waits)
{
	if (t->n < t->cap && t->env)
		t->event[t->n++] = (struct event){ step, t->env->micro,
			t->env->replica * t->env->ranks + t->env->rank,
			t->env->step, from, to, waits };
}

void
trace_op(struct trace *t, uint32_t step, double from, double to)
{
	append_event(t, step, from, to, false);
}

void
trace_wait(ckr_ctx *c, uint32_t step, double from, double to)
{
	if (c->trace)
		append_event(c->trace, step, from, to, true);
	if (c->profile)
		profile_wait(c->profile, step, (to - from) / c->world.count);
}

const char *
trace_phase(int32_t phase)
{
	static const char *const text[] = { "forward", "recompute", "backward",
	                                    "update", "count" };

	return phase < 0 ? "other" : text[phase < 4 ? phase : 4];
}

double
trace_sent(const struct ckr_env *env, const struct ckr_program *p, uint32_t i)
{
	const struct ckr_instr *s = &p->instr[i];
	const int32_t *arg = p->arg + s->arg0;

	return s->comm ? comm_sent(s->comm, s->comm->axis ? env->replicas
	                           : env->ranks, &p->tensor[arg[0]],
	                           &p->tensor[arg[1]]) : 0;
}

bool
trace_is_apart(const struct ckr_program *p, uint32_t i)
{
	return p->instr[i].comm && p->instr[i].comm->end > i;
}

/* Begin an event of the format's kind ph. */
static void
open_event(struct json_out *j, const char *name, const char *ph)
{
	json_open(j, NULL, '{', JSON_TIGHT);
	json_text(j, "name", name);
	json_text(j, "ph", ph);
	json_int(j, "pid", 1);
}

/* What moves between ranks of one process has a row below theirs. */
static void
write_event(struct json_out *j, const struct trace *t, const struct event *e,
            const struct ckr_program *p, uint64_t live)
{
	const struct ckr_instr *s = &p->instr[e->step];
	uint32_t ranks = t->env->ranks * t->env->replicas;
	uint32_t row = s->comm && !t->far ? ranks : e->rank;
	double sec = e->to - e->from, far = trace_sent(t->env, p, e->step);
	double bytes = far > 0 ? far * (t->far ? 1 : ranks) : s->bytes;
	char name[80];

	/* "all_reduce", or what of it this is */
	snprintf(name, sizeof(name), "%s%s", e->waits ? "wait for "
	         : trace_is_apart(p, e->step) ? "begin " : "", s->op);
	json_open(j, NULL, '{', JSON_TIGHT);
	json_text(j, "name", name);
	json_text(j, "cat", trace_phase(s->phase));
	json_text(j, "ph", "X");
	json_int(j, "pid", 1);
	json_int(j, "tid", row + 1);
	json_print(j, "ts", "%.3f", (e->from - t->start) * 1e6);
	json_print(j, "dur", "%.3f", sec * 1e6);
	json_open(j, "args", '{', JSON_TIGHT);
	json_int(j, "step", (int64_t)e->train_step + 1);
	json_int(j, "micro", e->micro);
	json_int(j, "index", e->step);
	json_text(j, "onnx", s->origin ? s->origin : "");
	if (e->waits) {
		json_bool(j, "waits", true);
		json_close(j);
		json_close(j);
		return;
	}
	json_print(j, "planned_us", "%.3f", s->sec * 1e6);
	if (far > 0)
		json_real(j, "sent_bytes", 17, far);
	else
		json_print(j, "gflops", "%.3f",
		           sec > 0 ? s->flops / sec * 1e-9 : 0);
	json_print(j, "gbytes", "%.3f", sec > 0 ? bytes / sec * 1e-9 : 0);
	json_close(j);
	json_close(j);
	open_event(j, "memory", "C");
	json_print(j, "ts", "%.3f", (e->from - t->start) * 1e6);
	json_open(j, "args", '{', JSON_TIGHT);
	json_int(j, "resident", (int64_t)p->resident_bytes);
	json_int(j, "arena in use", (int64_t)live);
	json_close(j);
	json_close(j);
}

/* The name of the process, or of a row of its ranks. */
static void
write_row_name(struct json_out *j, const char *what, uint32_t row,
               const char *name)
{
	open_event(j, what, "M");
	if (row)
		json_int(j, "tid", row);
	json_open(j, "args", '{', JSON_TIGHT);
	json_text(j, "name", name);
	json_close(j);
	json_close(j);
}

static void
write_rank_names(struct json_out *j, uint32_t ranks, bool far)
{
	char name[32];

	for (uint32_t r = 0; ranks > 1 && r + far <= ranks; r++) {
		snprintf(name, sizeof(name), "rank %u", r);
		write_row_name(j, "thread_name", r + 1,
		               r < ranks ? name : "between ranks");
	}
}

static ckr_status
print_events(FILE *f, void *ctx)
{
	const ckr_ctx *c = ctx;
	const struct ckr_program *p = &c->lib->program[0];
	const struct trace *t = c->trace;
	const uint64_t *live = t->live;
	struct json_out json = { .f = f, .tight = true }, *j = &json;

	json_open(j, NULL, '{', JSON_TIGHT);
	json_text(j, "displayTimeUnit", "ms");
	json_open(j, "traceEvents", '[', JSON_LINES);
	for (size_t i = 0; i < t->n; i++)
		write_event(j, t, &t->event[i], p, live[t->event[i].step]);
	write_rank_names(j, c->world.tp * c->world.dp, t->far);
	write_row_name(j, "process_name", 0, c->lib->name);
	json_close(j);
	json_close(j);
	putc('\n', f);
	return CKR_OK;
}

static ckr_status
write_trace(ckr_ctx *c)
{
	struct trace *t = c->trace;

	t->live = rt_live_bytes(&c->lib->program[0]);
	return t->live ? new_file_print(&t->file, print_events, c, &c->err)
	       : rt_no_memory(c);
}

ckr_status
trace_close(ckr_ctx *c)
{
	ckr_status s = c->team ? gather_events(c) : CKR_OK;

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
