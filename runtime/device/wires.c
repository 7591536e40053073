#include "runtime/device/wires.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/gpu.h"

struct lane {
	nccl_comm comm;
	cu_stream stream;
	void *scratch;
	uint64_t given, over;           /* transfers; over: that have ended */
	/* of the transfers that the GPU may have before it; who gives it one
	 * more waits until kernels have done all they were given */
	uint32_t depth;
	cu_event *begin, *end;          /* [depth] */
};

struct wires {
	struct gpu *gpu;
	struct nccl nccl;
	void *dl;
	bool aborted;
	struct lane lane[WIRE_LANES];
	char text[32];
};

/* Types in which sums are taken. */
static const int nccl_type[CKR_DTYPE_COUNT] = {
	[CKR_F32] = NCCL_F32, [CKR_F64] = NCCL_F64, [CKR_F16] = NCCL_F16,
	[CKR_BF16] = NCCL_BF16, [CKR_I64] = NCCL_I64, [CKR_I32] = NCCL_I32,
};

/* ---- errors ---- */

static bool
done(struct wires *w, nccl_result r, const char *what)
{
	struct device *d = &w->gpu->device;

	if (r == 0 || r == NCCL_IN_PROGRESS)
		return true;
	if (!d->first.text[0]) {
		err_set(&d->first, CKR_ERANK, "GPU %s: %s: %s (%d)", d->name,
		        what, w->nccl.error_text(r), r);
		d->status = CKR_ERANK;
	}
	return false;
}

static bool
driver_done(struct wires *w, cu_result r, const char *what)
{
	return gpu_done(w->gpu, r, what);
}

/* Nothing is given to a lane that is not there. */
static struct lane *
lane_of(struct wires *w, int lane)
{
	struct lane *l = &w->lane[lane];

	return w->aborted || w->gpu->device.first.text[0] || !l->comm ? NULL
	       : l;
}

/* ---- opening ---- */

static ckr_status
load(struct wires *w, struct err *e)
{
	int version = 0;

	w->dl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
	if (!w->dl)
		return err_set(e, CKR_EUNSUPPORTED, "GPUs of several processes "
		               "send each other by NCCL, which is not there: "
		               "%s; install it (libnccl2), set LD_LIBRARY_PATH "
		               "to where it is, or start one process, which "
		               "trains all ranks on one GPU", dlerror());
#define X(member, symbol, args) \
	*(void **)&w->nccl.member = dlsym(w->dl, #symbol); \
	if (!w->nccl.member) \
		return err_set(e, CKR_EUNSUPPORTED, "libnccl.so.2 is too " \
		               "old: it has no " #symbol \
		               "; expected 2.10 or later");
	NCCL_CALLS(X)
	X(error_text, ncclGetErrorString, )
#undef X
	w->nccl.version(&version);
	if (version < NCCL_OLDEST)
		return err_set(e, CKR_EUNSUPPORTED, "libnccl.so.2 is too old: "
		               "expected 2.10 or later, found %d.%d",
		               version / 1000, version / 100 % 10);
	snprintf(w->text, sizeof(w->text), "NCCL %d.%d.%d", version / 10000,
	         version / 100 % 100, version % 100);
	return CKR_OK;
}

ckr_status
wires_open(struct wires **out, struct device *d, struct err *e)
{
	struct wires *w = *out = calloc(1, sizeof(*w));

	if (!w)
		return err_set(e, CKR_ENOMEM, "out of memory");
	w->gpu = gpu_of(d);
	return load(w, e);
}

static void
close_lane(struct wires *w, struct lane *l)
{
	const struct cu *cu = &w->gpu->cu;

	if (l->comm && !w->aborted)
		w->nccl.destroy(l->comm);
	for (uint32_t i = 0; i < l->depth && l->begin; i++) {
		if (l->begin[i])
			cu->event_free(l->begin[i]);
		if (l->end[i])
			cu->event_free(l->end[i]);
	}
	free(l->begin);
	if (l->stream)
		cu->stream_free(l->stream);
	if (l->scratch)
		w->gpu->device.call->drop(&w->gpu->device, l->scratch);
}

/* The library is not unloaded: it has threads of its own. */
void
wires_close(struct wires *w)
{
	if (!w)
		return;
	for (int i = 0; i < WIRE_LANES; i++)
		close_lane(w, &w->lane[i]);
	free(w);
}

ckr_status
wires_show(struct wires *w, struct wires_card *card, struct err *e)
{
	struct gpu *g = w->gpu;
	struct cu_uuid id = { { 0 } };

	driver_done(w, g->cu.device_uuid(&id, g->number), "asking who it is");
	memset(card, 0, sizeof(*card));
	memcpy(card->mark, id.bytes, sizeof(card->mark));
	snprintf(card->name, sizeof(card->name), "%.63s", g->name);
	snprintf(card->library, sizeof(card->library), "%s", w->text);
	return device_status(&g->device, e);
}

ckr_status
wires_name(struct wires *w, struct nccl_id *id, struct err *e)
{
	nccl_result r = w->nccl.new_id(id);

	return r ? err_set(e, CKR_EIO, "ncclGetUniqueId: %s (%d)",
	                   w->nccl.error_text(r), r) : CKR_OK;
}

static bool
take_events(struct wires *w, struct lane *l, uint32_t depth)
{
	const struct cu *cu = &w->gpu->cu;
	bool ok = true;

	l->begin = calloc(2 * (size_t)depth, sizeof(*l->begin));
	if (!l->begin) {
		err_set(&w->gpu->device.first, CKR_ENOMEM, "out of memory");
		return false;
	}
	l->end = l->begin + depth;
	l->depth = depth;
	for (uint32_t i = 0; i < depth && ok; i++)
		ok = driver_done(w, cu->event_new(&l->begin[i],
		                                  CU_EVENT_NO_TIMING),
		                 "making an event")
		     && driver_done(w, cu->event_new(&l->end[i],
		                                     CU_EVENT_NO_TIMING),
		                    "making an event");
	return ok;
}

ckr_status
wires_take(struct wires *w, int lane, uint32_t depth, uint64_t scratch,
           struct err *e)
{
	struct lane *l = &w->lane[lane];
	struct device *d = &w->gpu->device;

	if (driver_done(w, w->gpu->cu.stream_new(&l->stream,
	                                         CU_STREAM_NON_BLOCKING),
	                "making a stream")
	    && take_events(w, l, depth) && scratch)
		l->scratch = d->call->take(d, scratch);
	return device_status(d, e);
}

ckr_status
wires_join(struct wires *w, int lane, const struct nccl_id *id, uint32_t ranks,
           uint32_t rank, struct err *e)
{
	nccl_result r = w->nccl.join(&w->lane[lane].comm, (int)ranks, *id,
	                             (int)rank);

	return r ? err_set(e, CKR_EIO, "GPU %s: ncclCommInitRank: %s (%d)",
	                   w->gpu->name, w->nccl.error_text(r), r) : CKR_OK;
}

void *
wires_scratch(const struct wires *w, int lane)
{
	return w->lane[lane].scratch;
}

/* ---- transfers ---- */

static bool
is_over(struct wires *w, cu_event event)
{
	cu_result r = w->gpu->cu.event_query(event);

	return r != CU_NOT_READY && driver_done(w, r, "waiting for an event");
}

/* Which have ended, as far as somebody has asked. */
static void
look_at(struct wires *w, struct lane *l)
{
	while (l->over < l->given && is_over(w, l->end[l->over % l->depth]))
		l->over++;
}

uint64_t
wires_begin(struct wires *w, int lane)
{
	const struct cu *cu = &w->gpu->cu;
	struct lane *l = lane_of(w, lane);
	cu_event at;

	if (!l)
		return 0;
	look_at(w, l);
	if (l->given - l->over == l->depth)
		w->gpu->device.call->sync(&w->gpu->device);
	look_at(w, l);
	if (l->given - l->over == l->depth)
		return 0;               /* it has failed */
	at = l->begin[l->given % l->depth];
	driver_done(w, cu->event_record(at, w->gpu->stream), "an event");
	driver_done(w, cu->stream_wait(l->stream, at, 0), "an event");
	return ++l->given;
}

void
wires_end(struct wires *w, int lane)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		driver_done(w, w->gpu->cu.event_record(
		            l->end[(l->given - 1) % l->depth], l->stream),
		            "an event");
}

void
wires_await(struct wires *w, int lane, uint64_t number)
{
	struct lane *l = lane_of(w, lane);

	if (l && number > l->over)
		driver_done(w, w->gpu->cu.stream_wait(w->gpu->stream,
		            l->end[(number - 1) % l->depth], 0), "an event");
}

bool
wires_begun(struct wires *w, int lane, uint64_t number)
{
	struct lane *l = &w->lane[lane];

	return number <= l->over
	       || is_over(w, l->begin[(number - 1) % l->depth]);
}

uint64_t
wires_over(struct wires *w, int lane)
{
	struct lane *l = &w->lane[lane];

	look_at(w, l);
	return l->over;
}

bool
wires_quiet(struct wires *w)
{
	return w->gpu->cu.stream_query(w->gpu->stream) != CU_NOT_READY;
}

void
wires_watch(struct wires *w, ckr_status (*quiet)(void *, struct err *),
            void *user)
{
	w->gpu->device.quiet = quiet;
	w->gpu->device.quiet_user = user;
}

ckr_status
wires_status(const struct wires *w, struct err *e)
{
	return device_status(&w->gpu->device, e);
}

const char *
wires_trouble(struct wires *w)
{
	for (int i = 0; i < WIRE_LANES && !w->aborted; i++) {
		nccl_result r = 0;

		if (!w->lane[i].comm)
			continue;
		if (w->nccl.async_error(w->lane[i].comm, &r) == 0 && r
		    && r != NCCL_IN_PROGRESS)
			return w->nccl.error_text(r);
	}
	return NULL;
}

void
wires_abort(struct wires *w)
{
	for (int i = 0; i < WIRE_LANES && !w->aborted; i++)
		if (w->lane[i].comm)
			w->nccl.abort(w->lane[i].comm);
	w->aborted = true;
}

/* ---- within a GPU ---- */

static cu_stream
stream_of(struct wires *w, int lane)
{
	struct lane *l = lane < 0 ? NULL : lane_of(w, lane);

	return lane < 0 ? w->gpu->stream : l ? l->stream : NULL;
}

static void
copy_row(struct wires *w, cu_stream s, char *to, const char *from, uint64_t n)
{
	driver_done(w, w->gpu->cu.copy((cu_address)(uintptr_t)to,
	                               (cu_address)(uintptr_t)from, n, s),
	            "copying on the GPU");
}

void
wires_copy(struct wires *w, int lane, void *to, const void *from,
           uint64_t width, uint64_t rows, uint64_t to_pitch,
           uint64_t from_pitch)
{
	struct cu_copy c = { .from_kind = CU_MEMORY_DEVICE,
		.from = (cu_address)(uintptr_t)from, .from_pitch = from_pitch,
		.to_kind = CU_MEMORY_DEVICE,
		.to = (cu_address)(uintptr_t)to, .to_pitch = to_pitch,
		.width = width, .rows = rows };
	cu_stream s = stream_of(w, lane);
	uint64_t most = to_pitch > from_pitch ? to_pitch : from_pitch;

	if (!s || !width || w->gpu->device.first.text[0])
		return;
	if (rows > 1 && most <= INT32_MAX) {
		driver_done(w, w->gpu->cu.copy_rows(&c, s),
		            "copying on the GPU");
		return;
	}
	for (uint64_t i = 0; i < rows; i++)
		copy_row(w, s, (char *)to + i * to_pitch,
		         (const char *)from + i * from_pitch, width);
}

void
wires_zero(struct wires *w, int lane, void *to, uint64_t n)
{
	cu_stream s = stream_of(w, lane);

	if (s && n && !w->gpu->device.first.text[0])
		driver_done(w, w->gpu->cu.fill((cu_address)(uintptr_t)to, 0, n,
		                               s), "filling memory");
}

/* ---- between them ---- */

void
wires_all_reduce(struct wires *w, int lane, const void *x, void *y, uint64_t n,
                 uint8_t dtype, bool max)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.all_reduce(x, y, n, nccl_type[dtype],
		                           max ? NCCL_MAX : NCCL_SUM, l->comm,
		                           l->stream), "ncclAllReduce");
}

void
wires_all_gather(struct wires *w, int lane, const void *x, void *y, uint64_t n)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.all_gather(x, y, n, NCCL_U8, l->comm,
		                           l->stream), "ncclAllGather");
}

void
wires_reduce_scatter(struct wires *w, int lane, const void *x, void *y,
                     uint64_t n, uint8_t dtype)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.reduce_scatter(x, y, n, nccl_type[dtype],
		                               NCCL_SUM, l->comm, l->stream),
		     "ncclReduceScatter");
}

void
wires_broadcast(struct wires *w, int lane, const void *x, void *y, uint64_t n,
                uint32_t root)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.broadcast(x, y, n, NCCL_U8, (int)root, l->comm,
		                          l->stream), "ncclBroadcast");
}

void
wires_reduce(struct wires *w, int lane, const void *x, void *y, uint64_t n,
             uint8_t dtype, uint32_t root)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.reduce(x, y, n, nccl_type[dtype], NCCL_SUM,
		                       (int)root, l->comm, l->stream),
		     "ncclReduce");
}

void
wires_send(struct wires *w, int lane, const void *x, uint64_t n, uint32_t to)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.send(x, n, NCCL_U8, (int)to, l->comm,
		                     l->stream), "ncclSend");
}

void
wires_receive(struct wires *w, int lane, void *y, uint64_t n, uint32_t from)
{
	struct lane *l = lane_of(w, lane);

	if (l)
		done(w, w->nccl.receive(y, n, NCCL_U8, (int)from, l->comm,
		                        l->stream), "ncclRecv");
}

void
wires_together(struct wires *w, bool begin)
{
	if (!w->aborted)
		done(w, begin ? w->nccl.group_start() : w->nccl.group_end(),
		     "a group of NCCL's");
}
