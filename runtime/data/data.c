/* Feeding inputs step by step, from the sources that pair.c chose.
 *
 * Windows of tokens and rows of arrays come once in an epoch, in an order that
 * is a function of the seed and of the sample's number alone, so that a resumed
 * run sees the data it would have seen, of another number of replicas too.
 * What is not trained on comes in order.
 */
#include "runtime/data/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/mem.h"
#include "runtime/base/rng.h"
#include "runtime/file/packed.h"
#include "runtime/image/image.h"

/* ---- filling ---- */

/* ONNX counts indices below 0 from the end, PyTorch's layers refuse them:
 * such data are rather a mistake. */
static void
warn_negative(struct data *d, const struct fed_input *it, uint64_t first,
              uint64_t n, const char *x)
{
	const struct data_column *c = dataset_column(&d->set, it->array);
	const struct data_shard *p = dataset_shard(c, first);
	size_t size = dtype_row[it->in.dtype].nbytes;
	char place[NAME_TEXT + 4];

	for (uint64_t i = 0; i < n && !*d->warning; i++) {
		double id = dtype_double(it->in.dtype, x + i * size);

		if (id < 0)
			snprintf(d->warning, sizeof(d->warning),
			         "%s%s: element %llu is %.0f: negative ids "
			         "index from the end", p->file->path,
			         array_place(place, sizeof(place), p->array),
			         (unsigned long long)(first + i - p->first),
			         id);
	}
}

static ckr_status
read_span(struct data *d, const struct fed_input *it, uint64_t first,
          uint64_t n, uint64_t at)
{
	uint8_t dtype = it->in.dtype;
	char *to = (char *)it->in.data + at * dtype_row[dtype].nbytes;

	CKR_TRY(dataset_read(&d->set, it->array, first, n, dtype, to,
	                    &d->err));
	if (it->in.index)
		warn_negative(d, it, first, n, to);
	return CKR_OK;
}

/* A row of pixels into row `at` of the input; visit: its number in the order in
 * which a run reads rows. */
static ckr_status
read_pixel_row(struct data *d, const struct fed_input *it, uint64_t first,
               uint64_t at, uint64_t visit)
{
	size_t size = dtype_row[it->in.dtype].nbytes, bad;
	char *to = (char *)it->in.data + at * size;
	const unsigned char *row = d->row;

	CKR_TRY(dataset_read(&d->set, it->array, first, it->row, CKR_U8,
	                     d->row, &d->err));
	if (it->image.height) {
		augment_image(&d->augment, &it->image, ckr_seed(d->ctx), visit,
		              d->row, d->moved);
		row = d->moved;
	}
	pixels_convert(&it->pixels, row, d->pixels_f32);
	dtype_convert(to, it->in.dtype, d->pixels_f32, CKR_F32, it->row, &bad);
	return CKR_OK;
}

static void
fill_constant(const struct fed_input *it)
{
	uint8_t dtype = it->in.dtype;
	char *to = it->in.data;
	size_t bad;

	for (uint64_t i = 0; i < it->in.nelem; i++) {
		int64_t x = it->source == FROM_ONES ? 1
		            : it->source == FROM_POSITIONS
		            ? (int64_t)(i % it->row) : 0;

		dtype_convert(to + i * dtype_row[dtype].nbytes, dtype, &x,
		              CKR_I64, 1, &bad);
	}
}

/* Contents that never change are set once. */
static ckr_status
fill_constants(struct data *d)
{
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct fed_input *it = &d->pair.item[i];

		if (it->source >= FROM_ONES)
			fill_constant(it);
		else if (it->source == FROM_WHOLE)
			CKR_TRY(read_span(d, it, 0, it->in.nelem, 0));
	}
	return CKR_OK;
}

static bool
is_sampled(const struct fed_input *it)
{
	return pair_takes_window(it) || it->source == FROM_SAMPLES;
}

/* How many samples an item has. */
static uint64_t
count_samples(const struct data *d, const struct fed_input *it)
{
	return pair_takes_window(it) ? d->windows.n
	                             : (uint64_t)it->array->dim[0];
}

/* In order: row i of an item, behind the end those of the last sample again. */
static uint64_t
nth_in_order(const struct data *d, const struct fed_input *it, uint64_t i)
{
	uint64_t each = it->rows > d->rows ? it->rows / d->rows : 1;

	return i / each < d->samples ? i
	       : (d->samples - 1) * each + i % each;
}

static ckr_status
feed_windows(struct data *d, const struct fed_input *it, uint64_t first)
{
	uint64_t seed = ckr_seed(d->ctx);

	for (uint64_t r = 0; r < it->rows; r++) {
		uint64_t at = d->in_order
			? windows_nth(&d->windows,
			              nth_in_order(d, it, first + r))
			: windows_at(&d->windows, seed, first + r);

		CKR_TRY(read_span(d, it, at + (it->source == FROM_NEXT),
		                  it->row, r * it->row));
	}
	return CKR_OK;
}

static uint64_t
nth_row(const struct data *d, const struct fed_input *it, uint64_t i)
{
	uint64_t all = (uint64_t)it->array->dim[0];

	return d->in_order ? nth_in_order(d, it, i)
	       : rng_shuffled(ckr_seed(d->ctx), i / all, i % all, all);
}

static ckr_status
feed_rows(struct data *d, const struct fed_input *it, uint64_t first)
{
	for (uint64_t r = 0; r < it->rows; r++) {
		uint64_t i = nth_row(d, it, first + r);

		if (it->pixels.channels)
			CKR_TRY(read_pixel_row(d, it, i * it->row, r * it->row,
			                       first + r));
		else
			CKR_TRY(read_span(d, it, i * it->row, it->row,
			                  r * it->row));
	}
	return CKR_OK;
}

uint64_t
data_position(const struct data *d)
{
	return d->in_order ? d->first : ckr_sample_count(d->ctx);
}

/* The number of the item's first sample in a micro-batch of the batch that
 * begins behind n samples, in rows of the item. */
static uint64_t
first_sample(const struct data *d, const struct fed_input *it, uint64_t n,
             uint32_t micro)
{
	return n / d->rows * it->rows + n % d->rows * it->rows / d->rows
	       + micro * it->rows;
}

uint64_t
data_row(const struct data *d, const struct fed_input *it, uint64_t n,
         uint32_t micro, uint64_t r)
{
	return nth_row(d, it, first_sample(d, it, n, micro) + r);
}

static ckr_status
feed_inputs(struct data *d, uint32_t micro)
{
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct fed_input *it = &d->pair.item[i];
		uint64_t n = it->in.nelem;
		uint64_t first = first_sample(d, it, data_position(d), micro);

		if (!ckr_needs_input(d->ctx, it->in.name))
			continue;
		if (pair_takes_window(it))
			CKR_TRY(feed_windows(d, it, first));
		else if (it->source == FROM_SAMPLES)
			CKR_TRY(feed_rows(d, it, first));
		else if (it->source == FROM_WHOLE && it->array->nelem > n)
			CKR_TRY(read_span(d, it, micro * n, n, 0));
	}
	return CKR_OK;
}

/* Errors of the data become the context's error. */
static ckr_status
forward_error(struct data *d, ckr_status s)
{
	return s == CKR_OK ? s : ckr_fail(d->ctx, s, "%s", d->err.text);
}

ckr_status
data_feed(void *user, ckr_ctx *ctx, uint64_t step, uint32_t micro)
{
	(void)ctx;
	(void)step;
	return forward_error(user, feed_inputs(user, micro));
}

ckr_status
data_batch(struct data *d, uint64_t first)
{
	d->first = first;
	return forward_error(d,
	                     feed_inputs(d, d->sampled ? 0 : (uint32_t)first));
}

ckr_status
data_fill(struct data *d)
{
	return forward_error(d, fill_constants(d));
}

/* ---- opening ---- */

static struct input_spec
make_input(const struct ckr_info *info)
{
	struct input_spec in = { .name = info->name, .rank = info->rank,
	                         .dtype = dtype_from_text(info->dtype),
	                         .shifted = info->shifted,
	                         .index = info->index };

	memcpy(in.dim, info->dim, sizeof(in.dim));
	in.nelem = info->nbytes / dtype_row[in.dtype].nbytes;
	return in;
}

static bool
has_feed(const struct data_options *o, const char *input)
{
	size_t n = strlen(input);

	for (size_t i = 0; i < o->nfeed; i++)
		if (!strncmp(o->feed[i], input, n) && o->feed[i][n] == '=')
			return true;
	return false;
}

static ckr_status
collect_inputs(struct data *d, const struct data_options *o)
{
	struct pairing *p = &d->pair;
	struct ckr_info info;
	struct fed_input *more;

	for (size_t i = 0; ckr_tensor(d->ctx, i, &info) == CKR_OK; i++) {
		if (strcmp(info.kind, "input")
		    || (o->no_labels && info.label && !has_feed(o, info.name)))
			continue;
		more = mem_append(p->item, p->n, sizeof(*more));
		if (!more)
			return err_no_memory(&d->err);
		p->item = more;
		p->item[p->n] = (struct fed_input){ .in = make_input(&info) };
		if (ckr_input(d->ctx, info.name, &p->item[p->n++].in.data))
			return err_set(&d->err, CKR_EARG, "%s",
			               ckr_error(d->ctx));
	}
	return CKR_OK;
}

/* Samples of a batch: rows of the first input that has rows. */
static uint64_t
batch_samples(const struct data *d)
{
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct input_spec *in = &d->pair.item[i].in;

		if (in->rank)
			return (uint64_t)in->dim[0];
	}
	return 1;
}

/* What a step's throughput counts: tokens if there are any, else samples. */
static void
count_units(struct data *d)
{
	uint32_t nmicro = d->pair.nmicro;

	d->units = nmicro * batch_samples(d);
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct input_spec *in = &d->pair.item[i].in;

		if (pair_kind(in->dtype) == 'i' && in->rank >= 2
		    && !d->unit_tokens && pair_meaning(in) == FROM_TOKENS) {
			d->unit_tokens = true;
			d->units = nmicro * in->nelem;
		}
	}
}

/* What is sampled, and so how many samples a step takes, of how
 * many; rows before windows, if --feed wants both. */
static void
count_step_rows(struct data *d)
{
	d->rows = d->epoch = 0;
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct fed_input *it = &d->pair.item[i];
		bool first = !d->rows || d->epoch == d->windows.n;

		if (it->source == FROM_SAMPLES && first)
			d->epoch = (uint64_t)it->array->dim[0];
		else if (pair_takes_window(it) && !d->rows)
			d->epoch = d->windows.n;
		else
			continue;
		d->rows = d->rows ? d->rows : it->rows;
	}
	d->sampled = d->rows > 0;
	d->per_step = d->rows * d->pair.nmicro;
	d->rows = d->rows ? d->rows : 1;
	d->whole = d->sampled ? 1 : batch_samples(d);
}

/* Room for a row of pixels of n elements. */
static ckr_status
reserve_row(struct data *d, uint64_t n)
{
	if (n <= d->capacity)
		return CKR_OK;
	free(d->row);
	free(d->pixels_f32);
	free(d->moved);
	d->row = malloc(n);
	d->moved = malloc(n);
	d->pixels_f32 = calloc(n, sizeof(*d->pixels_f32));
	d->capacity = n;
	return d->row && d->moved && d->pixels_f32 ? CKR_OK
	       : err_no_memory(&d->err);
}

/* Contents can be read, windows are cut, and all rows lie in the same
 * shards. */
static ckr_status
open_samples(struct data *d)
{
	const struct array *rows = NULL;
	bool scaled = false;

	for (size_t i = 0; i < d->pair.n; i++) {
		const struct fed_input *it = &d->pair.item[i];

		if (it->array)
			CKR_TRY(dataset_prepare(&d->set, it->array, &d->err));
		if (pair_takes_window(it) && !d->windows.shard)
			CKR_TRY(windows_open(&d->windows, &d->set,
			                     d->pair.stream, it->row,
			                     d->pair.next, &d->err));
		if (it->source != FROM_SAMPLES)
			continue;
		rows = rows ? rows : it->array;
		CKR_TRY(dataset_same_rows(&d->set, rows, it->array,
		                         &d->err));
		scaled |= it->pixels.normal != NULL;
		if (it->pixels.channels)
			CKR_TRY(reserve_row(d, it->row));
	}
	if (d->pair.normal.n && !scaled)
		return err_set(&d->err, CKR_EARG, "--normalize: no float input "
		               "reads pixels from --data; pixels are u8 "
		               "arrays, or integer arrays named by --feed "
		               "INPUT=ARRAY");
	return CKR_OK;
}

/* Whether rows of the item are of the images' height and width, too: they
 * would have to move with them, such as the classes of pixels. */
static bool
moves_along(const struct fed_input *it, const struct image_layout *m)
{
	const struct array *a = it->array;

	for (int i = 1; it->source == FROM_SAMPLES && i + 1 < a->rank; i++)
		if ((uint64_t)a->dim[i] == m->height
		    && (uint64_t)a->dim[i + 1] == m->width)
			return true;
	return false;
}

/* --augment: all inputs of images, which have one height and width. */
static ckr_status
open_augmentation(struct data *d)
{
	struct fed_input *found = NULL;
	char name[NAME_TEXT], other[NAME_TEXT];

	for (size_t i = 0; i < d->pair.n; i++) {
		struct fed_input *it = &d->pair.item[i];
		const char *turned = it->pixels.transposed;
		bool hwc = it->layout == 'h'
			|| (turned && !strncmp(turned, "HWC", 3));
		bool chw = it->layout == 'c' || (turned && !hwc);

		if (it->source != FROM_SAMPLES || !it->pixels.channels
		    || it->array->rank < 3)
			continue;
		if (!image_layout_find(&it->image, it->array, hwc, chw))
			return err_set(&d->err, CKR_EARG, "--augment: images "
			               "of input '%s' may be CHW or HWC; try: "
			               "--feed '%s=chw' or '%s=hwc'",
			               err_name(name, sizeof(name),
			                        it->in.name), name, name);
		if (d->augment.crop >= it->image.width
		    || d->augment.crop >= it->image.height)
			return err_set(&d->err, CKR_EARG, "--augment crop=%u: "
			               "images of input '%s' have %llu by %llu "
			               "pixels", (unsigned)d->augment.crop,
			               err_name(name, sizeof(name),
			                        it->in.name),
			               (unsigned long long)it->image.height,
			               (unsigned long long)it->image.width);
		found = it;
	}
	if (!found)
		return err_set(&d->err, CKR_EARG, "--augment: no float input "
		               "reads images from --data: u8 arrays of "
		               "[samples,height,width] or with channels");
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct fed_input *it = &d->pair.item[i];

		if (it != found && moves_along(it, &found->image))
			return err_set(&d->err, CKR_EUNSUPPORTED, "--augment "
			               "would move the images of '%s', but not "
			               "'%s', which has their height and width",
			               err_name(name, sizeof(name),
			                        found->in.name),
			               err_name(other, sizeof(other),
			                        it->in.name));
	}
	return CKR_OK;
}

/* In order: how many samples all items have; of batches, how many of them. */
static void
count_total(struct data *d)
{
	d->samples = d->sampled ? UINT64_MAX : 1;
	for (size_t i = 0; i < d->pair.n; i++) {
		const struct fed_input *it = &d->pair.item[i];
		uint64_t n = is_sampled(it) ? count_samples(d, it) / it->rows
		             * d->rows + count_samples(d, it) % it->rows
		             * d->rows / it->rows : d->samples;

		if (it->source == FROM_WHOLE && !d->sampled
		    && it->array->nelem > it->in.nelem)
			n = it->array->nelem / it->in.nelem;
		if (d->sampled ? n < d->samples : n > d->samples)
			d->samples = n;
	}
}

static ckr_status
open_inputs(struct data *d, const struct data_options *o)
{
	struct dataset_options inputs = { .text = &o->inputs, .n = 1 };

	CKR_TRY(dataset_open(&d->set, o->inputs ? &inputs : &o->data,
	                     &d->err));
	d->pair = (struct pairing){ .array = d->set.array,
		.narray = d->set.narray, .path = d->set.path,
		.raw = o->data.tokens, .whole = o->inputs,
		.nmicro = ckr_micro_batches(d->ctx), .err = &d->err };
	if (o->normalize)
		CKR_TRY(normalization_parse(&d->pair.normal, o->normalize,
		                            &d->err));
	if (o->augment)
		CKR_TRY(augmentation_parse(&d->augment, o->augment, &d->err));
	CKR_TRY(collect_inputs(d, o));
	CKR_TRY(pair_inputs(&d->pair, o->feed, o->nfeed));
	CKR_TRY(open_samples(d));
	if (o->augment)
		CKR_TRY(open_augmentation(d));
	count_units(d);
	count_step_rows(d);
	count_total(d);
	return fill_constants(d);
}

ckr_status
data_open(struct data *d, ckr_ctx *ctx, const struct data_options *o)
{
	*d = (struct data){ .ctx = ctx, .in_order = o->in_order };
	return forward_error(d, open_inputs(d, o));
}

void
data_close(struct data *d)
{
	dataset_close(&d->set);
	windows_close(&d->windows);
	free(d->pair.item);
	free(d->row);
	free(d->moved);
	free(d->pixels_f32);
	*d = (struct data){ 0 };
}

/* ---- epochs ---- */

bool
data_steps(const struct data *d, uint64_t epochs, uint64_t *steps)
{
	uint64_t samples, left, done = ckr_sample_count(d->ctx);

	*steps = ckr_step_count(d->ctx);
	if (!d->per_step || __builtin_mul_overflow(epochs, d->epoch, &samples))
		return false;
	left = samples > done ? samples - done : 0;
	*steps += left / d->per_step + (left % d->per_step != 0);
	return true;
}

double
data_epoch(const struct data *d)
{
	return d->per_step ? (double)ckr_sample_count(d->ctx)
	                     / (double)d->epoch : NAN;
}

void
data_print(const struct data *d, FILE *out)
{
	dataset_print(&d->set, out);
	pair_print(&d->pair, out);
	if (d->per_step && !d->in_order)
		fprintf(out, "  an epoch is %llu %s, %.6g steps\n",
		        (unsigned long long)d->epoch,
		        d->epoch == d->windows.n ? "windows" : "samples",
		        (double)d->epoch / (double)d->per_step);
}

static void
print_image_format(const struct image_format *k, FILE *out)
{
	const char *missing = k->missing ? strstr(k->missing, "not") : NULL;

	fprintf(out, "%s: %s\n", k->name, missing ? missing
	        : "images are read");
}

void
data_formats(FILE *out)
{
	fprintf(out, "zlib: %s\n", packed_can()
	        ? "compressed .npz files are read" : "not built in, compressed "
	          ".npz files are rejected (CMake: CKC_ZLIB, zlib1g-dev)");
	print_image_format(&image_png, out);
	print_image_format(&image_jpeg, out);
}
