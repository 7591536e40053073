#include "runtime/device/nccl_transport.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/gpu.h"
#include "runtime/support/gpu_library.h"

struct nccl_transport {
	struct gpu *gpu;
	struct nccl nccl;
	void *dl;
	bool aborted;
	nccl_comm comm[NCCL_GROUPS];    /* NULL: no such group */
	cu_stream stream;
	void *workspace;
	uint64_t nbegun, nended;        /* transfers */
	/* how many transfers may be enqueued; beginning one more waits until
	 * the compute stream is empty */
	uint32_t depth;
	cu_event *begin, *end;          /* [depth] */
	char text[32];
};

/* Types in which sums are taken. */
static const int nccl_type[CKR_DTYPE_COUNT] = {
	[CKR_F32] = NCCL_F32, [CKR_F64] = NCCL_F64, [CKR_F16] = NCCL_F16,
	[CKR_BF16] = NCCL_BF16, [CKR_I64] = NCCL_I64, [CKR_I32] = NCCL_I32,
};

/* ---- errors ---- */

static bool
nccl_done(struct nccl_transport *t, nccl_result r, const char *what)
{
	struct device *d = &t->gpu->device;

	if (r == 0 || r == NCCL_IN_PROGRESS)
		return true;
	if (!d->first.text[0]) {
		err_set(&d->first, CKR_ERANK, "GPU %s: %s: %s (%d)", d->name,
		        what, t->nccl.error_text(r), r);
		d->status = CKR_ERANK;
	}
	return false;
}

static bool
cuda_done(struct nccl_transport *t, cu_result r, const char *what)
{
	return gpu_done(t->gpu, r, what);
}

/* Whether work may be enqueued. */
static bool
is_live(const struct nccl_transport *t)
{
	return !t->aborted && !t->gpu->device.first.text[0];
}

/* ---- opening ---- */

static ckr_status
load_nccl(struct nccl_transport *t, struct err *e)
{
	static const char *const names[] = { "libnccl.so.2", NULL };
	int version = 0;

	t->dl = gpu_library_open(names);
	if (!t->dl)
		return err_set(e, CKR_EUNSUPPORTED, "GPUs of several processes "
		               "communicate by NCCL, which cannot be loaded: "
		               "%s; install it (libnccl2), set LD_LIBRARY_PATH "
		               "to its directory, or start one process, which "
		               "trains all ranks on one GPU", dlerror());
#define X(member, symbol, args) \
	*(void **)&t->nccl.member = dlsym(t->dl, #symbol); \
	if (!t->nccl.member) \
		return err_set(e, CKR_EUNSUPPORTED, "libnccl.so.2 is too " \
		               "old: it has no " #symbol \
		               "; expected 2.10 or later");
	NCCL_CALLS(X)
	X(error_text, ncclGetErrorString, )
#undef X
	t->nccl.version(&version);
	if (version < NCCL_OLDEST)
		return err_set(e, CKR_EUNSUPPORTED, "libnccl.so.2 is too old: "
		               "expected 2.10 or later, found %d.%d",
		               version / 1000, version / 100 % 10);
	snprintf(t->text, sizeof(t->text), "NCCL %d.%d.%d", version / 10000,
	         version / 100 % 100, version % 100);
	return CKR_OK;
}

ckr_status
nccl_open(struct nccl_transport **out, struct device *d, struct err *e)
{
	struct nccl_transport *t = *out = calloc(1, sizeof(*t));

	if (!t)
		return err_no_memory(e);
	t->gpu = gpu_of(d);
	return load_nccl(t, e);
}

static void
free_events(struct nccl_transport *t)
{
	for (uint32_t i = 0; i < t->depth && t->begin; i++) {
		if (t->begin[i])
			t->gpu->cu.event_free(t->begin[i]);
		if (t->end[i])
			t->gpu->cu.event_free(t->end[i]);
	}
	free(t->begin);
}

/* The library is not unloaded: it has threads of its own. */
void
nccl_close(struct nccl_transport *t)
{
	if (!t)
		return;
	for (int i = 0; i < NCCL_GROUPS; i++)
		if (t->comm[i] && !t->aborted)
			t->nccl.destroy(t->comm[i]);
	free_events(t);
	if (t->stream)
		t->gpu->cu.stream_free(t->stream);
	if (t->workspace)
		t->gpu->device.call->free(&t->gpu->device, t->workspace);
	free(t);
}

ckr_status
nccl_get_peer_info(struct nccl_transport *t, struct nccl_peer_info *card,
                   struct err *e)
{
	struct gpu *g = t->gpu;
	struct cu_uuid id = { { 0 } };

	cuda_done(t, g->cu.device_uuid(&id, g->number), "reading the device "
	          "UUID");
	memset(card, 0, sizeof(*card));
	memcpy(card->uuid, id.bytes, sizeof(card->uuid));
	snprintf(card->name, sizeof(card->name), "%.63s", g->name);
	snprintf(card->library, sizeof(card->library), "%s", t->text);
	return device_status(&g->device, e);
}

ckr_status
nccl_new_id(struct nccl_transport *t, struct nccl_id *id, struct err *e)
{
	nccl_result r = t->nccl.new_id(id);

	return r ? err_set(e, CKR_EIO, "ncclGetUniqueId: %s (%d)",
	                   t->nccl.error_text(r), r) : CKR_OK;
}

static bool
create_events(struct nccl_transport *t, uint32_t depth)
{
	const struct cu *cu = &t->gpu->cu;
	bool ok = true;

	t->begin = calloc(2 * (size_t)depth, sizeof(*t->begin));
	if (!t->begin) {
		err_no_memory(&t->gpu->device.first);
		return false;
	}
	t->end = t->begin + depth;
	t->depth = depth;
	for (uint32_t i = 0; i < depth && ok; i++)
		ok = cuda_done(t, cu->event_new(&t->begin[i],
		                                CU_EVENT_NO_TIMING),
		               "creating an event")
		     && cuda_done(t, cu->event_new(&t->end[i],
		                                   CU_EVENT_NO_TIMING),
		                  "creating an event");
	return ok;
}

ckr_status
nccl_alloc(struct nccl_transport *t, uint32_t depth, uint64_t workspace,
           struct err *e)
{
	struct device *d = &t->gpu->device;

	if (cuda_done(t,
	              t->gpu->cu.stream_new(&t->stream, CU_STREAM_NON_BLOCKING),
	              "creating a stream")
	    && create_events(t, depth) && workspace)
		t->workspace = d->call->alloc(d, workspace);
	return device_status(d, e);
}

ckr_status
nccl_join_group(struct nccl_transport *t, int group, const struct nccl_id *id,
                uint32_t ranks, uint32_t rank, struct err *e)
{
	nccl_result r = t->nccl.join(&t->comm[group], (int)ranks, *id,
	                             (int)rank);

	return r ? err_set(e, CKR_EIO, "GPU %s: ncclCommInitRank: %s (%d)",
	                   t->gpu->name, t->nccl.error_text(r), r) : CKR_OK;
}

void *
nccl_workspace(const struct nccl_transport *t)
{
	return t->workspace;
}

/* ---- transfers ---- */

static bool
has_ended(struct nccl_transport *t, cu_event event)
{
	cu_result r = t->gpu->cu.event_query(event);

	return r != CU_NOT_READY && cuda_done(t, r, "waiting for an event");
}

/* As far as somebody has asked. */
static void
update_ended(struct nccl_transport *t)
{
	while (t->nended < t->nbegun
	       && has_ended(t, t->end[t->nended % t->depth]))
		t->nended++;
}

static bool
is_full(struct nccl_transport *t)
{
	update_ended(t);
	return t->nbegun - t->nended == t->depth;
}

uint64_t
nccl_begin(struct nccl_transport *t)
{
	const struct cu *cu = &t->gpu->cu;
	cu_event at;

	if (!is_live(t))
		return 0;
	if (is_full(t))
		t->gpu->device.call->sync(&t->gpu->device);
	if (is_full(t))
		return 0;               /* it has failed */
	at = t->begin[t->nbegun % t->depth];
	cuda_done(t, cu->event_record(at, gpu_stream(t->gpu)), "an event");
	cuda_done(t, cu->stream_wait(t->stream, at, 0), "an event");
	return ++t->nbegun;
}

void
nccl_end(struct nccl_transport *t)
{
	if (is_live(t))
		cuda_done(t, t->gpu->cu.event_record(
		          t->end[(t->nbegun - 1) % t->depth], t->stream),
		          "an event");
}

void
nccl_await(struct nccl_transport *t, uint64_t number)
{
	if (is_live(t) && number > t->nended)
		cuda_done(t, t->gpu->cu.stream_wait(gpu_stream(t->gpu),
		          t->end[(number - 1) % t->depth], 0), "an event");
}

bool
nccl_has_begun(struct nccl_transport *t, uint64_t number)
{
	return number <= t->nended
	       || has_ended(t, t->begin[(number - 1) % t->depth]);
}

uint64_t
nccl_count_ended(struct nccl_transport *t)
{
	update_ended(t);
	return t->nended;
}

bool
nccl_kernels_done(struct nccl_transport *t)
{
	return t->gpu->cu.stream_query(gpu_stream(t->gpu)) != CU_NOT_READY;
}

void
nccl_set_before_wait(struct nccl_transport *t,
                     ckr_status (*call)(void *, struct err *), void *user)
{
	t->gpu->device.before_wait = call;
	t->gpu->device.before_wait_user = user;
}

ckr_status
nccl_status(const struct nccl_transport *t, struct err *e)
{
	return device_status(&t->gpu->device, e);
}

const char *
nccl_async_error(struct nccl_transport *t)
{
	for (int i = 0; i < NCCL_GROUPS && !t->aborted; i++) {
		nccl_result r = 0;

		if (!t->comm[i])
			continue;
		if (t->nccl.async_error(t->comm[i], &r) == 0 && r
		    && r != NCCL_IN_PROGRESS)
			return t->nccl.error_text(r);
	}
	return NULL;
}

void
nccl_abort(struct nccl_transport *t)
{
	for (int i = 0; i < NCCL_GROUPS && !t->aborted; i++)
		if (t->comm[i])
			t->nccl.abort(t->comm[i]);
	t->aborted = true;
}

/* ---- within a GPU ---- */

static cu_stream
nccl_stream(const struct nccl_transport *t, bool in_transfer)
{
	return in_transfer ? t->stream : gpu_stream(t->gpu);
}

static void
copy_row_on_gpu(struct nccl_transport *t, cu_stream s, char *to,
                const char *from, uint64_t n)
{
	cuda_done(t, t->gpu->cu.copy((cu_address)(uintptr_t)to,
	                             (cu_address)(uintptr_t)from, n, s),
	          "copying on the GPU");
}

void
nccl_copy_rows(struct nccl_transport *t, bool in_transfer, void *to,
               const void *from, uint64_t width, uint64_t rows,
               uint64_t to_pitch, uint64_t from_pitch)
{
	struct cu_copy c = { .from_kind = CU_MEMORY_DEVICE,
		.from = (cu_address)(uintptr_t)from, .from_pitch = from_pitch,
		.to_kind = CU_MEMORY_DEVICE,
		.to = (cu_address)(uintptr_t)to, .to_pitch = to_pitch,
		.width = width, .rows = rows };
	cu_stream s = nccl_stream(t, in_transfer);
	uint64_t most = to_pitch > from_pitch ? to_pitch : from_pitch;

	if (!width || !is_live(t))
		return;
	if (rows > 1 && most <= INT32_MAX) {
		cuda_done(t, t->gpu->cu.copy_rows(&c, s),
		          "copying on the GPU");
		return;
	}
	for (uint64_t i = 0; i < rows; i++)
		copy_row_on_gpu(t, s, (char *)to + i * to_pitch,
		                (const char *)from + i * from_pitch, width);
}

void
nccl_zero(struct nccl_transport *t, bool in_transfer, void *to, uint64_t n)
{
	cu_stream s = nccl_stream(t, in_transfer);

	if (n && is_live(t))
		cuda_done(t, t->gpu->cu.fill((cu_address)(uintptr_t)to, 0, n,
		                             s), "filling memory");
}

/* ---- between them ---- */

void
nccl_all_reduce(struct nccl_transport *t, int group, const void *x, void *y,
                uint64_t n, uint8_t dtype, bool max)
{
	if (is_live(t))
		nccl_done(t, t->nccl.all_reduce(x, y, n, nccl_type[dtype],
		                                max ? NCCL_MAX : NCCL_SUM,
		                                t->comm[group], t->stream),
		          "ncclAllReduce");
}

void
nccl_all_gather(struct nccl_transport *t, int group, const void *x, void *y,
                uint64_t n)
{
	if (is_live(t))
		nccl_done(t, t->nccl.all_gather(x, y, n, NCCL_U8,
		                                t->comm[group], t->stream),
		          "ncclAllGather");
}

void
nccl_reduce_scatter(struct nccl_transport *t, int group, const void *x,
                    void *y, uint64_t n, uint8_t dtype)
{
	if (is_live(t))
		nccl_done(t, t->nccl.reduce_scatter(x, y, n, nccl_type[dtype],
		                                    NCCL_SUM, t->comm[group],
		                                    t->stream),
		          "ncclReduceScatter");
}

void
nccl_broadcast(struct nccl_transport *t, int group, const void *x, void *y,
               uint64_t n, uint32_t root)
{
	if (is_live(t))
		nccl_done(t, t->nccl.broadcast(x, y, n, NCCL_U8, (int)root,
		                               t->comm[group], t->stream),
		          "ncclBroadcast");
}

void
nccl_reduce(struct nccl_transport *t, int group, const void *x, void *y,
            uint64_t n, uint8_t dtype, uint32_t root)
{
	if (is_live(t))
		nccl_done(t, t->nccl.reduce(x, y, n, nccl_type[dtype], NCCL_SUM,
		                            (int)root, t->comm[group],
		                            t->stream), "ncclReduce");
}

void
nccl_send(struct nccl_transport *t, int group, const void *x, uint64_t n,
          uint32_t to)
{
	if (is_live(t))
		nccl_done(t, t->nccl.send(x, n, NCCL_U8, (int)to,
		                          t->comm[group], t->stream),
		          "ncclSend");
}

void
nccl_receive(struct nccl_transport *t, int group, void *y, uint64_t n,
             uint32_t from)
{
	if (is_live(t))
		nccl_done(t, t->nccl.receive(y, n, NCCL_U8, (int)from,
		                             t->comm[group], t->stream),
		          "ncclRecv");
}

void
nccl_group(struct nccl_transport *t, bool begin)
{
	if (!t->aborted)
		nccl_done(t, begin ? t->nccl.group_start()
		          : t->nccl.group_end(), "a group of NCCL calls");
}
