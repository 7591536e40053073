/* One convolution as a graph of cuDNN, and the engine that computes it. */
#include "runtime/device/engine.h"

#include <string.h>

enum { SPATIAL = 3, CHOICES = 32 };

/* Names of operands. */
enum { X = 1, W, Y, OPERANDS = 3 };

struct build {
	struct engine *e;
	const struct dnn *dnn;
	dnn_handle handle;
	dnn_descriptor device;
	const struct ckr_convolved *job;
	dnn_status bad;                 /* the first; nothing is done behind */
};

/* ---- descriptors ---- */

static dnn_descriptor
create_part(struct build *b, int kind)
{
	dnn_descriptor d = NULL;

	if (!b->bad && b->e->parts == ENGINE_PARTS)
		b->bad = -1;
	if (!b->bad)
		b->bad = b->dnn->make(kind, &d);
	if (!b->bad)
		b->e->part[b->e->parts++] = d;
	return b->bad ? NULL : d;
}

static void
set_attribute(struct build *b, dnn_descriptor d, int name, int type, int64_t n,
              const void *value)
{
	if (!b->bad)
		b->bad = b->dnn->set(d, name, type, n, value);
}

static void
set_int64(struct build *b, dnn_descriptor d, int name, int64_t value)
{
	set_attribute(b, d, name, DNN_IS_INT64, 1, &value);
}

static void
set_descriptor(struct build *b, dnn_descriptor d, int name, dnn_descriptor part)
{
	set_attribute(b, d, name, DNN_IS_DESCRIPTOR, 1, &part);
}

static void
finalize(struct build *b, dnn_descriptor d)
{
	if (!b->bad)
		b->bad = b->dnn->finish(d);
}

/* ---- the graph ---- */

/* Spatial dims that the library is told of: two, of which the first may be 1,
 * or three. */
static int
first_spatial_dim(const struct ckr_convolved *j)
{
	return j->in[0] == 1 && j->out[0] == 1 && j->kernel[0] == 1
		&& j->begin[0] == 0 && j->end[0] == 0;
}

static int
cudnn_type(uint8_t dtype)
{
	return dtype == CKR_BF16 ? DNN_BF16 : dtype == CKR_F16 ? DNN_F16
	       : DNN_F32;
}

/* Row-major [n, channels, extent]. */
static dnn_descriptor
tensor_descriptor(struct build *b, int64_t id, int64_t n, int64_t channels,
                  const int64_t *extent)
{
	int skip = first_spatial_dim(b->job), rank = 2 + SPATIAL - skip;
	int64_t dim[2 + SPATIAL] = { n, channels }, stride[2 + SPATIAL];
	int result = b->job->kind == CKR_CONV_Y ? Y
	           : b->job->kind == CKR_CONV_DX ? X : W;
	int type = cudnn_type(id == result ? b->job->result : b->job->type);
	dnn_descriptor d = create_part(b, DNN_TENSOR);

	memcpy(dim + 2, extent + skip, (size_t)(SPATIAL - skip) * sizeof(*dim));
	for (int i = rank - 1; i >= 0; i--)
		stride[i] = i == rank - 1 ? 1 : stride[i + 1] * dim[i + 1];
	set_attribute(b, d, DNN_TENSOR_TYPE, DNN_IS_DATA_TYPE, 1, &type);
	set_attribute(b, d, DNN_TENSOR_DIMS, DNN_IS_INT64, rank, dim);
	set_attribute(b, d, DNN_TENSOR_STRIDES, DNN_IS_INT64, rank, stride);
	set_int64(b, d, DNN_TENSOR_ID, id);
	set_int64(b, d, DNN_TENSOR_ALIGN, ENGINE_ALIGN);
	finalize(b, d);
	return d;
}

static dnn_descriptor
window_descriptor(struct build *b)
{
	const struct ckr_convolved *j = b->job;
	int skip = first_spatial_dim(j), n = SPATIAL - skip;
	int sums = DNN_F32, mode = DNN_CROSS_CORRELATION;
	dnn_descriptor d = create_part(b, DNN_CONVOLUTION);

	set_attribute(b, d, DNN_CONV_SUMS, DNN_IS_DATA_TYPE, 1, &sums);
	set_attribute(b, d, DNN_CONV_MODE, DNN_IS_MODE, 1, &mode);
	set_int64(b, d, DNN_CONV_DIMS, n);
	set_attribute(b, d, DNN_CONV_BEGIN, DNN_IS_INT64, n, j->begin + skip);
	set_attribute(b, d, DNN_CONV_END, DNN_IS_INT64, n, j->end + skip);
	set_attribute(b, d, DNN_CONV_STRIDE, DNN_IS_INT64, n, j->stride + skip);
	set_attribute(b, d, DNN_CONV_DILATION, DNN_IS_INT64, n,
	              j->dilation + skip);
	finalize(b, d);
	return d;
}

/* The library knows groups by the channels that a filter has. */
static dnn_descriptor
operation_descriptor(struct build *b)
{
	static const struct {
		int kind, alpha;
	} op[] = {
		[CKR_CONV_Y] = { DNN_FORWARD, DNN_FORWARD_ALPHA },
		[CKR_CONV_DX] = { DNN_BACK_DATA, DNN_BACK_DATA_ALPHA },
		[CKR_CONV_DW] = { DNN_BACK_FILTER, DNN_BACK_FILTER_ALPHA },
	};
	const struct ckr_convolved *j = b->job;
	float one = 1.0f, zero = 0.0f;
	int at = op[j->kind].alpha;
	dnn_descriptor w = tensor_descriptor(b, W, j->group * j->cout, j->cin,
	                                     j->kernel);
	dnn_descriptor x = tensor_descriptor(b, X, j->images, j->group * j->cin,
	                                     j->in);
	dnn_descriptor y = tensor_descriptor(b, Y, j->images,
	                                     j->group * j->cout, j->out);
	dnn_descriptor c = window_descriptor(b);
	dnn_descriptor d = create_part(b, op[j->kind].kind);

	set_attribute(b, d, at, DNN_IS_FLOAT, 1, &one);
	set_attribute(b, d, at + 1, DNN_IS_FLOAT, 1, &zero);
	set_descriptor(b, d, at + 2, c);
	set_descriptor(b, d, at + 3, w);
	set_descriptor(b, d, at + 4, x);
	set_descriptor(b, d, at + 5, y);
	finalize(b, d);
	return d;
}

static dnn_descriptor
graph_descriptor(struct build *b)
{
	dnn_descriptor op = operation_descriptor(b);
	dnn_descriptor d = create_part(b, DNN_GRAPH);

	if (b->handle)
		set_attribute(b, d, DNN_GRAPH_HANDLE, DNN_IS_HANDLE, 1,
		              &b->handle);
	set_descriptor(b, d, DNN_GRAPH_OPS, op);
	finalize(b, d);
	return d;
}

/* ---- the engine ---- */

/* Products of float32 are of float32, not of what tensor cores make of it; of
 * 16-bit operands what is summed is their products, by tensor cores if they
 * were the other way's too. */
static bool
has_usable_notes(const struct build *b, const int *note, int64_t n)
{
	bool half = b->job->type != CKR_F32, cores = false;

	for (int64_t i = 0; i < n; i++) {
		cores |= note[i] == DNN_NOTE_TENSOR_CORE;
		if (note[i] == DNN_NOTE_NO_ORDER || note[i] == DNN_NOTE_NARROWS
		    || note[i] == DNN_NOTE_NARROW_SUMS
		    || (half && (note[i] == DNN_NOTE_FFT
		                 || note[i] == DNN_NOTE_WINOGRAD)))
			return false;
	}
	return half ? cores || !b->job->products : !cores;
}

static bool
engine_suits(struct build *b, dnn_descriptor config)
{
	enum { NOTES = 16 };
	const struct dnn *dnn = b->dnn;
	int note[NOTES];
	int64_t n = 0;
	dnn_descriptor engine = NULL;
	bool ok = !dnn->make(DNN_ENGINE, &engine)
		&& !dnn->get(config, DNN_CONFIG_ENGINE, DNN_IS_DESCRIPTOR, 1,
		             &n, &engine)
		&& !dnn->get(engine, DNN_ENGINE_NOTES, DNN_IS_NOTE, NOTES, &n,
		             note)
		&& n <= NOTES && has_usable_notes(b, note, n);

	if (engine)
		dnn->drop(engine);
	return ok;
}

/* Whether the library makes a plan of it that does with the room there is. */
static bool
try_engine(struct build *b, dnn_descriptor config)
{
	const struct dnn *dnn = b->dnn;
	dnn_descriptor d = NULL;
	int64_t work = 0, n = 0;
	bool ok = engine_suits(b, config) && !dnn->make(DNN_PLAN, &d)
		&& !dnn->set(d, DNN_PLAN_CONFIG, DNN_IS_DESCRIPTOR, 1, &config)
		&& !(b->handle ? dnn->set(d, DNN_PLAN_HANDLE, DNN_IS_HANDLE, 1,
		                          &b->handle)
		     : dnn->set(d, DNN_PLAN_DEVICE, DNN_IS_DESCRIPTOR, 1,
		                &b->device))
		&& !dnn->finish(d)
		&& !dnn->get(d, DNN_PLAN_WORK, DNN_IS_INT64, 1, &n, &work)
		&& work <= b->job->workspace;

	if (!ok) {
		if (d)
			dnn->drop(d);
		return false;
	}
	b->e->plan = d;
	b->e->work = (uint64_t)work;
	return true;
}

/* What the library has to offer, best first; how many. */
static int64_t
query_engines(struct build *b, dnn_descriptor g, int mode,
              dnn_descriptor found[CHOICES])
{
	dnn_descriptor d = create_part(b, DNN_CHOICES);
	int64_t n = 0;

	set_descriptor(b, d, DNN_CHOICES_GRAPH, g);
	set_attribute(b, d, DNN_CHOICES_MODE, DNN_IS_CHOICE_MODE, 1, &mode);
	if (!b->handle)
		set_descriptor(b, d, DNN_CHOICES_DEVICE, b->device);
	finalize(b, d);
	for (int i = 0; i < CHOICES && !b->bad; i++)
		b->bad = b->dnn->make(DNN_CONFIG, &found[i]);
	if (!b->bad)
		b->bad = b->dnn->get(d, DNN_CHOICES_FOUND, DNN_IS_DESCRIPTOR,
		                     CHOICES, &n, found);
	return b->bad ? 0 : n < CHOICES ? n : CHOICES;
}

static void
choose_engine(struct build *b, dnn_descriptor g, int mode)
{
	dnn_descriptor found[CHOICES] = { NULL };
	int64_t n = query_engines(b, g, mode, found), taken = -1;

	for (int64_t i = 0; i < n && taken < 0; i++)
		if (try_engine(b, found[i]))
			taken = i;
	for (int64_t i = 0; i < CHOICES; i++) {
		if (i == taken)
			b->e->part[b->e->parts++] = found[i];
		else if (found[i])
			b->dnn->drop(found[i]);
	}
}

bool
engine_find(struct engine *e, const struct dnn *dnn, dnn_handle handle,
            dnn_descriptor device, const struct ckr_convolved *job)
{
	static const int mode[] = { DNN_MODE_A, DNN_MODE_FALLBACK };
	struct build b = { e, dnn, handle, device, job, 0 };
	dnn_descriptor g;
	bool known;

	*e = (struct engine){ .plan = NULL };
	g = graph_descriptor(&b);
	known = !b.bad;
	for (int i = 0; i < 2 && known && !e->plan; i++) {
		b.bad = 0;
		choose_engine(&b, g, mode[i]);
	}
	if (!e->plan)
		engine_free(e, dnn);
	return e->plan;
}

/* ---- calls ---- */

dnn_status
engine_run(const struct engine *e, const struct dnn *dnn, dnn_handle handle,
           void *x, void *w, void *y, void *work)
{
	int64_t id[OPERANDS] = { X, W, Y };
	void *at[OPERANDS] = { x, w, y };
	dnn_descriptor pack = NULL;
	dnn_status s = dnn->make(DNN_PACK, &pack);

	if (!s)
		s = dnn->set(pack, DNN_PACK_IDS, DNN_IS_INT64, OPERANDS, id);
	if (!s)
		s = dnn->set(pack, DNN_PACK_POINTERS, DNN_IS_POINTER, OPERANDS,
		             at);
	if (!s)
		s = dnn->set(pack, DNN_PACK_WORK, DNN_IS_POINTER, 1, &work);
	if (!s)
		s = dnn->finish(pack);
	if (!s)
		s = dnn->execute(handle, e->plan, pack);
	if (pack)
		dnn->drop(pack);
	return s;
}

void
engine_free(struct engine *e, const struct dnn *dnn)
{
	if (e->plan)
		dnn->drop(e->plan);
	while (e->parts > 0)
		dnn->drop(e->part[--e->parts]);
	*e = (struct engine){ .plan = NULL };
}
