/* The host as a device, and blocks of memory on any. */
#include "runtime/device/device.h"

#include <stdlib.h>
#include <string.h>

/* ---- the host ---- */

static void
host_close(struct device *d)
{
	(void)d;
}

static void *
host_alloc(struct device *d, uint64_t n)
{
	(void)d;
	return malloc(n);
}

static void
host_free(struct device *d, void *p)
{
	(void)d;
	free(p);
}

static void
host_copy(struct device *d, void *to, const void *from, uint64_t n)
{
	(void)d;
	if (n)
		memcpy(to, from, n);
}

static void
host_fill(struct device *d, void *to, int byte, uint64_t n)
{
	(void)d;
	memset(to, byte, n);
}

static void
host_sync(struct device *d)
{
	(void)d;
}

static void *
host_event_new(struct device *d)
{
	return d;
}

static void
host_event_on_stream(struct device *d, void *event, enum device_stream q)
{
	(void)d;
	(void)event;
	(void)q;
}

static void
host_fill_env(struct device *d, struct ckr_env *env)
{
	(void)d;
	(void)env;
}

static void *
host_graph_end(struct device *d)
{
	(void)d;
	return NULL;
}

static void
host_ignore(struct device *d, void *work)
{
	(void)d;
	(void)work;
}

static const struct device_calls host_calls = {
	.close = host_close, .alloc = host_alloc, .free = host_free,
	.alloc_pinned = host_alloc, .free_pinned = host_free,
	.copy_h2d = host_copy, .copy_d2h = host_copy, .fill = host_fill,
	.sync = host_sync, .copy_h2d_async = host_copy,
	.copy_d2h_async = host_copy, .event_new = host_event_new,
	.event_free = host_ignore, .event_record = host_event_on_stream,
	.event_wait = host_event_on_stream, .event_sync = host_ignore,
	.fill_env = host_fill_env, .graph_begin = host_sync,
	.graph_end = host_graph_end, .graph_launch = host_ignore,
	.graph_free = host_ignore,
};

struct device device_host = { .call = &host_calls, .host = true,
	.name = "cpu" };

/* ---- any ---- */

void
device_close(struct device *d)
{
	if (d)
		d->call->close(d);
}

bool
device_failed(const struct device *d, struct err *e)
{
	if (!d->first.text[0])
		return false;
	*e = d->first;
	return true;
}

ckr_status
device_status(const struct device *d, struct err *e)
{
	if (!device_failed(d, e))
		return CKR_OK;
	return d->status != CKR_OK ? d->status : CKR_EIO;
}

ckr_status
device_map(struct device *d, struct block *b, uint64_t size, bool paint,
           bool at_end, int threads, struct err *e)
{
	if (d->host)
		return block_map(b, size, paint, at_end, threads, e);
	*b = (struct block){ .size = size, .painted = paint };
	if (!size)
		return CKR_OK;
	b->p = d->call->alloc(d, size);
	if (b->p)
		d->call->fill(d, b->p, paint ? BLOCK_PAINT : 0, size);
	return device_failed(d, e) ? CKR_ENOMEM : CKR_OK;
}

void
device_unmap(struct device *d, struct block *b)
{
	if (d->host) {
		block_unmap(b);
		return;
	}
	if (b->p)
		d->call->free(d, b->p);
	*b = (struct block){ .p = NULL };
}

uint64_t
device_touched(struct device *d, const struct block *b)
{
	/* places in a device's arena, and so their ends, are multiples */
	enum { CHUNK = 1 << 16, ALIGN = 256 };
	unsigned char chunk[CHUNK];
	uint64_t end = b->size;

	if (d->host || !b->painted)
		return block_touched(b);
	while (end) {
		uint64_t n = end < CHUNK ? end : CHUNK, i = n;

		d->call->copy_d2h(d, chunk, b->p + (end - n), n);
		while (i && chunk[i - 1] == BLOCK_PAINT)
			i--;
		if (i)
			return (end - n + i + ALIGN - 1) / ALIGN * ALIGN;
		end -= n;
	}
	return 0;
}
