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
		*s->end = w;
		s->end = &w->next;
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
	append(s, (struct fake_work){ NULL, NULL, run, drop, arg });
}

static void
keep_until(struct fake_stream *s, int (*ready)(void *), void (*drop)(void *),
           void *arg)
{
	append(s, (struct fake_work){ NULL, ready, NULL, drop, arg });
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
	if (s->capturing)
		return 900;
	go_on();
	*e = (struct event){ s, s->given };
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
	if (s->capturing || flags)
		return 900;
	go_on();
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
	return e->of ? ask(e->of, e->at) : 0;
}

EXPORT CUresult
cuEventSynchronize(const struct event *e)
{
	if (fake_context())
		return 201;
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

EXPORT CUresult
cuStreamBeginCapture_v2(struct fake_stream *s, int mode)
{
	if (fake_context())
		return 201;
	if (s->capturing || mode != 1)
		return 1;
	s->capturing = 1;
	s->first = NULL;
	s->end = &s->first;
	return 0;
}

EXPORT CUresult
cuStreamEndCapture(struct fake_stream *s, struct fake_work ***graph)
{
	if (fake_context())
		return 201;
	if (!s->capturing)
		return 1;
	s->capturing = 0;
	s->end = lateness() || s->queue ? s->queue_end : NULL;
	if (s->invalid) {
		drop_works(s->first);
		s->invalid = 0;
		return 901;
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

static void
run_graph(void *arg)
{
	for (struct fake_work *w = *(struct fake_work **)arg; w; w = w->next)
		w->run(w->arg);
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
