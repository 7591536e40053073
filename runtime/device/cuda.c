/* A GPU as a device, by NVIDIA's driver. */
#include "runtime/device/convolutions.h"
#include "runtime/device/gpu.h"
#include "runtime/device/nccl_transport.h"
#include "runtime/device/products.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
gpu_failed(const struct gpu *g)
{
	return g->device.first.text[0];
}

/* ---- memory ---- */

static void *
gpu_alloc(struct device *d, uint64_t n)
{
	struct gpu *g = gpu_of(d);
	size_t free_bytes = 0, all = 0;
	cu_address at = 0;
	cu_result r;

	if (gpu_failed(g))
		return NULL;
	r = g->cu.alloc(&at, n);
	if (r == CU_OUT_OF_MEMORY && !g->cu.memory_info(&free_bytes, &all)) {
		err_set(&d->first, CKR_ENOMEM, "GPU %s: cannot allocate %llu "
		        "bytes: %llu of %llu are free; compile with a smaller "
		        "--memory-budget, or end other programs that use the "
		        "GPU",
		        g->name, (unsigned long long)n,
		        (unsigned long long)free_bytes,
		        (unsigned long long)all);
		return NULL;
	}
	return gpu_done(g, r, "allocating memory") ? (void *)(uintptr_t)at
	                : NULL;
}

static void
gpu_free(struct device *d, void *p)
{
	struct gpu *g = gpu_of(d);

	if (p)
		gpu_done(g, g->cu.free((cu_address)(uintptr_t)p),
		         "freeing memory");
}

static void *
alloc_pinned(struct device *d, uint64_t n)
{
	struct gpu *g = gpu_of(d);
	void *p = NULL;

	return !gpu_failed(g) && gpu_done(g, g->cu.alloc_host(&p, n ? n : 1),
	                                  "allocating pinned memory") ? p
	                                  : NULL;
}

static void
free_pinned(struct device *d, void *p)
{
	struct gpu *g = gpu_of(d);

	if (p)
		gpu_done(g, g->cu.free_host(p), "freeing pinned memory");
}

static void
put_on(struct gpu *g, enum device_stream q, void *to, const void *from,
       uint64_t n)
{
	if (n && !gpu_failed(g))
		gpu_done(g, g->cu.put((cu_address)(uintptr_t)to, from, n,
		                      g->stream[q]), "copying to the GPU");
}

static void
get_on(struct gpu *g, enum device_stream q, void *to, const void *from,
       uint64_t n)
{
	if (n && !gpu_failed(g))
		gpu_done(g, g->cu.get(to, (cu_address)(uintptr_t)from, n,
		                      g->stream[q]), "copying from the GPU");
}

static void
copy_h2d(struct device *d, void *to, const void *from, uint64_t n)
{
	put_on(gpu_of(d), DEVICE_COMPUTE, to, from, n);
}

/* The driver cannot check other processes while it waits. */
static bool
run_before_wait(struct gpu *g)
{
	struct device *d = &g->device;
	struct err e;
	ckr_status s;

	if (gpu_failed(g))
		return false;
	s = d->before_wait ? d->before_wait(d->before_wait_user, &e) : CKR_OK;
	if (s != CKR_OK && !gpu_failed(g)) {
		d->first = e;
		d->status = s;
	}
	return !gpu_failed(g);
}

static void
sync_stream(struct device *d)
{
	struct gpu *g = gpu_of(d);

	if (run_before_wait(g))
		gpu_done(g, g->cu.stream_sync(gpu_stream(g)),
		         "running kernels");
}

static void
copy_h2d_async(struct device *d, void *to, const void *from, uint64_t n)
{
	put_on(gpu_of(d), DEVICE_COPY_IN, to, from, n);
}

static void
fetch_async(struct device *d, void *to, const void *from, uint64_t n)
{
	put_on(gpu_of(d), DEVICE_FETCH, to, from, n);
}

static void
offload_async(struct device *d, void *to, const void *from, uint64_t n)
{
	get_on(gpu_of(d), DEVICE_OFFLOAD, to, from, n);
}

static void
copy_d2h_async(struct device *d, void *to, const void *from, uint64_t n)
{
	get_on(gpu_of(d), DEVICE_COMPUTE, to, from, n);
}

static void
copy_d2h(struct device *d, void *to, const void *from, uint64_t n)
{
	/* to memory that is not pinned the driver itself waits */
	if (n && run_before_wait(gpu_of(d)))
		copy_d2h_async(d, to, from, n);
	if (n)
		sync_stream(d);
}

static void
fill_gpu(struct device *d, void *to, int byte, uint64_t n)
{
	struct gpu *g = gpu_of(d);

	if (n && !gpu_failed(g))
		gpu_done(g, g->cu.fill((cu_address)(uintptr_t)to,
		                       (unsigned char)byte, n, gpu_stream(g)),
		         "filling memory");
}

/* ---- events ---- */

static void *
create_event(struct device *d)
{
	struct gpu *g = gpu_of(d);
	cu_event e = NULL;

	return !gpu_failed(g)
	       && gpu_done(g, g->cu.event_new(&e, CU_EVENT_NO_TIMING),
	                   "creating an event") ? e : NULL;
}

static void
destroy_event(struct device *d, void *event)
{
	if (event)
		gpu_of(d)->cu.event_free(event);
}

static void
record_event(struct device *d, void *event, enum device_stream q)
{
	struct gpu *g = gpu_of(d);

	if (!gpu_failed(g))
		gpu_done(g, g->cu.event_record(event, g->stream[q]),
		         "recording an event");
}

static void
wait_event(struct device *d, void *event, enum device_stream q)
{
	struct gpu *g = gpu_of(d);

	if (!gpu_failed(g))
		gpu_done(g, g->cu.stream_wait(g->stream[q], event, 0),
		         "waiting for an event");
}

static void
sync_event(struct device *d, void *event)
{
	struct gpu *g = gpu_of(d);

	if (run_before_wait(g))
		gpu_done(g, g->cu.event_sync(event), "running kernels");
}

/* ---- graphs ---- */

static void
begin_capture(struct device *d)
{
	struct gpu *g = gpu_of(d);

	if (!gpu_failed(g))
		gpu_done(g, g->cu.capture(gpu_stream(g),
		                          CU_CAPTURE_THIS_THREAD),
		         "capturing kernels");
}

static void *
end_capture(struct device *d)
{
	struct gpu *g = gpu_of(d);
	cu_graph graph = NULL;
	cu_ready ready = NULL;

	/* after an error, too, or the stream would record for ever */
	gpu_done(g, g->cu.captured(gpu_stream(g), &graph), "capturing kernels");
	if (graph && !gpu_failed(g))
		gpu_done(g, g->cu.instantiate(&ready, graph, 0),
		         "creating a graph");
	if (graph)
		g->cu.graph_free(graph);
	return ready;
}

static void
launch_graph(struct device *d, void *work)
{
	struct gpu *g = gpu_of(d);

	if (!gpu_failed(g))
		gpu_done(g, g->cu.launch(work, gpu_stream(g)),
		         "launching a graph");
}

static void
destroy_graph(struct device *d, void *work)
{
	if (work)
		gpu_of(d)->cu.ready_free(work);
}

/* ---- opening ---- */

/* The current context is the thread's, and users have several threads. */
static void
enter_gpu(struct device *d)
{
	struct gpu *g = gpu_of(d);

	if (g->context)
		gpu_done(g, g->cu.set_current(g->context),
		         "making the device current");
}

static void
gpu_close(struct device *d)
{
	struct gpu *g = gpu_of(d);

	convolutions_close(g->convolutions);
	products_close(g->products);
	for (int q = 0; q < DEVICE_STREAMS; q++)
		if (g->stream[q])
			g->cu.stream_free(g->stream[q]);
	if (g->context)
		g->cu.release(g->number);
	if (g->dl)
		dlclose(g->dl);
	free(g);
}

static ckr_status
load_driver(struct gpu *g, struct err *e)
{
	g->dl = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!g->dl)
		return err_set(e, CKR_EUNSUPPORTED, "compiled for a GPU, but "
		               "no GPU driver was found: %s; compile without "
		               "--target cuda to run on the CPU",
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

static bool
open_streams(struct gpu *g)
{
	for (int q = 0; q < DEVICE_STREAMS; q++)
		if (!gpu_done(g, g->cu.stream_new(&g->stream[q],
		                                  CU_STREAM_NON_BLOCKING),
		              "creating a stream"))
			return false;
	return true;
}

static ckr_status
open_gpu(struct gpu *g, const char *arch, int index, struct err *e)
{
	int count = 0;
	cu_result r;

	CKR_TRY(load_driver(g, e));
	r = g->cu.init(0);
	if (r != CU_NO_DEVICE && !gpu_done(g, r, "initializing the driver"))
		return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
	if (r == CU_NO_DEVICE || g->cu.device_count(&count) || count < 1)
		return err_set(e, CKR_EUNSUPPORTED, "compiled for a GPU, but "
		               "no GPU was found (CUDA_VISIBLE_DEVICES may "
		               "hide it); compile without --target cuda to run "
		               "on the CPU");
	if (!gpu_done(g, g->cu.device_get(&g->number, index % count),
	              "finding the device"))
		return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
	g->cu.device_name(g->name, sizeof(g->name), g->number);
	CKR_TRY(check_arch(g, arch, e));
	if (!gpu_done(g, g->cu.retain(&g->context, g->number), "opening the "
	              "device")
	    || !gpu_done(g, g->cu.set_current(g->context), "opening the device")
	    || !open_streams(g))
		return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
	g->products = products_open(&g->device, gpu_stream(g));
	return device_failed(&g->device, e) ? CKR_EUNSUPPORTED : CKR_OK;
}

/* name: "cublas": convolutions unfold patches; "cudnn": fails if that cannot
 * compute the convolutions. */
static ckr_status
open_gpu_libraries(struct device *d, const struct ckr_library *lib,
                   const char *name, struct ckr_env *env, struct err *e)
{
	struct gpu *g = gpu_of(d);
	uint32_t n = lib->nconvolved;
	bool any = !name || !*name || !strcmp(name, "auto");
	bool cudnn = name && !strcmp(name, "cudnn");
	char by[128] = "im2col convolutions";

	if (!any && !cudnn && strcmp(name, "cublas") != 0)
		return err_set(e, CKR_EARG, "unknown library '%s' for matrix "
		               "products and convolutions on a GPU; expected "
		               "auto, cudnn or cublas", name);
	if (n && (any || cudnn))
		g->convolutions = convolutions_open(d, gpu_stream(g),
		                                    lib->convolved, n, by,
		                                    sizeof(by));
	if (n && cudnn && !g->convolutions)
		return err_set(e, CKR_EUNSUPPORTED, "cuDNN cannot be used: %s; "
		               "install cuDNN 9 (or set LD_LIBRARY_PATH to its "
		               "directory), or choose --blas cublas", by);
	snprintf(d->libraries, sizeof(d->libraries), "cublas%s%s",
	         n ? ", " : "", n ? by : "");
	env->stream = gpu_stream(g);
	env->gemms = g->products;
	env->gemm = products_run;
	env->gemm_epilogue = products_run_epilogue;
	env->convs = g->convolutions;
	env->convolve = g->convolutions ? convolutions_run : NULL;
	return CKR_OK;
}

static void
ignore_libraries(struct device *d)
{
	(void)d;
}

ckr_status
device_open_cuda(struct device **out, const char *arch, int index,
                 struct err *e)
{
	static const struct device_calls calls = {
		.close = gpu_close, .enter = enter_gpu,
		.open_libraries = open_gpu_libraries,
		.take_libraries = ignore_libraries,
		.release_libraries = ignore_libraries,
		.open_transport = nccl_open,
		.alloc = gpu_alloc, .free = gpu_free,
		.alloc_pinned = alloc_pinned, .free_pinned = free_pinned,
		.copy_h2d = copy_h2d, .copy_d2h = copy_d2h,
		.fill = fill_gpu, .sync = sync_stream,
		.copy_h2d_async = copy_h2d_async,
		.copy_d2h_async = copy_d2h_async,
		.fetch_async = fetch_async, .offload_async = offload_async,
		.event_new = create_event, .event_free = destroy_event,
		.event_record = record_event, .event_wait = wait_event,
		.event_sync = sync_event,
		.graph_begin = begin_capture, .graph_end = end_capture,
		.graph_launch = launch_graph, .graph_free = destroy_graph,
	};
	struct gpu *g = calloc(1, sizeof(*g));
	ckr_status s;

	*out = NULL;
	if (!g)
		return err_no_memory(e);
	g->device.call = &calls;
	g->device.deferred = true;
	g->device.name = g->name;
	s = open_gpu(g, arch, index, e);
	if (s != CKR_OK) {
		gpu_close(&g->device);
		return s;
	}
	*out = &g->device;
	return CKR_OK;
}
