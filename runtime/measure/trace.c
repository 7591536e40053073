/* Chrome trace files. */
#include "runtime/measure/inside.h"
#include "runtime/file/file.h"
#include "runtime/support/json_write.h"
#include "runtime/support/now.h"

#include <stdlib.h>
#include <string.h>

enum { TRACED_STEPS = 3 };
#define NO_EVENT UINT32_MAX

struct event {
	uint32_t step;                  /* of the program */
	uint32_t micro, rank;
	uint64_t train_step;
	double from, to;
	bool waits;                     /* for what the step has begun */
};

struct trace {
	struct measure *c;
	struct observer observer;
	struct new_file file;
	struct event *event;
	size_t n, cap;
	unsigned steps;                 /* that have begun */
	bool far;                       /* each process has a rank */
	double start;
	uint64_t *live;                 /* bytes during each step, at the end */
};

static void
trace_drop(struct measure *c)
{
	struct trace *t = c->trace;

	if (!t)
		return;
	stepping_unobserve(c->steps, &t->observer);
	new_file_abort(&t->file);
	free(t->event);
	free(t->live);
	free(t);
	c->trace = NULL;
}

/* As many events in all processes: stages take different turns. */
static ckr_status
equal_counts(struct measure *c, size_t *n)
{
	struct pg_task task = { .op = "gathering a trace", .patient = true };
	struct trace *t = c->trace;
	struct pg_vote v = { .most = t->n };
	struct event *all;
	ckr_status s;

	CKR_TRY(pg_agree(c->world->team, &v, &task, c->err));
	*n = v.most;
	all = realloc(t->event, (*n * c->world->team->size + 1) * sizeof(*all));
	s = world_agree(c->world, all ? CKR_OK : err_no_memory(c->err),
	                task.op);
	if (all)
		t->event = all;
	for (size_t i = t->n; i < *n && s == CKR_OK; i++)
		t->event[i] = (struct event){ .step = NO_EVENT };
	return s;
}

/* Events of all processes, to the first one. */
static ckr_status
gather_events(struct measure *c)
{
	struct pg_task task = { .op = "gathering a trace", .patient = true };
	struct process_group *team = c->world->team;
	struct trace *t = c->trace;
	size_t mine, most = PG_BUFFER / sizeof(*t->event);
	struct event *all;

	for (size_t i = 0; i < t->n; i++) {
		t->event[i].from -= t->start;
		t->event[i].to -= t->start;
	}
	t->start = 0;
	CKR_TRY(equal_counts(c, &mine));
	for (uint32_t r = 0; r < team->size; r++)
		for (size_t i = 0, n; i < mine; i += n) {
			n = mine - i < most ? mine - i : most;
			all = r == team->rank ? t->event + i
			      : (struct event *)team->out;
			CKR_TRY(pg_broadcast(team, r, all,
			                     (int)(n * sizeof(*all)), &task,
			                     c->err));
			if (r && !team->rank)
				memcpy(t->event + r * mine + i, all,
				       n * sizeof(*all));
		}
	t->n = mine * (world_is_first(c->world) ? team->size : 1);
	return CKR_OK;
}

static void
append_event(struct trace *t, uint32_t i, double from, double to, bool waits)
{
	const struct ckr_env *env = stepping_env(t->c->steps);

	if (t->n < t->cap && t->steps)
		t->event[t->n++] = (struct event){ i, env->micro,
			world_process_of(t->c->world,
				t->c->lib->program[0].instr[i].stage)
			+ env->replica * env->ranks + env->rank, env->step,
			from, to, waits };
}

/* ---- the file ---- */

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
	const struct world *w = t->c->world;
	const struct ckr_instr *s = &p->instr[e->step];
	uint32_t ranks = world_processes(w);
	uint32_t row = s->comm && !t->far ? ranks : e->rank;
	double sec = e->to - e->from, far = instr_sent(w, e->step);
	double bytes = far > 0 ? far * (t->far ? 1 : ranks) : s->bytes;
	char name[80];

	/* "all_reduce", or what of it this is */
	snprintf(name, sizeof(name), "%s%s", e->waits ? "wait for "
	         : program_is_apart(p, e->step) ? "begin " : "", s->op);
	json_open(j, NULL, '{', JSON_TIGHT);
	json_text(j, "name", name);
	json_text(j, "cat", instr_phase(s->phase));
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

/* The turn of a stage that an event is part of; NULL: of none. */
static const struct ckr_turn *
turn_of(const struct ckr_library *lib, const struct event *e)
{
	if (e->step == NO_EVENT
	    || lib->program[0].instr[e->step].phase >= CKR_COUNT)
		return NULL;
	for (uint32_t i = 0; i < lib->nturn; i++) {
		const struct ckr_turn *t = &lib->turn[i];

		if (t->first <= e->step && e->step < t->end
		    && t->micro == e->micro)
			return t;
	}
	return NULL;
}

/* Whether it runs its stage's second plan. */
static bool
has_second_plan(const struct ckr_library *lib, const struct ckr_turn *t)
{
	const unsigned char *second = lib->stage[t->stage].second;

	return t->kind <= CKR_TURN_BACKWARD && second && second[t->slot];
}

/* Events of one turn of a rank. */
struct turn_span {
	const struct ckr_turn *turn;    /* NULL: there are none */
	const struct event *first, *last;
};

static void
write_turn(struct json_out *j, const struct trace *t, const struct turn_span *s)
{
	static const char *const what[] = { "forward", "backward", "weight",
		                            "norm", "update" };

	if (!s->turn)
		return;
	open_event(j, what[s->turn->kind], "X");
	json_text(j, "cat", "turn");
	json_int(j, "tid", s->first->rank + 1);
	json_print(j, "ts", "%.3f", (s->first->from - t->start) * 1e6);
	json_print(j, "dur", "%.3f", (s->last->to - s->first->from) * 1e6);
	json_open(j, "args", '{', JSON_TIGHT);
	json_int(j, "step", (int64_t)s->first->train_step + 1);
	json_int(j, "micro", s->turn->micro);
	json_int(j, "slot", s->turn->slot);
	if (has_second_plan(t->c->lib, s->turn))
		json_int(j, "plan", 2);
	if (t->c->world->chunks > 1)
		json_int(j, "stage", s->turn->stage);
	json_close(j);
	json_close(j);
}

/* Those of a rank, in its row. */
static void
write_turns(struct json_out *j, const struct trace *t, uint32_t rank)
{
	struct turn_span span = { .turn = NULL };

	for (size_t i = 0; i < t->n; i++) {
		const struct event *e = &t->event[i];
		const struct ckr_turn *turn = e->rank == rank
			? turn_of(t->c->lib, e) : NULL;

		if (!turn)
			continue;
		if (turn != span.turn
		    || e->train_step != span.last->train_step) {
			write_turn(j, t, &span);
			span = (struct turn_span){ turn, e, e };
		}
		span.last = e;
	}
	write_turn(j, t, &span);
}

static ckr_status
print_events(FILE *f, void *ctx)
{
	const struct measure *c = ctx;
	const struct ckr_program *p = &c->lib->program[0];
	const struct trace *t = c->trace;
	const uint64_t *live = t->live;
	uint32_t ranks = world_processes(c->world);
	struct json_out json = { .f = f, .tight = true }, *j = &json;

	json_open(j, NULL, '{', JSON_TIGHT);
	json_text(j, "displayTimeUnit", "ms");
	json_open(j, "traceEvents", '[', JSON_LINES);
	for (size_t i = 0; i < t->n; i++)
		if (t->event[i].step != NO_EVENT)
			write_event(j, t, &t->event[i], p,
			            live[t->event[i].step]);
	for (uint32_t r = 0; r < ranks && c->lib->nturn; r++)
		write_turns(j, t, r);
	write_rank_names(j, ranks, t->far);
	write_row_name(j, "process_name", 0, c->lib->name);
	json_close(j);
	json_close(j);
	putc('\n', f);
	return CKR_OK;
}

static ckr_status
write_trace(struct measure *c)
{
	struct trace *t = c->trace;

	t->live = program_live_bytes(&c->lib->program[0]);
	return t->live ? new_file_print(&t->file, print_events, c, c->err)
	       : err_no_memory(c->err);
}

static ckr_status
trace_close(struct measure *c)
{
	ckr_status s = c->world->team ? gather_events(c) : CKR_OK;

	if (s == CKR_OK && world_is_first(c->world))
		s = write_trace(c);
	s = world_agree(c->world, s, "writing a trace");
	trace_drop(c);
	return s;
}

/* ---- while steps run ---- */

static void
count_traced_step(void *user)
{
	struct trace *t = user;

	t->steps++;
}

static void
trace_instr(void *user, uint32_t i, double from, double to, bool moves)
{
	(void)moves;
	append_event(user, i, from, to, false);
}

static void
trace_wait(void *user, uint32_t i, double from, double to)
{
	append_event(user, i, from, to, true);
}

static ckr_status
end_traced_step(void *user, bool skipped)
{
	struct trace *t = user;

	(void)skipped;
	return t->steps < TRACED_STEPS ? CKR_OK : trace_close(t->c);
}

static ckr_status
trace_open(struct measure *c, const char *path)
{
	struct trace *t = c->trace = calloc(1, sizeof(*t));

	if (!t)
		return err_no_memory(c->err);
	t->c = c;
	t->file.fd = -1;
	t->far = c->world->team;
	t->observer = (struct observer){ .begin = count_traced_step,
		.ran = trace_instr, .waited = trace_wait,
		.end = end_traced_step, .user = t };
	stepping_observe(c->steps, &t->observer);
	/* an instruction, and waiting for what it begins */
	t->cap = (size_t)c->lib->program[0].ninstr
	         * library_micro_batches(c->lib) * (c->world->count + 1)
	         * TRACED_STEPS;
	t->event = malloc((t->cap + 1) * sizeof(*t->event));
	if (!t->event)
		return err_no_memory(c->err);
	return world_is_first(c->world) ? new_file_open(&t->file, path, c->err)
	       : CKR_OK;
}

ckr_status
measure_trace(struct measure *c, const char *path)
{
	ckr_status s;

	if (c->trace)
		CKR_TRY(trace_close(c));
	if (!path)
		return CKR_OK;
	s = world_agree(c->world, trace_open(c, path), "opening a trace");
	if (s != CKR_OK)
		trace_drop(c);
	else
		/* the same moment for all: clocks of machines differ */
		c->trace->start = now_sec();
	return s;
}

/* ---- the room ---- */

struct measure *
measure_open(struct world *w, struct stepping *steps)
{
	struct measure *c = malloc(sizeof(*c));

	if (c)
		*c = (struct measure){ .err = w->err, .lib = w->lib,
			.world = w, .steps = steps };
	return c;
}

void
measure_close(struct measure *c)
{
	if (!c)
		return;
	/* others may not come to this */
	if (c->trace && !c->world->team)
		trace_close(c);
	trace_drop(c);
	profile_free(c);
	free(c);
}
