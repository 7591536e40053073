/* Memory beside that of the device: the host blocks of the local ranks, one
 * after the other.  Libraries that share a model share the owner's. */
#include "runtime/offload/offload.h"
#include "runtime/ranks/comm.h"
#include "runtime/support/now.h"
#include "runtime/world/inside.h"

#include <math.h>
#include <stdlib.h>

static struct memory *
owner_of(const struct world *w)
{
	return w->owner->memory;
}

/* Transfers that a program may have in flight. */
static uint32_t
count_host_transfers(const struct ckr_program *p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->ninstr; i++)
		n += p->instr[i].comm && comm_is_host(p->instr[i].comm);
	return n;
}

struct host_need
host_need(const struct ckr_library *lib)
{
	struct host_need need = { 0 };

	for (int i = 0; i < CKR_PROGRAMS; i++) {
		const struct ckr_program *p = &lib->program[i];
		uint32_t n = p->ninstr ? count_host_transfers(p) : 0;

		if (p->ninstr && p->host_bytes > need.bytes)
			need.bytes = p->host_bytes;
		need.transfers = n > need.transfers ? n : need.transfers;
	}
	return need;
}

ckr_status
host_block_open(struct world *w)
{
	struct memory *m = w->memory;
	struct host_need need = host_need(w->lib);
	struct offload_options opt = { .dir = w->offload_dir,
		.bytes = need.bytes * w->count,
		.most = need.transfers * w->count };

	if (w->owner != w || !need.bytes)
		return CKR_OK;
	m->host_bytes = need.bytes;
	return offload_open(&m->offload, w->device, &opt, w->err);
}

void
host_block_close(struct world *w)
{
	offload_close(w->memory->offload);
}

char *
world_host_block(const struct world *w, uint32_t r)
{
	const struct memory *m = owner_of(w);

	return offload_block(m->offload) + r * m->host_bytes;
}

uint64_t
world_host_bytes(const struct world *w)
{
	return owner_of(w)->host_bytes * w->count;
}

const char *
world_offload_dir(const struct world *w)
{
	const struct memory *m = owner_of(w);

	return m->offload ? offload_dir(m->offload) : NULL;
}

/* Bytes per second of copies between a device and pinned memory, of the slower
 * direction; 0: unknown.  Parameters go out, and back to where they are. */
static double
measure_pinned(const struct world *w)
{
	enum { LEAST = 1 << 22, MOST = 1 << 26, TIMES = 3 };
	const struct block *b = w->memory->resident;
	struct device *d = w->device;
	uint64_t n = b->size < MOST ? b->size : MOST;
	void *pinned = n >= LEAST ? device_alloc_pinned(d, n) : NULL;
	double least = INFINITY;

	if (!pinned)
		return 0;
	d->call->sync(d);
	for (int i = 0; i < TIMES; i++) {
		double begin = now_sec(), middle;

		d->call->copy_d2h(d, pinned, b->p, n);
		middle = now_sec();
		d->call->copy_h2d(d, b->p, pinned, n);
		d->call->sync(d);
		least = fmin(least, fmax(middle - begin, now_sec() - middle));
	}
	device_free_pinned(d, pinned);
	return least > 0 ? (double)n / least : 0;
}

double
world_host_rate(const struct world *w)
{
	const struct memory *m = owner_of(w);

	if (!w->device->addressable)
		return measure_pinned(w);
	return m->offload ? offload_rate(m->offload) : 0;
}

ckr_status
world_copy_host(struct world *w, char *copy, bool back)
{
	struct offload *o = owner_of(w)->offload;

	if (!o)
		return CKR_OK;
	return back ? offload_write(o, offload_block(o), copy,
	                            world_host_bytes(w), w->err)
	       : offload_read(o, copy, offload_block(o), world_host_bytes(w),
	                      w->err);
}

ckr_status
world_read_host(struct world *w, void *to, const void *at, uint64_t n)
{
	return offload_read(owner_of(w)->offload, to, at, n, w->err);
}

ckr_status
world_write_host(struct world *w, void *at, const void *from, uint64_t n)
{
	return offload_write(owner_of(w)->offload, at, from, n, w->err);
}
