/* Convolutions on a GPU by cuDNN.  The choice of cuDNN or im2col depends on
 * shapes, this GPU and this version alone, and is made when the model is
 * opened, so that bits are the same in every run and under every plan. */
#include "runtime/device/convolutions.h"
#include "runtime/support/gpu_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct convolutions {
	struct dnn dnn;
	void *dl;
	struct device *device;
	dnn_handle handle;
	struct engine *engine;
	uint32_t n;
};

/* ---- the library ---- */

static void
print_version(char *to, size_t size, size_t v)
{
	size_t major = v < DNN_NINE ? 1000 : 10000;

	snprintf(to, size, "%zu.%zu.%zu", v / major, v % major / 100, v % 100);
}

/* Look up cuDNN's functions; false: another library, or too old. */
static bool
find_calls(struct dnn *dnn, void *dl, const char *name, char *why, size_t size)
{
	char version[32];

#define X(result, member, symbol, args) \
	*(void **)&dnn->member = dlsym(dl, #symbol); \
	if (!dnn->member) { \
		snprintf(why, size, "%s has no " #symbol, name); \
		return false; \
	}
	DNN_CALLS(X)
#undef X
	if (dnn->version() >= DNN_OLDEST)
		return true;
	print_version(version, sizeof(version), dnn->version());
	snprintf(why, size, "cudnn %s is older than 8.9", version);
	return false;
}

void *
convolutions_library(struct dnn *dnn, char *why, size_t size)
{
	static const char *const names[] = { "libcudnn.so.9", "libcudnn.so.8",
		NULL };
	void *dl = gpu_library_open(names);

	if (!dl) {
		snprintf(why, size, "no libcudnn.so.9");
		return NULL;
	}
	if (find_calls(dnn, dl, gpu_library_file(dl), why, size))
		return dl;
	dlclose(dl);
	return NULL;
}

/* A handle on the current GPU and this stream. */
static bool
create_handle(struct convolutions *c, cu_stream stream, char *why, size_t size)
{
	const char *call = "cudnnCreate";
	dnn_status s;

	c->dl = convolutions_library(&c->dnn, why, size);
	if (!c->dl)
		return false;
	s = c->dnn.create(&c->handle);
	if (!s) {
		call = "cudnnSetStream";
		s = c->dnn.set_stream(c->handle, stream);
	}
	if (s)
		snprintf(why, size, "%s: %s", call, c->dnn.error_text(s));
	return !s;
}

struct convolutions *
convolutions_open(struct device *d, cu_stream stream,
                  const struct ckr_convolved *job, uint32_t n, char *text,
                  size_t size)
{
	struct convolutions *c = calloc(1, sizeof(*c));
	char why[128] = "no memory", version[32];
	uint32_t found = 0;

	if (c)
		c->engine = calloc(n, sizeof(*c->engine));
	if (!c || !c->engine || !create_handle(c, stream, why, sizeof(why))) {
		snprintf(text, size, "im2col convolutions (%s)", why);
		convolutions_close(c);
		return NULL;
	}
	c->device = d;
	c->n = n;
	for (uint32_t i = 0; i < n; i++)
		found += engine_find(&c->engine[i], &c->dnn, c->handle, NULL,
		                     &job[i]);
	print_version(version, sizeof(version), c->dnn.version());
	if (found == n)
		snprintf(text, size, "convolutions by cudnn %s", version);
	else
		snprintf(text, size, "%u of %u convolutions by cudnn %s",
		         found, n, version);
	return c;
}

void
convolutions_close(struct convolutions *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->n; i++)
		engine_free(&c->engine[i], &c->dnn);
	free(c->engine);
	if (c->handle)
		c->dnn.destroy(c->handle);
	if (c->dl)
		dlclose(c->dl);
	free(c);
}

/* ---- calls ---- */

int
convolutions_run(struct ckr_env *env, uint32_t i, void *x, void *w, void *y,
                 void *work)
{
	struct convolutions *c = env->convs;
	dnn_status s;

	if (!c->engine[i].plan)
		return 0;
	if (c->device->first.text[0])
		return 1;
	s = engine_run(&c->engine[i], &c->dnn, c->handle, x, w, y, work);
	if (s && !c->device->first.text[0])
		err_set(&c->device->first, CKR_EUNSUPPORTED, "convolutions on "
		        "the GPU: cudnnBackendExecute: %s; to avoid cuDNN, "
		        "try: ckrun --blas cublas", c->dnn.error_text(s));
	return 1;
}
