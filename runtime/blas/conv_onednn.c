/* Convolutions by primitives of oneDNN 2.
 *
 * Every convolution is made for one thread, and threads run it side by side on
 * operands of their own, so that bits do not depend on their number.  Only its
 * compiled kernels are taken, and only where they ask for no more scratch
 * memory than a call brings: all memory belongs to the plan.  What is left, the
 * code of the kernels and handles, is made when the model is opened.
 */
#include "runtime/blas/conv.h"

#include <dlfcn.h>
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define API(do) \
	do(engine_create) do(engine_destroy) \
	do(stream_create) do(stream_destroy) \
	do(memory_desc_init_by_tag) do(memory_desc_get_size) \
	do(memory_create) do(memory_destroy) do(memory_set_data_handle) \
	do(primitive_attr_create) do(primitive_attr_destroy) \
	do(primitive_attr_set_scratchpad_mode) \
	do(dilated_convolution_forward_desc_init) \
	do(dilated_convolution_backward_data_desc_init) \
	do(dilated_convolution_backward_weights_desc_init) \
	do(primitive_desc_create) do(primitive_desc_destroy) \
	do(primitive_desc_query) do(primitive_desc_query_md) \
	do(primitive_create) do(primitive_destroy) do(primitive_execute)

struct api {
#define MEMBER(name) __typeof__(dnnl_##name) *name;
	API(MEMBER)
};

enum { X, W, Y, OPERANDS, SCRATCH = OPERANDS, MEMORIES };

struct conv {
	dnnl_primitive_t run;
	int arg[MEMORIES];
	dnnl_memory_t *memory;          /* MEMORIES for every thread */
};

struct convs {
	struct api api;
	dnnl_engine_t engine;
	dnnl_stream_t *stream;          /* one per thread */
	int threads;
	uint32_t n;
	struct conv *conv;
	unsigned char *ready;
};

static bool
find_api(struct api *api, void *dl)
{
	const dnnl_version_t *(*version)(void);

	*(void **)&version = dlsym(dl, "dnnl_version");
	if (!version || version()->major != DNNL_VERSION_MAJOR)
		return false;
#define FIND(name) \
	*(void **)&api->name = dlsym(dl, "dnnl_" #name); \
	if (!api->name) \
		return false;
	API(FIND)
	return true;
}

/* ---- one convolution ---- */

static dnnl_format_tag_t
weights_tag(const struct ckr_blocked *b)
{
	bool wide = b->block == 16;

	if (b->cin < b->block)
		return b->type == CKR_BF16 && b->kind == CKR_CONV_Y
			? dnnl_OhwI16o2i : wide ? dnnl_Ohwi16o : dnnl_Ohwi8o;
	if (b->type == CKR_BF16)
		return b->kind == CKR_CONV_Y ? dnnl_OIhw8i16o2i
		     : b->kind == CKR_CONV_DX ? dnnl_OIhw8o16i2o
		     : dnnl_OIhw16i16o;
	if (b->kind != CKR_CONV_DX)
		return wide ? dnnl_OIhw16i16o : dnnl_OIhw8i8o;
	if (wide && b->kernel[0] * b->kernel[1] == 1)
		return dnnl_IOhw16o16i;
	return wide ? dnnl_OIhw16o16i : dnnl_OIhw8o8i;
}

/* Of the operand that this kind of convolution computes. */
static dnnl_data_type_t
type_of(const struct ckr_blocked *b, int kind)
{
	return b->type == CKR_BF16 && b->kind != kind ? dnnl_bf16 : dnnl_f32;
}

static bool
describe_operands(const struct api *api, const struct ckr_blocked *b,
                  dnnl_memory_desc_t md[OPERANDS])
{
	dnnl_format_tag_t blocks = b->block == 16 ? dnnl_nChw16c
	                                          : dnnl_nChw8c;
	dnnl_dims_t x = { b->images, b->cin, b->in[0], b->in[1] };
	dnnl_dims_t w = { b->cout, b->cin, b->kernel[0], b->kernel[1] };
	dnnl_dims_t y = { b->images, b->cout, b->out[0], b->out[1] };

	return !api->memory_desc_init_by_tag(&md[X], 4, x,
		type_of(b, CKR_CONV_DX), b->cin < b->block ? dnnl_nchw : blocks)
	       && !api->memory_desc_init_by_tag(&md[W], 4, w,
		type_of(b, CKR_CONV_DW), weights_tag(b))
	       && !api->memory_desc_init_by_tag(&md[Y], 4, y,
		type_of(b, CKR_CONV_Y), blocks);
}

/* The library's plan of a convolution; NULL: it has none. */
static dnnl_primitive_desc_t
create_primitive_desc(const struct convs *c, const struct ckr_blocked *b,
                      dnnl_memory_desc_t md[OPERANDS],
                      const_dnnl_primitive_attr_t attr)
{
	const struct api *api = &c->api;
	dnnl_dims_t none = { 0 }, stride = { b->stride[0], b->stride[1] };
	dnnl_dims_t gaps = { b->dilation[0] - 1, b->dilation[1] - 1 };
	dnnl_memory_desc_t x = md[X], w = md[W];
	dnnl_convolution_desc_t forward, back;
	dnnl_primitive_desc_t hint = NULL, pd = NULL;
	dnnl_status_t bad;

	/* gradients want the forward plan as a hint */
	if (b->kind != CKR_CONV_Y) {
		w.format_kind = dnnl_format_kind_any;
		w.data_type = x.data_type = b->type == CKR_BF16 ? dnnl_bf16
			: dnnl_f32;
	}
	if (api->dilated_convolution_forward_desc_init(&forward,
		dnnl_forward_training, dnnl_convolution_direct, &x, &w, NULL,
		&md[Y], stride, gaps, none, none)
	    || api->primitive_desc_create(&hint, &forward, attr, c->engine,
	                                  NULL))
		return NULL;
	if (b->kind == CKR_CONV_Y)
		return hint;
	if (b->kind == CKR_CONV_DX)
		bad = api->dilated_convolution_backward_data_desc_init(&back,
			dnnl_convolution_direct, &md[X], &md[W], &md[Y],
			stride, gaps, none, none);
	else
		bad = api->dilated_convolution_backward_weights_desc_init(
			&back, dnnl_convolution_direct, &md[X], &md[W], NULL,
			&md[Y], stride, gaps, none, none);
	if (bad || api->primitive_desc_create(&pd, &back, attr, c->engine,
	                                      hint))
		pd = NULL;
	api->primitive_desc_destroy(hint);
	return pd;
}

/* Whether its kernel is compiled. */
static bool
is_jit(const struct api *api, const_dnnl_primitive_desc_t pd)
{
	const char *name = "";

	return !api->primitive_desc_query(pd, dnnl_query_impl_info_str, 0,
	                                  &name)
	       && !strncmp(name, "jit", 3);
}

static bool
create_memories(struct convs *c, struct conv *v, const dnnl_memory_desc_t *md)
{
	int n = MEMORIES * c->threads;

	v->memory = calloc((size_t)n, sizeof(*v->memory));
	for (int i = 0; v->memory && i < n; i++)
		if (c->api.memory_create(&v->memory[i], &md[i % MEMORIES],
		                         c->engine, DNNL_MEMORY_NONE))
			return false;
	return v->memory;
}

static bool
prepare_conv(struct convs *c, struct conv *v, const struct ckr_blocked *b,
             const_dnnl_primitive_attr_t attr)
{
	static const int arg[][MEMORIES] = {
		[CKR_CONV_Y] = { DNNL_ARG_SRC, DNNL_ARG_WEIGHTS,
		                 DNNL_ARG_DST, DNNL_ARG_SCRATCHPAD },
		[CKR_CONV_DX] = { DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS,
		                  DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD },
		[CKR_CONV_DW] = { DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS,
		                  DNNL_ARG_DIFF_DST, DNNL_ARG_SCRATCHPAD },
	};
	dnnl_memory_desc_t md[MEMORIES];
	dnnl_primitive_desc_t pd;
	bool ok;

	if (!describe_operands(&c->api, b, md))
		return false;
	pd = create_primitive_desc(c, b, md, attr);
	if (!pd)
		return false;
	memcpy(v->arg, arg[b->kind], sizeof(v->arg));
	md[SCRATCH] = *c->api.primitive_desc_query_md(
		pd, dnnl_query_scratchpad_md, 0);
	ok = is_jit(&c->api, pd)
		&& c->api.memory_desc_get_size(&md[SCRATCH])
			<= (size_t)b->scratch
		&& create_memories(c, v, md)
		&& !c->api.primitive_create(&v->run, pd);
	c->api.primitive_desc_destroy(pd);
	return ok;
}

static void
execute_conv(void *convs, int thread, uint32_t i, void *x, void *w, void *y,
             void *scratch)
{
	struct convs *c = convs;
	struct conv *v = &c->conv[i];
	dnnl_memory_t *m = v->memory + MEMORIES * thread;
	void *operand[MEMORIES] = { x, w, y, scratch };
	dnnl_exec_arg_t arg[MEMORIES];

	for (int k = 0; k < MEMORIES; k++) {
		c->api.memory_set_data_handle(m[k], operand[k]);
		arg[k] = (dnnl_exec_arg_t){ v->arg[k], m[k] };
	}
	c->api.primitive_execute(v->run, c->stream[thread], MEMORIES, arg);
}

/* ---- all of them ---- */

static bool
prepare_all(struct convs *c, const struct ckr_blocked *b, bool bf16)
{
	dnnl_primitive_attr_t attr = NULL;
	int before = omp_get_max_threads();
	bool any = false;

	if (c->api.engine_create(&c->engine, dnnl_cpu, 0)
	    || c->api.primitive_attr_create(&attr))
		return false;
	for (int i = 0; i < c->threads; i++)
		if (c->api.stream_create(&c->stream[i], c->engine,
		                         dnnl_stream_default_flags)) {
			c->api.primitive_attr_destroy(attr);
			return false;
		}
	c->api.primitive_attr_set_scratchpad_mode(attr,
	                                          dnnl_scratchpad_mode_user);
	/* work is divided for the threads of the one who prepares it */
	omp_set_num_threads(1);
	for (uint32_t i = 0; i < c->n; i++) {
		if (bf16 ? b[i].without_units : b[i].type == CKR_BF16)
			continue;
		c->ready[i] = prepare_conv(c, &c->conv[i], &b[i], attr);
		any |= c->ready[i];
	}
	omp_set_num_threads(before);
	c->api.primitive_attr_destroy(attr);
	return any;
}

struct convs *
convs_open(void *onednn, const struct ckr_blocked *b, uint32_t n, int threads,
           int bf16)
{
	struct convs *c;

	if (!onednn || !n)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->n = n;
	c->threads = threads;
	c->conv = calloc(n, sizeof(*c->conv));
	c->ready = calloc(n, sizeof(*c->ready));
	c->stream = calloc((size_t)threads, sizeof(dnnl_stream_t));
	if (!find_api(&c->api, onednn)) {
		c->n = 0;
		c->threads = 0;
	} else if (c->conv && c->ready && c->stream
	           && prepare_all(c, b, bf16)) {
		return c;
	}
	convs_close(c);
	return NULL;
}

void
convs_fill_env(struct convs *c, struct ckr_env *env)
{
	if (!c)
		return;
	env->conv = execute_conv;
	env->convs = c;
	env->conv_ready = c->ready;
}

void
convs_close(struct convs *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; c->conv && i < c->n; i++) {
		struct conv *v = &c->conv[i];

		for (int k = 0; v->memory && k < MEMORIES * c->threads; k++)
			if (v->memory[k])
				c->api.memory_destroy(v->memory[k]);
		free(v->memory);
		if (v->run)
			c->api.primitive_destroy(v->run);
	}
	for (int i = 0; c->stream && i < c->threads; i++)
		if (c->stream[i])
			c->api.stream_destroy(c->stream[i]);
	if (c->engine)
		c->api.engine_destroy(c->engine);
	free(c->conv);
	free(c->ready);
	free(c->stream);
	free(c);
}
