#include "runtime/device/nccl_transport.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/gpu.h"
#include "runtime/support/gpu_library.h"

struct nccl_stream {
	nccl_comm comm;
	cu_stream stream;
	void *workspace;
	uint64_t nbegun, nended;        /* transfers */
	/* how many transfers may be enqueued; beginning one more waits until
	 * the compute stream is empty */
	uint32_t depth;
	cu_event *begin, *end;          /* [depth] */
};

struct nccl_transport {
	struct gpu *gpu;
	struct nccl nccl;
	void *dl;
	bool aborted;
	struct nccl_stream stream[NCCL_STREAMS];
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

/* NULL, and nothing is enqueued, if the stream has no group or has failed. */
static struct nccl_stream *
live_stream(struct nccl_transport *t, int stream)
{
	struct nccl_stream *l = &t->stream[stream];

	return t->aborted || t->gpu->device.first.text[0] || !l->comm ? NULL
	       : l;
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
free_stream(struct nccl_transport *t, struct nccl_stream *l)
{
	const struct cu *cu = &t->gpu->cu;

	if (l->comm && !t->aborted)
		t->nccl.destroy(l->comm);
	for (uint32_t i = 0; i < l->depth && l->begin; i++) {
		if (l->begin[i])
			cu->event_free(l->begin[i]);
		if (l->end[i])
			cu->event_free(l->end[i]);
	}
	free(l->begin);
	if (l->stream)
		cu->stream_free(l->stream);
	if (l->workspace)
		t->gpu->device.call->free(&t->gpu->device, l->workspace);
}

/* The library is not unloaded: it has threads of its own. */
void
nccl_close(struct nccl_transport *t)
{
	if (!t)
		return;
	for (int i = 0; i < NCCL_STREAMS; i++)
		free_stream(t, &t->stream[i]);
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
create_events(struct nccl_transport *t, struct nccl_stream *l, uint32_t depth)
{
	const struct cu *cu = &t->gpu->cu;
	bool ok = true;

	l->begin = calloc(2 * (size_t)depth, sizeof(*l->begin));
	if (!l->begin) {
		err_no_memory(&t->gpu->device.first);
		return false;
	}
	l->end = l->begin + depth;
	l->depth = depth;
	for (uint32_t i = 0; i < depth && ok; i++)
		ok = cuda_done(t, cu->event_new(&l->begin[i],
		                                CU_EVENT_NO_TIMING),
		               "creating an event")
		     && cuda_done(t, cu->event_new(&l->end[i],
		                                   CU_EVENT_NO_TIMING),
		                  "creating an event");
	return ok;
}

ckr_status
nccl_alloc_stream(struct nccl_transport *t, int stream, uint32_t depth,
                  uint64_t workspace, struct err *e)
{
	struct nccl_stream *l = &t->stream[stream];
	struct device *d = &t->gpu->device;

	if (cuda_done(t,
	              t->gpu->cu.stream_new(&l->stream, CU_STREAM_NON_BLOCKING),
	              "creating a stream")
	    && create_events(t, l, depth) && workspace)
		l->workspace = d->call->alloc(d, workspace);
	return device_status(d, e);
}

ckr_status
nccl_join_group(struct nccl_transport *t, int stream, const struct nccl_id *id,
                uint32_t ranks, uint32_t rank, struct err *e)
{
	nccl_result r = t->nccl.join(&t->stream[stream].comm, (int)ranks, *id,
	                             (int)rank);

	return r ? err_set(e, CKR_EIO, "GPU %s: ncclCommInitRank: %s (%d)",
	                   t->gpu->name, t->nccl.error_text(r), r) : CKR_OK;
}

void *
nccl_workspace(const struct nccl_transport *t, int stream)
{
	return t->stream[stream].workspace;
}

/* ---- transfers ---- */

static bool
has_ended(struct nccl_transport *t, cu_event event)
{
	cu_result r = t->gpu->cu.event_query(event);

	return r != CU_NOT_READY && cuda_done(t, r, "waiting for an event");
}

/* Which have ended, as far as somebody has asked. */
static void
update_ended(struct nccl_transport *t, struct nccl_stream *l)
{
	while (l->nended < l->nbegun
	       && has_ended(t, l->end[l->nended % l->depth]))
		l->nended++;
}

uint64_t
nccl_begin(struct nccl_transport *t, int stream)
{
	const struct cu *cu = &t->gpu->cu;
	struct nccl_stream *l = live_stream(t, stream);
	cu_event at;

	if (!l)
		return 0;
	update_ended(t, l);
	if (l->nbegun - l->nended == l->depth)
		t->gpu->device.call->sync(&t->gpu->device);
	update_ended(t, l);
	if (l->nbegun - l->nended == l->depth)
		return 0;               /* it has failed */
	at = l->begin[l->nbegun % l->depth];
	cuda_done(t, cu->event_record(at, t->gpu->stream), "an event");
	cuda_done(t, cu->stream_wait(l->stream, at, 0), "an event");
	return ++l->nbegun;
}

void
nccl_end(struct nccl_transport *t, int stream)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		cuda_done(t, t->gpu->cu.event_record(
		          l->end[(l->nbegun - 1) % l->depth], l->stream),
		          "an event");
}

void
nccl_await(struct nccl_transport *t, int stream, uint64_t number)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l && number > l->nended)
		cuda_done(t, t->gpu->cu.stream_wait(t->gpu->stream,
		          l->end[(number - 1) % l->depth], 0), "an event");
}

bool
nccl_has_begun(struct nccl_transport *t, int stream, uint64_t number)
{
	struct nccl_stream *l = &t->stream[stream];

	return number <= l->nended
	       || has_ended(t, l->begin[(number - 1) % l->depth]);
}

uint64_t
nccl_count_ended(struct nccl_transport *t, int stream)
{
	struct nccl_stream *l = &t->stream[stream];

	update_ended(t, l);
	return l->nended;
}

bool
nccl_kernels_done(struct nccl_transport *t)
{
	return t->gpu->cu.stream_query(t->gpu->stream) != CU_NOT_READY;
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
	for (int i = 0; i < NCCL_STREAMS && !t->aborted; i++) {
		nccl_result r = 0;

		if (!t->stream[i].comm)
			continue;
		if (t->nccl.async_error(t->stream[i].comm, &r) == 0 && r
		    && r != NCCL_IN_PROGRESS)
			return t->nccl.error_text(r);
	}
	return NULL;
}

void
nccl_abort(struct nccl_transport *t)
{
	for (int i = 0; i < NCCL_STREAMS && !t->aborted; i++)
		if (t->stream[i].comm)
			t->nccl.abort(t->stream[i].comm);
	t->aborted = true;
}

/* ---- within a GPU ---- */

static cu_stream
cuda_stream_of(struct nccl_transport *t, int stream)
{
	struct nccl_stream *l = stream < 0 ? NULL : live_stream(t, stream);

	return stream < 0 ? t->gpu->stream : l ? l->stream : NULL;
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
nccl_copy_rows(struct nccl_transport *t, int stream, void *to, const void *from,
               uint64_t width, uint64_t rows, uint64_t to_pitch,
               uint64_t from_pitch)
{
	struct cu_copy c = { .from_kind = CU_MEMORY_DEVICE,
		.from = (cu_address)(uintptr_t)from, .from_pitch = from_pitch,
		.to_kind = CU_MEMORY_DEVICE,
		.to = (cu_address)(uintptr_t)to, .to_pitch = to_pitch,
		.width = width, .rows = rows };
	cu_stream s = cuda_stream_of(t, stream);
	uint64_t most = to_pitch > from_pitch ? to_pitch : from_pitch;

	if (!s || !width || t->gpu->device.first.text[0])
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
nccl_zero(struct nccl_transport *t, int stream, void *to, uint64_t n)
{
	cu_stream s = cuda_stream_of(t, stream);

	if (s && n && !t->gpu->device.first.text[0])
		cuda_done(t, t->gpu->cu.fill((cu_address)(uintptr_t)to, 0, n,
		                             s), "filling memory");
}

/* ---- between them ---- */

void
nccl_all_reduce(struct nccl_transport *t, int stream, const void *x, void *y,
                uint64_t n, uint8_t dtype, bool max)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.all_reduce(x, y, n, nccl_type[dtype],
		                                max ? NCCL_MAX : NCCL_SUM,
		                                l->comm, l->stream),
		          "ncclAllReduce");
}

void
nccl_all_gather(struct nccl_transport *t, int stream, const void *x, void *y,
                uint64_t n)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.all_gather(x, y, n, NCCL_U8, l->comm,
		                                l->stream), "ncclAllGather");
}

void
nccl_reduce_scatter(struct nccl_transport *t, int stream, const void *x,
                    void *y, uint64_t n, uint8_t dtype)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.reduce_scatter(x, y, n, nccl_type[dtype],
		                                    NCCL_SUM, l->comm,
		                                    l->stream),
		          "ncclReduceScatter");
}

void
nccl_broadcast(struct nccl_transport *t, int stream, const void *x, void *y,
               uint64_t n, uint32_t root)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.broadcast(x, y, n, NCCL_U8, (int)root,
		                               l->comm, l->stream),
		          "ncclBroadcast");
}

void
nccl_reduce(struct nccl_transport *t, int stream, const void *x, void *y,
            uint64_t n, uint8_t dtype, uint32_t root)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.reduce(x, y, n, nccl_type[dtype], NCCL_SUM,
		                            (int)root, l->comm, l->stream),
		          "ncclReduce");
}

void
nccl_send(struct nccl_transport *t, int stream, const void *x, uint64_t n,
          uint32_t to)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.send(x, n, NCCL_U8, (int)to, l->comm,
		                          l->stream), "ncclSend");
}

void
nccl_receive(struct nccl_transport *t, int stream, void *y, uint64_t n,
             uint32_t from)
{
	struct nccl_stream *l = live_stream(t, stream);

	if (l)
		nccl_done(t, t->nccl.receive(y, n, NCCL_U8, (int)from, l->comm,
		                             l->stream), "ncclRecv");
}

void
nccl_group(struct nccl_transport *t, bool begin)
{
	if (!t->aborted)
		nccl_done(t, begin ? t->nccl.group_start()
		          : t->nccl.group_end(), "a group of NCCL calls");
}
