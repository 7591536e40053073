/* The host as a device. */
#include "runtime/blas/conv.h"
#include "runtime/blas/gemm.h"
#include "runtime/device/device.h"

#include <stdlib.h>
#include <string.h>

struct host {
	struct device device;
	struct gemm gemm;
	struct convs *convs;            /* NULL: none prepared */
};

static struct host *
host_of(struct device *d)
{
	return (struct host *)d;
}

static void
host_close(struct device *d)
{
	convs_close(host_of(d)->convs);
	gemm_release(&host_of(d)->gemm);
	free(d);
}

static ckr_status
host_open_libraries(struct device *d, const struct ckr_library *lib,
                    const char *name, struct ckr_env *env, struct err *e)
{
	struct host *h = host_of(d);

	CKR_TRY(gemm_choose(&h->gemm, name, lib->largest_product,
	                    env->threads, e));
	memcpy(d->libraries, h->gemm.text, sizeof(d->libraries));
	env->sgemm = h->gemm.fn;
	env->sgemm_one = h->gemm.one;
	env->sgemm_tile = h->gemm.tile;
	env->bgemm = h->gemm.bf16;
	h->convs = convs_open(h->gemm.onednn, lib->blocked, lib->nblocked,
	                      env->threads, h->gemm.bf16 != NULL);
	convs_fill_env(h->convs, env);
	return CKR_OK;
}

static void
host_take_libraries(struct device *d)
{
	gemm_begin(&host_of(d)->gemm);
}

static void
host_release_libraries(struct device *d)
{
	gemm_end(&host_of(d)->gemm);
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

ckr_status
device_open_host(struct device **out, struct err *e)
{
	static const struct device_calls calls = {
		.close = host_close, .enter = host_sync,
		.open_libraries = host_open_libraries,
		.take_libraries = host_take_libraries,
		.release_libraries = host_release_libraries,
		.map = block_map, .unmap = block_unmap,
		.alloc = host_alloc, .free = host_free,
		.alloc_pinned = host_alloc, .free_pinned = host_free,
		.copy_h2d = host_copy, .copy_d2h = host_copy,
		.fill = host_fill, .sync = host_sync,
		.copy_h2d_async = host_copy, .copy_d2h_async = host_copy,
		.event_new = host_event_new, .event_free = host_ignore,
		.event_record = host_event_on_stream,
		.event_wait = host_event_on_stream, .event_sync = host_ignore,
		.graph_begin = host_sync, .graph_end = host_graph_end,
		.graph_launch = host_ignore, .graph_free = host_ignore,
	};
	struct host *h = calloc(1, sizeof(*h));

	*out = NULL;
	if (!h)
		return err_no_memory(e);
	h->device = (struct device){ .call = &calls, .addressable = true,
		.name = "" };
	*out = &h->device;
	return CKR_OK;
}
