#include "runtime/ckrun/start.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/ckrun/schedule.h"
#include "runtime/file/file.h"
#include "runtime/file/parts_folder.h"
#include "runtime/support/path.h"

struct data_options
start_data(const struct ckrun_options *o, const struct option_files *f)
{
	return (struct data_options){ .data = { .text = f->v, .n = f->n,
			.tokens = o->tokens,
			.columns = { o->columns.v, o->columns.n } },
		.feed = o->feed.v, .nfeed = o->feed.n,
		.normalize = o->normalize };
}

/* How many of the weights are not of --init, and which. */
static void
print_uninitialized(ckr_ctx *m, const struct ckrun_options *o)
{
	enum { FEW = 3 };
	struct ckr_info info;
	size_t left = 0, all = 0;
	char text[NAME_TEXT];

	while (ckr_missing_weight(m, left))
		left++;
	for (size_t i = 0; ckr_tensor(m, i, &info) == CKR_OK; i++)
		all += !strcmp(info.kind, "param")
		       || !strcmp(info.kind, "buffer");
	if (!left || (o->quiet && !o->stats))
		return;
	printf("%zu of %zu parameters and buffers keep their compiled values: ",
	       left, all);
	for (size_t i = 0; i < left && (o->stats || i < FEW); i++)
		printf("%s%s", i ? ", " : "",
		       err_name(text, sizeof(text), ckr_missing_weight(m, i)));
	puts(left > FEW && !o->stats ? ", ... (all: --stats)" : "");
}

static ckr_status
warn_nonfinite(ckr_ctx *m, const char *option)
{
	ckr_status s = ckr_check_finite(m);

	if (s == CKR_ENAN && ckr_is_reporter(m))
		fprintf(stderr, "ckrun: warning: %s: %s\n", option,
		        ckr_error(m));
	return s == CKR_ENAN ? CKR_OK : s;
}

/* Evaluation reads the averages of a checkpoint as parameters, for which the
 * library needs no states; training needs both. */
static bool
reads_averages(const struct ckrun_options *o)
{
	return o->ema && o->verb != VERB_TRAIN;
}

/* What is not plainly all weights of a file. */
static ckr_status
init_some(ckr_ctx *m, const struct ckrun_options *o)
{
	const struct ckr_init how = { .map = o->init_map.v,
		.nmap = o->init_map.n, .skip = o->init_skip.v,
		.nskip = o->init_skip.n, .partial = o->init_partial,
		.ema = reads_averages(o) };

	return ckr_init_all(m, o->init.v, o->init.n, &how);
}

ckr_status
start_averages(ckr_ctx *m, const struct ckrun_options *o, bool use)
{
	bool made = ckr_step_count(m) > ckr_skipped_count(m);

	return o->ema && (made || !use) ? ckr_use_ema(m, use) : CKR_OK;
}

ckr_status
start_weights(ckr_ctx **m, const struct ckrun_options *o, const char *so)
{
	bool some = o->init_map.n || o->init_partial || o->init_skip.n
		|| o->init.n > 1 || (o->init.n && reads_averages(o));
	const struct ckr_init averages = { .ema = true };
	struct ckr_options co = { .weights = o->resume ? "" : some
			|| !o->init.n ? NULL : o->init.v[0],
		.blas = o->blas, .threads = (int)o->threads, .seed = o->seed,
		.ranks = (uint32_t)o->ranks,
		.comm_timeout = o->comm_timeout,
		.offload_dir = o->offload_dir };

	CKR_TRY(ckr_open(m, so, &co));
	if (options_given(o, "loss-scale") && !o->against
	    && !(ckr_loss_scale(*m) > 0))
		return ckr_fail(*m, CKR_EUNSUPPORTED, "--loss-scale: %s has no "
		                "f16 gradients, so the loss is not scaled; "
		                "omit the option, or compile a model with "
		                "matrix products with ckc --dtype f16", so);
	if (some)
		CKR_TRY(init_some(*m, o));
	if (o->init.n)
		print_uninitialized(*m, o);
	if (o->init.n)
		CKR_TRY(warn_nonfinite(*m, "--init"));
	if (o->resume) {
		CKR_TRY(ckr_resume(*m, o->resume));
		if (reads_averages(o))
			CKR_TRY(ckr_init(*m, o->resume, &averages));
		CKR_TRY(warn_nonfinite(*m, "--resume"));
		if (options_given(o, "seed"))
			ckr_set_seed(*m, o->seed);
	}
	/* fails if the library keeps none */
	return o->ema && o->verb == VERB_TRAIN ? ckr_use_ema(*m, false)
	       : CKR_OK;
}

ckr_status
start_model(ckr_ctx **m, struct data *d, const struct ckrun_options *o,
            const char *so)
{
	struct data_options data = start_data(o, &o->data);

	data.inputs = o->inputs;
	data.augment = o->augment;
	data.in_order = o->verb != VERB_TRAIN;
	data.no_labels = o->verb == VERB_PREDICT;
	*d = (struct data){ 0 };
	CKR_TRY(start_weights(m, o, so));
	CKR_TRY(data_open(d, *m, &data));
	CKR_TRY(groups_set(*m, o));
	if (!d->in_order)
		CKR_TRY(ckr_set_samples(*m, d->per_step));
	return ckr_set_feed(*m, data_feed, d);
}

/* Whether path could be written, before hours are spent. */
static ckr_status
try_write(ckr_ctx *m, const char *path)
{
	struct new_file f;
	struct err e;
	ckr_status s;

	if (!path || ckr_rank(m))
		return CKR_OK;
	s = new_file_open(&f, path, &e);
	if (s != CKR_OK)
		return ckr_fail(m, s, "%s", e.text);
	new_file_abort(&f);
	return CKR_OK;
}

/* The same of a checkpoint, which may be a folder of parts. */
static ckr_status
try_checkpoint(ckr_ctx *m, const char *path)
{
	struct err e;
	uint64_t save;
	char *part;
	ckr_status s;

	if (!path || ckr_rank(m) || !parts_in_folder(path))
		return try_write(m, path);
	s = parts_make_folder(path, &e);
	if (s == CKR_OK)
		s = parts_next_save(path, &save, &e);
	if (s != CKR_OK)
		return ckr_fail(m, s, "%s", e.text);
	part = parts_path(path, 0, save);
	s = part ? try_write(m, part)
	    : ckr_fail(m, CKR_ENOMEM, "out of memory");
	free(part);
	return s;
}

/* PEFT's configuration beside a file of adapters. */
static ckr_status
try_config(ckr_ctx *m, const char *adapters)
{
	char *path;
	ckr_status s;

	if (!adapters)
		return CKR_OK;
	if (asprintf(&path, "%.*sadapter_config.json",
	             (int)(path_base(adapters) - adapters), adapters) < 0)
		return ckr_fail(m, CKR_ENOMEM, "out of memory");
	s = try_write(m, path);
	free(path);
	return s;
}

/* Where a step has several micro-batches, each overwrites the outputs of the
 * one before it. */
static void
note_outputs(ckr_ctx *m, const struct ckrun_options *o)
{
	uint32_t n = ckr_micro_batches(m);
	struct ckr_info info;
	bool any = false;

	for (size_t i = 0; ckr_tensor(m, i, &info) == CKR_OK; i++)
		any |= !strcmp(info.kind, "output") && !info.loss;
	if (o->outputs && n > 1 && any)
		fprintf(stderr, "ckrun: note: --outputs holds the outputs of "
		        "the last of %u micro-batches, and the loss of all\n",
		        n);
}

ckr_status
start_files(ckr_ctx *m, const struct ckrun_options *o)
{
	note_outputs(m, o);
	if (o->save_lora)
		CKR_TRY(ckr_save_adapters(m, NULL));
	if (o->save_merged)
		CKR_TRY(ckr_save_merged(m, NULL));
	if (o->onnx)
		CKR_TRY(ckr_export_onnx(m, NULL));
	CKR_TRY(try_checkpoint(m, o->save));
	CKR_TRY(try_checkpoint(m, o->save_best));
	CKR_TRY(try_write(m, o->save_lora));
	CKR_TRY(try_config(m, o->save_lora));
	CKR_TRY(try_write(m, o->save_merged));
	CKR_TRY(try_write(m, o->outputs));
	CKR_TRY(try_write(m, o->onnx));
	return try_write(m, o->profile);
}

ckr_status
export_onnx(ckr_ctx *m, const char *path)
{
	CKR_TRY(ckr_export_onnx(m, path));
	if (ckr_exports_training_form(m))
		fprintf(stderr, "ckrun: note: '%s' has Dropout or "
		        "BatchNormalization in training form, as the compiled "
		        "file; for inference, export the module in eval mode "
		        "with the weights of --save\n", path);
	return CKR_OK;
}

struct ckr_hyper
start_hyper(const struct ckrun_options *o, uint64_t step, uint64_t total)
{
	const struct ckr_schedule schedule = schedule_for(o, total);
	struct ckr_hyper h = o->hyper;

	/* what is looked at in two ways is to be a whole step */
	h.scale_again = o->check || o->against;
	h.lr = ckr_schedule_lr(&schedule, step);
	return h;
}
