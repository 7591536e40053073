/* Streams, events and graphs of the emulated driver: see libcuda.c. */
#include "tests/cuda/fake.h"

#include <unistd.h>

struct fake_count fake_count;
CUresult fake_broken;
static struct fake_stream *streams;

/* ---- queues ---- */

static unsigned long
lateness(void)
{
	const char *s = getenv("CKR_FAKE_GPU_LATE");

	return s ? strtoul(s, NULL, 10) : 0;
}

static void
append(struct fake_stream *s, struct fake_work work)
{
	struct fake_work *w = malloc(sizeof *w);

	*w = work;
	if (s->capturing) {
		struct fake_stream *o = s->origin;

		w->on = s->number;
		w->after = s->clock;
		s->clock.n[s->number]++;
		*o->end = w;
		o->end = &w->next;
		return;
	}
	*s->queue_end = w;
	s->end = s->queue_end = &w->next;
	s->given++;
}

static void
keep(struct fake_stream *s, void (*run)(void *), void (*drop)(void *),
     void *arg)
{
	append(s, (struct fake_work){ .run = run, .drop = drop, .arg = arg });
}

static void
keep_until(struct fake_stream *s, int (*ready)(void *), void (*drop)(void *),
           void *arg)
{
	append(s, (struct fake_work){ .ready = ready, .drop = drop,
	                              .arg = arg });
}

/* The first of the queue, which is over. */
static void
take_out(struct fake_stream *s)
{
	struct fake_work *w = s->queue;

	s->queue = w->next;
	if (!s->queue) {
		s->queue_end = &s->queue;
		if (!s->capturing)
			s->end = lateness() ? s->queue_end : NULL;
	}
	s->done++;
	w->drop(w->arg);
	free(w);
}

/* Until so many works are done; 0: one is not ready. */
static int
run(struct fake_stream *s, unsigned long done)
{
	while (s->done < done) {
		const struct fake_work *w = s->queue;

		if (w->ready && !w->ready(w->arg))
			return 0;
		if (w->run) {
			fake_enter();
			w->run(w->arg);
			fake_leave();
		}
		take_out(s);
	}
	return 1;
}

void
fake_finish(void)
{
	for (struct fake_stream *s = streams; s; s = s->next)
		run(s, s->given);
}

static unsigned
draw(unsigned n)
{
	static uint64_t x;

	x = (x ? x : lateness()) * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(x >> 33) % n;
}

/* At any call a GPU may have done something; one that is not late has done
 * what it can. */
static void
go_on(void)
{
	unsigned long late = lateness();

	if (!late)
		fake_finish();
	for (struct fake_stream *s = streams; late > 1 && s; s = s->next) {
		unsigned long to = s->done + draw(8);

		if (draw(3) == 0)
			run(s, to < s->given ? to : s->given);
	}
}

/* What other GPUs wait for goes on meanwhile. */
void
fake_wait(struct fake_stream *s, unsigned long done)
{
	while (!run(s, done)) {
		fake_finish();
		usleep(50);
	}
}

void
fake_give(struct fake_stream *s, void (*f)(void *), void (*drop)(void *),
          void *arg)
{
	go_on();
	if (s->end) {
		keep(s, f, drop, arg);
		return;
	}
	fake_enter();
	f(arg);
	fake_leave();
	drop(arg);
}

/* ---- streams ---- */

static unsigned
free_number(void)
{
	unsigned n = 0;

	for (const struct fake_stream *s = streams; s;)
		if (s->number == n) {
			n++;
			s = streams;
		} else {
			s = s->next;
		}
	if (n == FAKE_STREAMS)
		abort();
	return n;
}

EXPORT CUresult
cuStreamCreate(struct fake_stream **stream, unsigned flags)
{
	struct fake_stream *s = calloc(1, sizeof *s);

	if (fake_context())
		return 201;
	(void)flags;
	s->keep = keep;
	s->keep_until = keep_until;
	s->enter = fake_enter;
	s->leave = fake_leave;
	s->current = fake_context;
	s->queue_end = &s->queue;
	s->end = lateness() ? s->queue_end : NULL;
	s->next = streams;
	s->number = free_number();
	streams = s;
	*stream = s;
	return 0;
}

/* Not while it is captured. */
EXPORT CUresult
cuStreamSynchronize(struct fake_stream *stream)
{
	if (fake_context())
		return 201;
	if (stream->capturing)
		return 900;
	fake_count.stops++;
	fake_wait(stream, stream->given);
	return fake_broken ? fake_broken : fake_lost();
}

/* Who asks waits: then even what is late goes on. */
static CUresult
ask(struct fake_stream *s, unsigned long done)
{
	if (!run(s, done))
		fake_finish();
	return s->done >= done ? 0 : CU_NOT_READY;
}

EXPORT CUresult
cuStreamQuery(struct fake_stream *stream)
{
	if (fake_context())
		return 201;
	return ask(stream, stream->given);
}

/* Events may know it still. */
EXPORT CUresult
cuStreamDestroy_v2(struct fake_stream *stream)
{
	struct fake_stream **s = &streams;

	if (fake_context())
		return 201;
	fake_wait(stream, stream->given);
	while (*s != stream)
		s = &(*s)->next;
	*s = stream->next;
	return 0;
}

/* ---- events ---- */

struct event {
	struct fake_stream *of;         /* NULL: never recorded */
	unsigned long at;               /* works of it before the event */
	unsigned long capture;          /* in which it was recorded; 0: none */
	struct fake_clock clock;
};

EXPORT CUresult
cuEventCreate(struct event **e, unsigned flags)
{
	if (fake_context())
		return 201;
	*e = calloc(1, sizeof **e);
	return flags == CU_EVENT_NO_TIMING ? 0 : 1;
}

EXPORT CUresult
cuEventDestroy_v2(struct event *e)
{
	if (fake_context())
		return 201;
	free(e);
	return 0;
}

EXPORT CUresult
cuEventRecord(struct event *e, struct fake_stream *s)
{
	if (fake_context())
		return 201;
	go_on();
	*e = (struct event){ s, s->given, s->capturing, s->clock };
	return 0;
}

/* The stream takes part in the capture of the event: at an end, or joined by
 * it. */
static CUresult
wait_in_capture(struct fake_stream *s, const struct event *e)
{
	if (!e->capture || e->capture != e->of->capturing
	    || (s->capturing && s->capturing != e->capture))
		return e->capture ? 907 : 905;
	if (!s->capturing) {
		s->capturing = e->capture;
		s->origin = e->of->origin;
		s->clock = (struct fake_clock){ { 0 } };
		s->end = &s->first;
	}
	for (int k = 0; k < FAKE_STREAMS; k++)
		if (s->clock.n[k] < e->clock.n[k])
			s->clock.n[k] = e->clock.n[k];
	return 0;
}

static int
is_reached(void *arg)
{
	const struct event *e = arg;

	return run(e->of, e->at);
}

/* The event as it is now, wherever it is recorded next. */
EXPORT CUresult
cuStreamWaitEvent(struct fake_stream *s, const struct event *e, unsigned flags)
{
	struct event *now;

	if (fake_context())
		return 201;
	if (flags)
		return 900;
	go_on();
	if (s->capturing || e->capture)
		return wait_in_capture(s, e);
	if (!e->of || (!s->end && e->of->done >= e->at))
		return 0;
	now = malloc(sizeof *now);
	*now = *e;
	keep_until(s, is_reached, free, now);
	return 0;
}

EXPORT CUresult
cuEventQuery(const struct event *e)
{
	if (fake_context())
		return 201;
	if (e->capture)
		return 907;
	return e->of ? ask(e->of, e->at) : 0;
}

EXPORT CUresult
cuEventSynchronize(const struct event *e)
{
	if (fake_context())
		return 201;
	if (e->capture)
		return 907;
	go_on();
	if (e->of && e->of->done < e->at) {
		fake_count.waits++;
		fake_wait(e->of, e->at);
	}
	return fake_broken ? fake_broken : fake_lost();
}

/* ---- graphs ---- */

static void
drop_works(struct fake_work *w)
{
	for (struct fake_work *next; w; w = next) {
		next = w->next;
		w->drop(w->arg);
		free(w);
	}
}

static unsigned long captures;

/* All streams of the capture go on by themselves; 904: the origin does not run
 * behind all that one of them has captured. */
static CUresult
end_capture(struct fake_stream *origin)
{
	unsigned long capture = origin->capturing;
	CUresult r = 0;

	for (struct fake_stream *s = streams; s; s = s->next) {
		if (s->capturing != capture)
			continue;
		if (origin->clock.n[s->number] < s->clock.n[s->number])
			r = 904;
		if (s->invalid)
			r = 901;
		s->invalid = 0;
		s->capturing = 0;
		s->end = lateness() || s->queue ? s->queue_end : NULL;
	}
	return r;
}

EXPORT CUresult
cuStreamBeginCapture_v2(struct fake_stream *s, int mode)
{
	if (fake_context())
		return 201;
	if (s->capturing || mode != 1)
		return 1;
	s->capturing = ++captures;
	s->origin = s;
	s->clock = (struct fake_clock){ { 0 } };
	s->first = NULL;
	s->end = &s->first;
	return 0;
}

EXPORT CUresult
cuStreamEndCapture(struct fake_stream *s, struct fake_work ***graph)
{
	CUresult r;

	if (fake_context())
		return 201;
	if (!s->capturing || s->origin != s)
		return 1;
	r = end_capture(s);
	if (r) {
		drop_works(s->first);
		return r;
	}
	*graph = malloc(sizeof **graph);
	**graph = s->first;
	return 0;
}

EXPORT CUresult
cuGraphInstantiateWithFlags(struct fake_work ***exec,
                            struct fake_work **graph,
                            unsigned long long flags)
{
	if (fake_context())
		return 201;
	(void)flags;
	fake_count.graphs++;
	*exec = malloc(sizeof **exec);
	**exec = *graph;
	*graph = NULL;
	return 0;
}

EXPORT CUresult
cuGraphDestroy(struct fake_work **graph)
{
	if (fake_context())
		return 201;
	free(graph);
	return 0;
}

/* The next work of a stream, from w on; NULL: there is none. */
static struct fake_work *
next_on(struct fake_work *w, unsigned stream)
{
	while (w && w->on != stream)
		w = w->next;
	return w;
}

static int
may_run(const struct fake_work *w, const struct fake_clock *done)
{
	int may = w != NULL;

	for (int k = 0; may && k < FAKE_STREAMS; k++)
		may = w->after.n[k] <= done->n[k];
	return may;
}

/* Of the works that may run next one: what copies, as late as it may, or any,
 * as CKR_FAKE_GPU_LATE says.  Streams are numbered from the one that computes
 * on. */
static unsigned
choose_stream(struct fake_work *const *next, const struct fake_clock *done)
{
	unsigned long late = lateness();
	unsigned from = late > 1 ? draw(FAKE_STREAMS) : 0, k;

	for (unsigned i = 0; i < FAKE_STREAMS; i++) {
		k = late ? (from + i) % FAKE_STREAMS : FAKE_STREAMS - 1 - i;
		if (may_run(next[k], done))
			return k;
	}
	abort();
}

static void
run_graph(void *arg)
{
	struct fake_work *first = *(struct fake_work **)arg;
	struct fake_work *next[FAKE_STREAMS];
	struct fake_clock done = { { 0 } };
	unsigned long n = 0;

	for (struct fake_work *w = first; w; w = w->next)
		n++;
	for (unsigned k = 0; k < FAKE_STREAMS; k++)
		next[k] = next_on(first, k);
	for (; n > 0; n--) {
		unsigned k = choose_stream(next, &done);

		next[k]->run(next[k]->arg);
		done.n[k]++;
		next[k] = next_on(next[k]->next, k);
	}
}

static void
stay(void *arg)
{
	(void)arg;
}

EXPORT CUresult
cuGraphLaunch(struct fake_work **exec, struct fake_stream *s)
{
	if (fake_context())
		return 201;
	if (s->capturing)
		return 900;
	fake_count.launches++;
	fake_give(s, run_graph, stay, exec);
	return 0;
}

EXPORT CUresult
cuGraphExecDestroy(struct fake_work **exec)
{
	if (fake_context())
		return 201;
	fake_finish();
	drop_works(*exec);
	free(exec);
	return 0;
}
