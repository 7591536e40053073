/* Streams, events and graphs of the emulated GPU, and copies on them. */
#include "tests/cuda/fake.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- work that is kept ---- */

static struct fake_stream *streams;

static void
append(struct fake_stream *s, struct fake_work work)
{
	struct fake_work *w = malloc(sizeof *w);

	*w = work;
	if (!s->end) {
		s->first = NULL;
		s->end = &s->first;
	}
	*s->end = w;
	s->end = &w->next;
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

/* The first of what a stream keeps, if it can be done. */
static int
go_on(struct fake_stream *s)
{
	struct fake_work *w = s->first;

	if (s->capturing || !s->end)
		return 0;
	if (w->ready && !w->ready(w->arg))
		return 0;
	if (w->run) {
		fake_enter();
		w->run(w->arg);
		fake_leave();
	}
	s->first = w->next;
	if (!s->first)
		s->end = NULL;
	w->drop(w->arg);
	free(w);
	return 1;
}

/* All that can be done. */
static void
go_on_all(void)
{
	int any = 1;

	while (any) {
		any = 0;
		for (struct fake_stream *s = streams; s; s = s->next)
			any |= go_on(s);
	}
}

static void
drain(struct fake_stream *s)
{
	go_on_all();
	while (s->end && !s->capturing) {
		usleep(50);
		go_on_all();
	}
}

/* A copy, by rows, or what memory is filled with. */
struct copy {
	uint64_t to, from;
	size_t to_pitch, from_pitch, width, rows;
	int byte;                       /* it is filled with; -1: copied */
	char data[];                    /* of the host, if from is 0 */
};

static void
copy_run(void *arg)
{
	const struct copy *c = arg;

	for (size_t i = 0; i < c->rows; i++) {
		char *to = (char *)(uintptr_t)c->to + i * c->to_pitch;
		const char *from = c->from ? (char *)(uintptr_t)c->from
		                   : c->data;

		if (c->byte >= 0)
			memset(to, c->byte, c->width);
		else
			memmove(to, from + i * c->from_pitch, c->width);
	}
}

/* Of n bytes that the driver takes over. */
static CUresult
copy_start(struct fake_stream *s, struct copy copy, const void *data, size_t n)
{
	struct copy *c;

	go_on_all();
	if (s->capturing)
		return 900;
	if (fake_lost())
		return 719;
	if (!fake_mine(copy.to, (copy.rows - 1) * copy.to_pitch + copy.width)
	    || (copy.from && !fake_mine(copy.from, (copy.rows - 1)
	                              * copy.from_pitch + copy.width)))
		return 700;
	c = malloc(sizeof *c + n);
	*c = copy;
	if (n)
		memcpy(c->data, data, n);
	if (s->end) {
		keep(s, copy_run, free, c);
		return 0;
	}
	fake_enter();
	copy_run(c);
	fake_leave();
	free(c);
	return 0;
}

EXPORT CUresult
cuMemcpyHtoDAsync_v2(unsigned long long to, const void *from, size_t n,
                     struct fake_stream *stream)
{
	return copy_start(stream, (struct copy){ to, 0, 0, 0, n, 1, -1 }, from,
	                  n);
}

EXPORT CUresult
cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t n,
                     struct fake_stream *stream)
{
	return copy_start(stream, (struct copy){ to, from, 0, 0, n, 1, -1 },
	                  NULL, 0);
}

EXPORT CUresult
cuMemsetD8Async(unsigned long long to, unsigned char byte, size_t n,
                struct fake_stream *stream)
{
	return copy_start(stream, (struct copy){ to, 0, 0, 0, n, 1, byte },
	                  NULL, 0);
}

EXPORT CUresult
cuMemcpy2DAsync_v2(const struct cu_copy *m, struct fake_stream *stream)
{
	if (m->from_kind != 2 || m->to_kind != 2 || m->width > m->to_pitch
	    || m->width > m->from_pitch || m->to_pitch > INT32_MAX
	    || m->from_pitch > INT32_MAX)
		return 1;
	return copy_start(stream, (struct copy){ m->to, m->from, m->to_pitch,
	                  m->from_pitch, m->width, m->rows, -1 }, NULL, 0);
}

/* To memory that the driver does not know: who calls waits. */
EXPORT CUresult
cuMemcpyDtoHAsync_v2(void *to, unsigned long long from, size_t n,
                     struct fake_stream *stream)
{
	if (stream->capturing)
		return 900;
	drain(stream);
	if (fake_lost())
		return 719;
	if (!fake_mine(from, n))
		return 700;
	fake_enter();
	memcpy(to, (const void *)(uintptr_t)from, n);
	fake_leave();
	return 0;
}

/* ---- events ---- */

struct event {
	uint64_t recorded, over;
};

/* One of its times. */
struct moment {
	struct event *event;
	uint64_t number;
};

static struct moment *
moment_new(struct event *event)
{
	struct moment *m = malloc(sizeof *m);

	*m = (struct moment){ event, event->recorded };
	return m;
}

static void
moment_come(void *arg)
{
	const struct moment *m = arg;

	m->event->over = m->number;
}

static int
moment_over(void *arg)
{
	const struct moment *m = arg;

	return m->event->over >= m->number;
}

EXPORT CUresult
cuEventCreate(struct event **event, unsigned flags)
{
	*event = calloc(1, sizeof **event);
	return flags == 2 ? 0 : 1;
}

EXPORT CUresult
cuEventRecord(struct event *event, struct fake_stream *s)
{
	go_on_all();
	if (s->capturing)
		return 900;
	event->recorded++;
	if (s->end)
		keep(s, moment_come, free, moment_new(event));
	else
		event->over = event->recorded;
	return 0;
}

EXPORT CUresult
cuEventQuery(struct event *event)
{
	go_on_all();
	return event->over == event->recorded ? 0 : 600;
}

EXPORT CUresult
cuStreamWaitEvent(struct fake_stream *s, struct event *event, unsigned flags)
{
	go_on_all();
	if (s->capturing || flags)
		return 900;
	if (s->end || event->over < event->recorded)
		keep_until(s, moment_over, free, moment_new(event));
	return 0;
}

/* What is kept may know it still. */
EXPORT CUresult
cuEventDestroy_v2(struct event *event)
{
	go_on_all();
	if (event->over == event->recorded)
		free(event);
	return 0;
}

/* ---- streams and graphs ---- */

EXPORT CUresult
cuStreamCreate(struct fake_stream **stream, unsigned flags)
{
	(void)flags;
	*stream = calloc(1, sizeof **stream);
	(*stream)->keep = keep;
	(*stream)->keep_until = keep_until;
	(*stream)->next = streams;
	streams = *stream;
	(*stream)->enter = fake_enter;
	(*stream)->leave = fake_leave;
	return 0;
}

/* Not while it is captured. */
EXPORT CUresult
cuStreamSynchronize(struct fake_stream *stream)
{
	if (stream->capturing)
		return 900;
	drain(stream);
	return fake_lost();
}

EXPORT CUresult
cuStreamQuery(struct fake_stream *stream)
{
	go_on_all();
	return stream->end ? 600 : 0;
}

EXPORT CUresult
cuStreamDestroy_v2(struct fake_stream *stream)
{
	struct fake_stream **at = &streams;

	drain(stream);
	while (*at != stream)
		at = &(*at)->next;
	*at = stream->next;
	free(stream);
	return 0;
}

EXPORT CUresult
cuStreamBeginCapture_v2(struct fake_stream *s, int mode)
{
	drain(s);
	if (s->end || mode != 1)
		return 1;
	s->first = NULL;
	s->end = &s->first;
	s->capturing = 1;
	return 0;
}

EXPORT CUresult
cuStreamEndCapture(struct fake_stream *s, struct fake_work ***graph)
{
	if (!s->capturing)
		return 1;
	s->end = NULL;
	s->capturing = 0;
	*graph = malloc(sizeof **graph);
	**graph = s->first;
	return 0;
}

EXPORT CUresult
cuGraphInstantiateWithFlags(struct fake_work ***exec,
                            struct fake_work **graph,
                            unsigned long long flags)
{
	(void)flags;
	*exec = malloc(sizeof **exec);
	**exec = *graph;
	*graph = NULL;
	return 0;
}

EXPORT CUresult
cuGraphDestroy(struct fake_work **graph)
{
	free(graph);
	return 0;
}

EXPORT CUresult
cuGraphLaunch(struct fake_work **exec, struct fake_stream *s)
{
	if (s->capturing)
		return 900;
	drain(s);
	fake_enter();
	for (struct fake_work *w = *exec; w; w = w->next)
		w->run(w->arg);
	fake_leave();
	return 0;
}

EXPORT CUresult
cuGraphExecDestroy(struct fake_work **exec)
{
	for (struct fake_work *w = *exec, *next; w; w = next) {
		next = w->next;
		w->drop(w->arg);
		free(w);
	}
	free(exec);
	return 0;
}
