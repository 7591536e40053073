/* The host block and its lanes. */
#include "runtime/offload/lane.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct offload {
	struct device *device;
	bool file;                      /* the block is a file */
	struct store store;
	char *block;
	uint64_t bytes;
	struct lane lane[OFFLOAD_LANES];
	int nlane;                      /* of these that are open */
};

/* ---- the block ---- */

/* Addresses without memory. */
static ckr_status
reserve_addresses(struct offload *o, struct err *e)
{
	void *p = mmap(NULL, o->bytes, PROT_NONE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return err_set(e, CKR_ENOMEM, "cannot reserve %llu bytes of "
		               "addresses for offloaded values: %m",
		               (unsigned long long)o->bytes);
	o->block = p;
	return CKR_OK;
}

static ckr_status
open_block(struct offload *o, const char *dir, struct err *e)
{
	if (o->file) {
		CKR_TRY(store_open(&o->store, dir ? dir : OFFLOAD_DIR,
		                   o->bytes, e));
		return reserve_addresses(o, e);
	}
	o->block = device_alloc_pinned(o->device, o->bytes);
	return o->block ? CKR_OK
	       : err_set(e, CKR_ENOMEM, "cannot allocate %llu bytes of pinned "
	                 "host memory for offloaded values; try a smaller "
	                 "--host-memory when compiling",
	                 (unsigned long long)o->bytes);
}

ckr_status
offload_open(struct offload **out, struct device *d,
             const struct offload_options *opt, struct err *e)
{
	struct offload *o = *out = calloc(1, sizeof(*o));

	if (!o)
		return err_no_memory(e);
	o->device = d;
	o->file = d->addressable;
	o->store.fd = -1;
	o->bytes = opt->bytes;
	CKR_TRY(open_block(o, opt->dir, e));
	while (o->nlane < OFFLOAD_LANES) {
		struct lane *l = &o->lane[o->nlane];

		l->direction = (enum offload_lane)o->nlane++;
		l->device = d;
		l->most = opt->most > 0 ? opt->most : 1;
		l->store = o->file ? &o->store : NULL;
		l->block = o->block;
		CKR_TRY(lane_open(l, e));
	}
	return CKR_OK;
}

void
offload_close(struct offload *o)
{
	if (!o)
		return;
	while (o->nlane > 0)
		lane_close(&o->lane[--o->nlane]);
	store_close(&o->store);
	if (o->block && o->file)
		munmap(o->block, o->bytes);
	else
		device_free_pinned(o->device, o->block);
	free(o);
}

char *
offload_block(const struct offload *o)
{
	return o->block;
}

const char *
offload_dir(const struct offload *o)
{
	return o->file ? o->store.dir : NULL;
}

/* ---- copies of the host ---- */

/* After a transfer that failed the block is that of no step. */
static ckr_status
status_of(struct offload *o, struct err *e)
{
	for (int k = 0; k < OFFLOAD_LANES; k++)
		if (o->lane[k].status != CKR_OK) {
			*e = o->lane[k].err;
			return o->lane[k].status;
		}
	return CKR_OK;
}

ckr_status
offload_read(struct offload *o, void *to, const char *at, uint64_t n,
             struct err *e)
{
	CKR_TRY(status_of(o, e));
	if (o->file)
		return store_read(&o->store, to, (uint64_t)(at - o->block), n,
		                  e);
	o->device->call->sync(o->device);
	memcpy(to, at, n);
	return CKR_OK;
}

ckr_status
offload_write(struct offload *o, char *at, const void *from, uint64_t n,
              struct err *e)
{
	CKR_TRY(status_of(o, e));
	if (o->file)
		return store_write(&o->store, (uint64_t)(at - o->block), from,
		                   n, e);
	o->device->call->sync(o->device);
	memcpy(at, from, n);
	return CKR_OK;
}

/* ---- transfers ---- */

void
offload_begin(struct offload *o, enum offload_lane which, void *device_at,
              char *at, uint64_t n, uint32_t begin, uint32_t end)
{
	lane_begin(&o->lane[which], (struct job){ device_at, at, n, begin,
	                                          end, NULL });
}

/* How many jobs have to be done when those that end with instruction i are: a
 * lane carries out one after the other. */
static uint64_t
jobs_until(const struct lane *l, uint32_t i)
{
	uint64_t jobs = l->ended;

	for (uint64_t k = l->ended; k < l->begun; k++)
		if (l->job[k % l->most].end <= i)
			jobs = k + 1;
	return jobs;
}

ckr_status
offload_wait(struct offload *o, enum offload_lane which, uint32_t i,
             int64_t *begin, struct err *e)
{
	struct lane *l = &o->lane[which];
	uint64_t jobs = jobs_until(l, i);

	*begin = -1;
	if (jobs == l->ended)
		return CKR_OK;
	*begin = l->job[(jobs - 1) % l->most].begin;
	return lane_wait(l, jobs, e);
}

double
offload_rate(struct offload *o)
{
	double in = lane_rate(&o->lane[OFFLOAD_FETCH]);
	double out = lane_rate(&o->lane[OFFLOAD_STORE]);

	return in > 0 && (in < out || out <= 0) ? in : out;
}
