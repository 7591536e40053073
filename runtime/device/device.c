/* Errors of a device, and blocks of its memory. */
#include "runtime/device/device.h"

#include <string.h>

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

void
device_forget_error(struct device *d)
{
	d->first = (struct err){ .text = "" };
	d->status = CKR_OK;
}

ckr_status
device_no_memory(const struct device *d, struct err *e)
{
	return device_failed(d, e) ? CKR_ENOMEM : err_no_memory(e);
}

void *
device_alloc_pinned(struct device *d, uint64_t n)
{
	void *p = d->call->alloc_pinned(d, n + 1);

	if (p)
		memset(p, 0, n + 1);
	return p;
}

void
device_free_pinned(struct device *d, void *p)
{
	if (p)
		d->call->free_pinned(d, p);
}

ckr_status
device_map(struct device *d, struct block *b, uint64_t size, bool paint,
           bool at_end, int threads, struct err *e)
{
	if (d->call->map)
		return d->call->map(b, size, paint, at_end, threads, e);
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
	if (d->call->unmap) {
		d->call->unmap(b);
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

	if (d->addressable || !b->painted)
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
