/* A GPU as a device, by NVIDIA's driver. */
#include "runtime/device/convolutions.h"
#include "runtime/device/gpu.h"
#include "runtime/device/products.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gpu *
gpu_of(struct device *d)
{
	return (struct gpu *)d;
}

/* ---- errors ---- */

bool
gpu_done(struct gpu *g, cu_result r, const char *what)
{
	const char *text = NULL;

	if (r == 0)
		return true;
	if (g->device.first.text[0])
		return false;
	if (g->cu.error_text)
		g->cu.error_text(r, &text);
	err_set(&g->device.first, r == CU_OUT_OF_MEMORY ? CKR_ENOMEM : CKR_EIO,
	        "GPU %s: %s: %s (%d)", g->name, what,
	        text ? text : "unknown error", r);
	/* other processes wait for what it cannot send them now */
	if (g->device.quiet)
		g->device.status = CKR_ERANK;
	return false;
}

static bool
failed(const struct gpu *g)
{
	return g->device.first.text[0];
}

/* ---- memory ---- */

static void *
take(struct device *d, uint64_t n)
{
	struct gpu *g = gpu_of(d);
	size_t free_bytes = 0, all = 0;
	cu_address at = 0;
	cu_result r;

	if (failed(g))
		return NULL;
	r = g->cu.alloc(&at, n);
	if (r == CU_OUT_OF_MEMORY && !g->cu.memory_info(&free_bytes, &all)) {
		err_set(&d->first, CKR_ENOMEM, "GPU %s: cannot take %llu bytes "
		        "of its memory: %llu of %llu are free; give ckc a "
		        "smaller --memory-budget, or end what else uses it",
		        g->name, (unsigned long long)n,
		        (unsigned long long)free_bytes,
		        (unsigned long long)all);
		return NULL;
	}
	return gpu_done(g, r, "taking memory") ? (void *)(uintptr_t)at : NULL;
}

static void
drop(struct device *d, void *p)
{
	struct gpu *g = gpu_of(d);

	if (p)
		gpu_done(g, g->cu.free((cu_address)(uintptr_t)p),
		         "freeing memory");
}

static void *
take_host(struct device *d, uint64_t n)
{
	struct gpu *g = gpu_of(d);
	void *p = NULL;

	return !failed(g) && gpu_done(g, g->cu.alloc_host(&p, n ? n : 1),
	                              "taking pinned memory") ? p : NULL;
}

static void
drop_host(struct device *d, void *p)
{
	struct gpu *g = gpu_of(d);

	if (p)
		gpu_done(g, g->cu.free_host(p), "freeing pinned memory");
}

static void
put(struct device *d, void *to, const void *from, uint64_t n)
{
	struct gpu *g = gpu_of(d);

	if (n && !failed(g))
		gpu_done(g, g->cu.put((cu_address)(uintptr_t)to, from, n,
		                      g->stream), "copying to the GPU");
}

/* Nothing can be looked at while the driver waits. */
static bool
quiet(struct gpu *g)
{
	struct device *d = &g->device;
	struct err e;
	ckr_status s;

	if (failed(g))
		return false;
	s = d->quiet ? d->quiet(d->quiet_user, &e) : CKR_OK;
	if (s != CKR_OK && !failed(g)) {
		d->first = e;
		d->status = s;
	}
	return !failed(g);
}

static void
sync(struct device *d)
{
	struct gpu *g = gpu_of(d);

	if (quiet(g))
		gpu_done(g, g->cu.stream_sync(g->stream), "running kernels");
}

static void
bring(struct device *d, void *to, const void *from, uint64_t n)
{
	struct gpu *g = gpu_of(d);

	if (n && !failed(g))
		gpu_done(g, g->cu.put((cu_address)(uintptr_t)to, from, n,
		                      g->bringing), "copying to the GPU");
}

static void
fetch(struct device *d, void *to, const void *from, uint64_t n)
{
	struct gpu *g = gpu_of(d);

	if (n && !failed(g))
		gpu_done(g, g->cu.get(to, (cu_address)(uintptr_t)from, n,
		                      g->stream), "copying from the GPU");
}

static void
get(struct device *d, void *to, const void *from, uint64_t n)
{
	/* to memory that is not pinned the driver itself waits */
	if (n && quiet(gpu_of(d)))
		fetch(d, to, from, n);
	if (n)
		sync(d);
}

static void
fill(struct device *d, void *to, int byte, uint64_t n)
{
	struct gpu *g = gpu_of(d);

	if (n && !failed(g))
		gpu_done(g, g->cu.fill((cu_address)(uintptr_t)to,
		                       (unsigned char)byte, n, g->stream),
		         "filling memory");
}

/* ---- marks ---- */

static cu_stream
queue(struct gpu *g, enum device_queue q)
{
	return q == DEVICE_WORK ? g->stream : g->bringing;
}

static void *
mark_new(struct device *d)
{
	struct gpu *g = gpu_of(d);
	cu_event e = NULL;

	return !failed(g) && gpu_done(g, g->cu.event_new(&e,
	                                                 CU_EVENT_NO_TIMING),
	                              "making an event") ? e : NULL;
}

static void
mark_free(struct device *d, void *mark)
{
	if (mark)
		gpu_of(d)->cu.event_free(mark);
}

static void
set(struct device *d, void *mark, enum device_queue q)
{
	struct gpu *g = gpu_of(d);

	if (!failed(g))
		gpu_done(g, g->cu.event_record(mark, queue(g, q)),
		         "recording an event");
}

static void
follow(struct device *d, void *mark, enum device_queue q)
{
	struct gpu *g = gpu_of(d);

	if (!failed(g))
		gpu_done(g, g->cu.stream_wait(queue(g, q), mark, 0),
		         "waiting for an event");
}

static void
await(struct device *d, void *mark)
{
	struct gpu *g = gpu_of(d);

	if (quiet(g))
		gpu_done(g, g->cu.event_sync(mark), "running kernels");
}

static void
offer(struct device *d, struct ckr_env *env)
{
	struct gpu *g = gpu_of(d);

	env->stream = g->stream;
	env->gemms = g->products;
	env->gemm = products_run;
	env->gemm_end = products_run_end;
	env->convs = g->convolutions;
	env->convolve = g->convolutions ? convolutions_run : NULL;
}

/* ---- graphs ---- */

static void
capture(struct device *d)
{
	struct gpu *g = gpu_of(d);

	if (!failed(g))
		gpu_done(g, g->cu.capture(g->stream, CU_CAPTURE_THIS_THREAD),
		         "capturing kernels");
}

static void *
captured(struct device *d)
{
	struct gpu *g = gpu_of(d);
	cu_graph graph = NULL;
	cu_ready ready = NULL;

	if (failed(g) || !gpu_done(g, g->cu.captured(g->stream, &graph),
	                           "capturing kernels"))
		return NULL;
	gpu_done(g, g->cu.instantiate(&ready, graph, 0), "making a graph");
	g->cu.graph_free(graph);
	return ready;
}

static void
launch(struct device *d, void *work)
{
	struct gpu *g = gpu_of(d);

	if (!failed(g))
		gpu_done(g, g->cu.launch(work, g->stream), "launching a graph");
}

static void
forget(struct device *d, void *work)
{
	if (work)
		gpu_of(d)->cu.ready_free(work);
}

/* ---- opening ---- */

static void
gpu_close(struct device *d)
{
	struct gpu *g = gpu_of(d);

	convolutions_close(g->convolutions);
	products_close(g->products);
	if (g->stream)
		g->cu.stream_free(g->stream);
	if (g->bringing)
		g->cu.stream_free(g->bringing);
	if (g->context)
		g->cu.release(g->number);
	if (g->dl)
		dlclose(g->dl);
	free(g);
}

static ckr_status
load(struct gpu *g, struct err *e)
{
	g->dl = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!g->dl)
		return err_set(e, CKR_EUNSUPPORTED, "compiled for a GPU, but "
		               "there is no driver for one: %s; compile "
		               "without --target cuda to run on the CPU",
		               dlerror());
#define X(member, symbol, args) \
	*(void **)&g->cu.member = dlsym(g->dl, #symbol); \
	if (!g->cu.member) \
		return err_set(e, CKR_EUNSUPPORTED, "the GPU's driver is too " \
		               "old: libcuda.so.1 has no " #symbol);
	CU_CALLS(X)
#undef X
	return CKR_OK;
}

/* "sm_90a" is 90; 0: not such a name. */
static int
arch_number(const char *arch)
{
	int n;

	return arch && sscanf(arch, "sm_%d", &n) == 1 ? n : 0;
}

/* Code for sm_XY runs on X.Y and on X.Z with Z above Y. */
static ckr_status
check_arch(struct gpu *g, const char *arch, struct err *e)
{
	int major = 0, minor = 0, want = arch_number(arch);

	g->cu.device_attribute(&major, CU_COMPUTE_MAJOR, g->number);
	g->cu.device_attribute(&minor, CU_COMPUTE_MINOR, g->number);
	if (want == 0 || (major == want / 10 && minor >= want % 10))
		return CKR_OK;
	return err_set(e, CKR_EUNSUPPORTED, "compiled for %s, this GPU (%s) is "
	               "sm_%d%d; compile with ckc --arch sm_%d%d", arch,
	               g->name, major, minor, major, minor);
}

static ckr_status
open_gpu(struct gpu *g, const char *arch, int index, struct err *e)
{
	int count = 0;
	cu_result r;

	CKR_TRY(load(g, e));
	r = g->cu.init(0);
	if (r != CU_NO_DEVICE && !gpu_done(g, r, "starting the driver"))
		return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
	if (r == CU_NO_DEVICE || g->cu.device_count(&count) || count < 1)
		return err_set(e, CKR_EUNSUPPORTED, "compiled for a GPU, but "
		               "none is there (or CUDA_VISIBLE_DEVICES hides "
		               "it); compile without --target cuda to run on "
		               "the CPU");
	if (!gpu_done(g, g->cu.device_get(&g->number, index % count),
	              "finding it"))
		return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
	g->cu.device_name(g->name, sizeof(g->name), g->number);
	CKR_TRY(check_arch(g, arch, e));
	if (!gpu_done(g, g->cu.retain(&g->context, g->number), "opening it")
	    || !gpu_done(g, g->cu.set_current(g->context), "opening it")
	    || !gpu_done(g, g->cu.stream_new(&g->stream,
	                                     CU_STREAM_NON_BLOCKING),
	                 "making a stream")
	    || !gpu_done(g, g->cu.stream_new(&g->bringing,
	                                     CU_STREAM_NON_BLOCKING),
	                 "making a stream"))
		return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
	g->products = products_open(&g->device, g->stream);
	return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
}

ckr_status
device_open_cuda(struct device **out, const char *arch, int index,
                 struct err *e)
{
	static const struct device_calls calls = {
		.close = gpu_close, .take = take, .drop = drop,
		.take_host = take_host, .drop_host = drop_host, .put = put,
		.get = get, .fill = fill, .sync = sync, .bring = bring,
		.fetch = fetch, .mark_new = mark_new, .mark_free = mark_free,
		.set = set, .follow = follow, .await = await, .offer = offer,
		.capture = capture, .captured = captured, .launch = launch,
		.forget = forget,
	};
	struct gpu *g = calloc(1, sizeof(*g));
	ckr_status s;

	*out = NULL;
	if (!g)
		return err_set(e, CKR_ENOMEM, "out of memory");
	g->device.call = &calls;
	g->device.name = g->name;
	s = open_gpu(g, arch, index, e);
	if (s != CKR_OK) {
		gpu_close(&g->device);
		return s;
	}
	*out = &g->device;
	return CKR_OK;
}

ckr_status
device_choose_cuda(struct device *d, const char *name,
                   const struct ckr_convolved *job, uint32_t n, char *text,
                   size_t size, struct err *e)
{
	struct gpu *g = gpu_of(d);
	bool any = !name || !*name || !strcmp(name, "auto");
	bool cudnn = name && !strcmp(name, "cudnn");
	char by[128] = "unfolded convolutions";

	if (!any && !cudnn && strcmp(name, "cublas") != 0)
		return err_set(e, CKR_EARG, "no library '%s' for products and "
		               "convolutions on a GPU; expected auto, cudnn or "
		               "cublas", name);
	if (n && (any || cudnn))
		g->convolutions = convolutions_open(d, g->stream, job, n, by,
		                                    sizeof(by));
	if (n && cudnn && !g->convolutions)
		return err_set(e, CKR_EUNSUPPORTED, "%s; install cuDNN 9 (or "
		               "set LD_LIBRARY_PATH to where it is), or choose "
		               "--blas cublas", by);
	snprintf(text, size, "cublas%s%s", n ? ", " : "", n ? by : "");
	return CKR_OK;
}
