/* cuDNN's graphs of one convolution on the host, as far as libckr asks.  Built
 * as libcudnn.so.9.  Descriptors must be complete, finished and alive; what the
 * library would refuse is refused.
 *
 * Engines stand in the order of the enum.  One that libckr must not take shows
 * it: by other numbers in each run, by operands of fewer bits, by writing all
 * the workspace that it said it wants.  CKR_FAKE_CUDNN: "old", a version that
 * is too old; "none", no GPU for it; "greedy", all engines want too much;
 * "fails", nothing is carried out; "unrecorded", nor while a graph is recorded,
 * which is then no graph.
 */
#include "tests/cuda/libcudnn.h"
#include "tests/cuda/stream.h"

#define EXPORT __attribute__((visibility("default")))

enum { MAGIC = 0x5eed, BAD = 2000, UNSUPPORTED = 3000, FAILED = 5000,
	STRICT_NAN = 9 };

/* Bits of what has been set; the others are last digits of names. */
enum { PART = 1 << 10, HANDLE = 1 << 11 };

struct desc {
	int magic, kind;
	bool done;
	unsigned seen;                  /* attributes that were set */
	struct tensor tensor;
	struct windows windows;
	struct job job;
	int mode;                       /* of choices */
	enum engine engine;
	int64_t id[3];                  /* of a pack */
	void *at[3], *work;
};

struct context {
	struct fake_stream *stream;
};

static bool
is(const char *what)
{
	const char *env = getenv("CKR_FAKE_CUDNN");

	return env && !strcmp(env, what);
}

EXPORT size_t
cudnnGetVersion(void)
{
	return is("old") ? 8204 : 91900;
}

EXPORT const char *
cudnnGetErrorString(int s)
{
	return s == 0 ? "CUDNN_STATUS_SUCCESS"
	     : s == BAD ? "CUDNN_STATUS_BAD_PARAM"
	     : s == UNSUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
	     : "CUDNN_STATUS_EXECUTION_FAILED";
}

EXPORT int
cudnnCreate(struct context **c)
{
	if (is("none"))
		return UNSUPPORTED;
	*c = calloc(1, sizeof(**c));
	return 0;
}

EXPORT int
cudnnDestroy(struct context *c)
{
	free(c);
	return 0;
}

EXPORT int
cudnnSetStream(struct context *c, struct fake_stream *s)
{
	c->stream = s;
	return 0;
}

/* ---- descriptors ---- */

EXPORT int
cudnnBackendCreateDescriptor(int kind, void **out)
{
	struct desc *d = calloc(1, sizeof(*d));

	d->magic = MAGIC;
	d->kind = kind;
	*out = d;
	return 0;
}

EXPORT int
cudnnBackendDestroyDescriptor(void *of)
{
	struct desc *d = of;

	if (d->magic != MAGIC)
		abort();
	memset(d, 0, sizeof(*d));
	free(d);
	return 0;
}

/* A finished descriptor of this kind; NULL: it is none. */
static const struct desc *
finished(const void *value, int kind)
{
	const struct desc *d = *(struct desc *const *)value;

	return d && d->magic == MAGIC && d->kind == kind && d->done ? d : NULL;
}

struct slot {
	int name, type;
	int64_t least, most;
	void *to;
	size_t size;
};

/* Where the value of an attribute goes; "to" NULL: there is no such one. */
static struct slot
slot(struct desc *d, int name)
{
	struct tensor *t = &d->tensor;
	struct windows *c = &d->windows;
	struct slot none = { 0 };

#define SLOT(of, is_name, is_type, n0, n1, where) \
	if (d->kind == (of) && name == (is_name)) \
		return (struct slot){ name, is_type, n0, n1, where, \
			sizeof(*(where)) };
	SLOT(DNN_TENSOR, DNN_TENSOR_TYPE, DNN_IS_DATA_TYPE, 1, 1, &t->type)
	SLOT(DNN_TENSOR, DNN_TENSOR_DIMS, DNN_IS_INT64, 4, RANK, t->dim)
	SLOT(DNN_TENSOR, DNN_TENSOR_STRIDES, DNN_IS_INT64, 4, RANK, t->stride)
	SLOT(DNN_TENSOR, DNN_TENSOR_ID, DNN_IS_INT64, 1, 1, &t->id)
	SLOT(DNN_TENSOR, DNN_TENSOR_ALIGN, DNN_IS_INT64, 1, 1, &t->align)
	SLOT(DNN_CONVOLUTION, DNN_CONV_SUMS, DNN_IS_DATA_TYPE, 1, 1, &c->sums)
	SLOT(DNN_CONVOLUTION, DNN_CONV_MODE, DNN_IS_MODE, 1, 1, &c->mode)
	SLOT(DNN_CONVOLUTION, DNN_CONV_DIMS, DNN_IS_INT64, 1, 1, &c->dims)
	SLOT(DNN_CONVOLUTION, DNN_CONV_BEGIN, DNN_IS_INT64, 2, 3, c->begin)
	SLOT(DNN_CONVOLUTION, DNN_CONV_END, DNN_IS_INT64, 2, 3, c->end)
	SLOT(DNN_CONVOLUTION, DNN_CONV_STRIDE, DNN_IS_INT64, 2, 3, c->stride)
	SLOT(DNN_CONVOLUTION, DNN_CONV_DILATION, DNN_IS_INT64, 2, 3,
	     c->dilation)
	SLOT(DNN_CHOICES, DNN_CHOICES_MODE, DNN_IS_CHOICE_MODE, 1, 1, &d->mode)
	SLOT(DNN_PACK, DNN_PACK_IDS, DNN_IS_INT64, 3, 3, d->id)
	SLOT(DNN_PACK, DNN_PACK_POINTERS, DNN_IS_POINTER, 3, 3, d->at)
	SLOT(DNN_PACK, DNN_PACK_WORK, DNN_IS_POINTER, 1, 1, &d->work)
#undef SLOT
	return none;
}

/* What an operation is made of. */
static int
set_operation(struct desc *d, int name, int type, const void *value)
{
	int first = d->kind == DNN_FORWARD ? DNN_FORWARD_ALPHA
	          : d->kind == DNN_BACK_DATA ? DNN_BACK_DATA_ALPHA
	          : DNN_BACK_FILTER_ALPHA;
	struct tensor *operand[] = { &d->job.w, &d->job.x, &d->job.y };
	const struct desc *of;
	int k = name - first;

	if (k < 0 || k > 5 || type != (k < 2 ? DNN_IS_FLOAT : DNN_IS_DESCRIPTOR))
		return BAD;
	d->seen |= 1u << k;
	if (k < 2) {
		memcpy(k == 0 ? &d->job.alpha : &d->job.beta, value,
		       sizeof(float));
		return 0;
	}
	of = finished(value, k == 2 ? DNN_CONVOLUTION : DNN_TENSOR);
	if (!of)
		return BAD;
	if (k == 2)
		d->job.c = of->windows;
	else
		*operand[k - 3] = of->tensor;
	return 0;
}

/* Descriptors that refer to another one: they have its job from then on. */
static int
set_part(struct desc *d, int name, int type, const void *value)
{
	static const struct {
		int kind, name, part;
	} part[] = {
		{ DNN_GRAPH, DNN_GRAPH_OPS, DNN_FORWARD },
		{ DNN_GRAPH, DNN_GRAPH_OPS, DNN_BACK_DATA },
		{ DNN_GRAPH, DNN_GRAPH_OPS, DNN_BACK_FILTER },
		{ DNN_CHOICES, DNN_CHOICES_GRAPH, DNN_GRAPH },
		{ DNN_PLAN, DNN_PLAN_CONFIG, DNN_CONFIG },
	};

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		const struct desc *of = part[i].kind == d->kind
			&& part[i].name == name && type == DNN_IS_DESCRIPTOR
			? finished(value, part[i].part) : NULL;

		if (!of)
			continue;
		d->job = of->job;
		d->engine = of->engine;
		d->seen |= PART;
		return 0;
	}
	return BAD;
}

EXPORT int
cudnnBackendSetAttribute(void *of, int name, int type, int64_t n,
                         const void *value)
{
	struct desc *d = of;
	struct slot s;

	if (!d || d->magic != MAGIC || d->done || !value)
		return BAD;
	if ((d->kind == DNN_GRAPH && name == DNN_GRAPH_HANDLE)
	    || (d->kind == DNN_PLAN && name == DNN_PLAN_HANDLE)) {
		d->seen |= HANDLE;
		return type == DNN_IS_HANDLE && n == 1 ? 0 : BAD;
	}
	s = slot(d, name);
	if (!s.to && n != 1)
		return BAD;
	if (!s.to)
		return d->kind == DNN_FORWARD || d->kind == DNN_BACK_DATA
		       || d->kind == DNN_BACK_FILTER
		       ? set_operation(d, name, type, value)
		       : set_part(d, name, type, value);
	if (s.type != type || n < s.least || n > s.most)
		return BAD;
	memcpy(s.to, value, (size_t)n * s.size);
	if (name == DNN_TENSOR_DIMS)
		d->tensor.rank = n;
	d->seen |= 1u << name % 10;
	return 0;
}

/* ---- what is finished ---- */

/* Side by side, aligned as libckr's are. */
static bool
tensor_ok(const struct tensor *t)
{
	int64_t step = 1;

	for (int64_t i = t->rank - 1; i >= 0; i--) {
		if (t->dim[i] < 1 || t->stride[i] != step)
			return false;
		step *= t->dim[i];
	}
	return (t->type == DNN_F32 || t->type == DNN_F16 || t->type == DNN_BF16)
		&& t->align == 16;
}

static bool
windows_ok(const struct windows *c)
{
	bool ok = c->sums == DNN_F32 && c->mode == DNN_CROSS_CORRELATION
		&& (c->dims == 2 || c->dims == 3);

	for (int64_t i = 0; ok && i < c->dims; i++)
		ok = c->begin[i] >= 0 && c->end[i] >= 0 && c->stride[i] >= 1
			&& c->dilation[i] >= 1;
	return ok;
}

static bool
job_ok(const struct job *j)
{
	const int64_t *x = j->x.dim, *w = j->w.dim, *y = j->y.dim;
	const struct windows *c = &j->c;
	bool ok = j->alpha == 1 && j->beta == 0 && j->x.id != j->y.id
		&& j->x.id != j->w.id && j->w.id != j->y.id
		&& j->x.rank == c->dims + 2 && j->w.rank == j->x.rank
		&& j->y.rank == j->x.rank && x[0] == y[0] && w[0] == y[1]
		&& x[1] % w[1] == 0 && w[0] % (x[1] / w[1]) == 0;

	/* results are of the operands' type, as the library's engines want */
	ok = ok && j->x.type == j->w.type && j->x.type == j->y.type;
	for (int64_t i = 0; ok && i < c->dims; i++) {
		int64_t room = x[i + 2] + c->begin[i] + c->end[i]
			- (w[i + 2] - 1) * c->dilation[i] - 1;

		ok = room >= 0 && room / c->stride[i] + 1 == y[i + 2];
	}
	return ok;
}

EXPORT int
cudnnBackendFinalize(void *of)
{
	static const unsigned whole[64] = {
		[DNN_TENSOR] = 0x4f, [DNN_CONVOLUTION] = 0x7f,
		[DNN_FORWARD] = 0x3f, [DNN_BACK_DATA] = 0x3f,
		[DNN_BACK_FILTER] = 0x3f, [DNN_GRAPH] = PART | HANDLE,
		[DNN_CHOICES] = PART | 1, [DNN_PLAN] = PART | HANDLE,
		[DNN_PACK] = 0xb,
	};
	struct desc *d = of;

	if (!d || d->magic != MAGIC || d->done || d->kind > 63
	    || d->seen != whole[d->kind])
		return BAD;
	switch (d->kind) {
	case DNN_TENSOR:
		d->done = tensor_ok(&d->tensor);
		break;
	case DNN_CONVOLUTION:
		d->done = windows_ok(&d->windows);
		break;
	case DNN_FORWARD:
	case DNN_BACK_DATA:
	case DNN_BACK_FILTER:
		d->job.kind = d->kind;
		d->done = job_ok(&d->job);
		break;
	default:
		d->done = true;
	}
	return d->done ? 0 : BAD;
}

static int64_t
bytes(const struct tensor *t)
{
	return t->stride[0] * t->dim[0] * (t->type == DNN_F32 ? 4 : 2);
}

static int64_t
work_of(const struct desc *d)
{
	const struct job *j = &d->job;

	return d->engine == GREEDY || is("greedy") ? (int64_t)1 << 40
	     : d->engine == PLAIN ? 0 : bytes(&j->x) + bytes(&j->w)
	     + bytes(&j->y);
}

/* Tensor cores round float32; all but the plain engine use them on 16 bits. */
static int64_t
get_notes(const struct desc *d, int note[2])
{
	bool half = d->job.x.type != DNN_F32;

	note[0] = half ? DNN_NOTE_TENSOR_CORE : STRICT_NAN;
	note[1] = STRICT_NAN;
	if (d->engine == NO_ORDER)
		note[1] = DNN_NOTE_NO_ORDER;
	else if (d->engine == NARROWS)
		note[1] = half ? DNN_NOTE_NARROWS : DNN_NOTE_TENSOR_CORE;
	else if (d->engine == PLAIN)
		note[0] = STRICT_NAN;
	return 2;
}

EXPORT int
cudnnBackendGetAttribute(void *of, int name, int type, int64_t n,
                         int64_t *found, void *value)
{
	const struct desc *d = of;
	struct desc *const *to = value;
	bool first = d->mode == DNN_MODE_A;

	if (d->magic != MAGIC || (d->kind != DNN_ENGINE && !d->done) || n < 1)
		return BAD;
	*found = 1;
	if (d->kind == DNN_CHOICES && name == DNN_CHOICES_FOUND
	    && type == DNN_IS_DESCRIPTOR && n >= ENGINES) {
		*found = first ? PLAIN : 1;
		for (int64_t i = 0; i < *found; i++) {
			to[i]->job = d->job;
			to[i]->engine = first ? (enum engine)i : PLAIN;
			to[i]->done = true;
		}
	} else if (d->kind == DNN_CONFIG && name == DNN_CONFIG_ENGINE
	           && type == DNN_IS_DESCRIPTOR) {
		to[0]->engine = d->engine;
		to[0]->job = d->job;
	} else if (d->kind == DNN_ENGINE && name == DNN_ENGINE_NOTES
	           && type == DNN_IS_NOTE && n >= 2) {
		*found = get_notes(d, value);
	} else if (d->kind == DNN_PLAN && name == DNN_PLAN_WORK
	           && type == DNN_IS_INT64) {
		*(int64_t *)value = work_of(d);
	} else {
		return BAD;
	}
	return 0;
}

EXPORT int
cudnnBackendExecute(struct context *c, void *plan, void *pack)
{
	const struct desc *d = finished(&plan, DNN_PLAN);
	const struct desc *p = finished(&pack, DNN_PACK);
	struct call call, *kept;
	void **to[] = { &call.x, &call.w, &call.y };

	if (!c || !d || !p || is("fails"))
		return is("fails") ? FAILED : BAD;
	call = (struct call){ d->job, d->engine, NULL, NULL, NULL, p->work,
		work_of(d) };
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			if (p->id[i] == (k == 0 ? d->job.x.id : k == 1
			                 ? d->job.w.id : d->job.y.id))
				*to[k] = p->at[i];
	for (int k = 0; k < 3; k++)
		if (!*to[k] || (uintptr_t)*to[k] % 16)
			return BAD;
	if (c->stream->capturing && is("unrecorded")) {
		c->stream->invalid = 1;
		return FAILED;
	}
	if (call.bytes && !call.work)
		return BAD;
	if (!c->stream->end) {
		c->stream->enter();
		fake_convolve(&call);
		c->stream->leave();
		return 0;
	}
	kept = malloc(sizeof(*kept));
	*kept = call;
	c->stream->keep(c->stream, fake_convolve, free, kept);
	return 0;
}
